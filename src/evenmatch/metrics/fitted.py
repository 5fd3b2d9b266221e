"""Fitted metrics: a bi-encoder with a linear head, trained on ratings or to imitate a metric.

The encoder reads each text separately, so a repeated text is embedded once. The head is linear in
features of the two texts: how their pooled vectors differ and how well their tokens match. The
features exist twice with equal results: in numpy for scoring (`pair_features`) and in torch for
training (`pair_features_torch`). The head is stored in a file beside the encoder.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.errors import DataError
from evenmatch.models.backbone import LongTextMode
from evenmatch.models.checkpoints import Checkpoint
from evenmatch.models.embedding_cache import cache_facts, encode_cached
from evenmatch.registry import make_signature, register
from evenmatch.scoring.chunking import chunk_pairs, copy_if_view, texts_of_pair
from evenmatch.scoring.engine import single_blas_thread
from evenmatch.scoring.inputs import check_pairs
from evenmatch.scoring.reducers import empty_text_flags, harmonic_mean
from evenmatch.similarity.vectors import row_norms
from evenmatch.types import Array, Pair, Run, Score, Scores
from evenmatch.units.text import Pieces
from evenmatch.vectors.transformer import Transformer


@register("metric", "fitted")
@dataclass(frozen=True)
class FittedMetric:
    """Bi-encoder with a linear head, from a folder written by `evenmatch fit` or `distil`.

    The encoder reads each text separately. The head's features are differences and products of the
    pooled vectors, and greedy precision, recall and F1 at two layers. With one empty side these
    three are 0, with two they are 1. Scores are on the scale of the training data. `model` is the
    folder. `long` sets what happens to a text that exceeds the model's limit. `adapter` loads an
    adapter trained by `evenmatch debias` for this metric.
    """

    model: str
    long: LongTextMode = "truncate"
    adapter: str = ""

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Score the pairs, in order; with several references the best score counts."""
        return self.score_pairs(pairs, Run())

    def score_pairs(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """Score the pairs with the given run settings."""
        check_pairs(pairs)
        head = self.head()
        found: dict[int, Score] = {}
        embedded: dict[str, _LayerVectors] = {}
        for indexes, reused in chunk_pairs(pairs):
            self._embed_chunk([pairs[i] for i in indexes], reused, embedded, head, run)
            with single_blas_thread():
                found.update((i, _score_pair(pairs[i], embedded, head)) for i in indexes)
            if run.progress:
                run.progress(len(found), len(pairs))
        segments = tuple(found[i] for i in range(len(pairs)))
        return Scores(segments, make_signature(self, *cache_facts(run.cache)))

    def _embed_chunk(
        self,
        pairs: Sequence[Pair],
        reused: Collection[str],
        embedded: dict[str, _LayerVectors],
        head: BiEncoderHead,
        run: Run,
    ) -> None:
        """Embed the new texts of a chunk and drop earlier ones that are not `reused`."""
        texts = dict.fromkeys(text for pair in pairs for text in texts_of_pair(pair))
        for text, known in list(embedded.items()):
            if text in texts or text in reused:
                kept = {layer: copy_if_view(vectors) for layer, vectors in known.layers.items()}
                embedded[text] = _LayerVectors(kept, known.flags)
            else:
                del embedded[text]
        new = [text for text in texts if text not in embedded]
        encoder, split = self.encoder(), Pieces()
        for text, states in zip(
            new, encode_cached(encoder.backbone, new, head.layers, run), strict=True
        ):
            units = split(text)
            vectors = {layer: encoder.embed(units, states, layer).vectors for layer in head.layers}
            embedded[text] = _LayerVectors(vectors, states.flags)

    def encoder(self) -> Transformer:
        """The encoder of both texts."""
        return Transformer(self.model, "last", long=self.long, adapter=self.adapter)

    def head(self) -> BiEncoderHead:
        """The linear head."""
        return load_bi_encoder_head(self.encoder().backbone.checkpoint())

    def pin(self) -> FittedMetric:
        """Return the metric with model and adapter named by content hash."""
        pinned = self.encoder().pin()
        return dataclasses.replace(self, model=pinned.model, adapter=pinned.adapter)

    def sources(self) -> tuple[str, ...]:
        """Model and adapter by content hash."""
        return self.encoder().sources()

    @property
    def signature(self) -> str:
        """The metric's spec, with files named by content hash."""
        return make_signature(self)

    @property
    def higher_is_better(self) -> bool:
        """The direction of the ratings or scores it was trained on."""
        return self.head().higher_is_better

    @property
    def bounds(self) -> tuple[float, float]:
        """Infinite: a linear head has no bounds."""
        return (-math.inf, math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class _LayerVectors:
    """A text's token vectors at each layer that the head reads."""

    layers: Mapping[int, Array]
    flags: frozenset[str]


def _score_pair(pair: Pair, embedded: Mapping[str, _LayerVectors], head: BiEncoderHead) -> Score:
    """The best score over the references."""
    candidate = embedded[pair.candidate]
    scores = []
    for text in pair.references:
        reference = embedded[text]
        features = pair_features(candidate.layers, reference.layers, head.layers)
        value = head.bias + float(np.dot(head.weights, features))
        flags = candidate.flags | reference.flags | empty_text_flags(pair.candidate, text)
        scores.append(Score(value, flags=flags))
    best = max if head.higher_is_better else min
    return best(scores, key=lambda score: score.value)


def pair_features(x: Mapping[int, Array], y: Mapping[int, Array], layers: Sequence[int]) -> Array:
    """Features of two texts, given their token vectors by layer.

    Absolute differences and products of the pooled vectors at the last layer, then greedy
    precision, recall and F1 at each layer.
    """
    u, v = pooled_summary(x[layers[-1]]), pooled_summary(y[layers[-1]])
    matches = [number for layer in layers for number in greedy_match(x[layer], y[layer])]
    return np.concatenate([abs(u - v), u * v, matches])


def pooled_summary(vectors: Array) -> Array:
    """Mean of the token vectors, scaled to the norm √dim; zeros for an empty text."""
    if not len(vectors):
        return np.zeros(vectors.shape[1])
    mean = np.asarray(vectors, dtype=np.float64).mean(0)
    found: Array = mean / row_norms(mean[None])[0] * len(mean) ** 0.5
    return found


def greedy_match(x: Array, y: Array) -> tuple[float, float, float]:
    """Greedy precision, recall and F1 of cosines; 0 for one empty side, 1 for two."""
    if not len(x) or not len(y):
        value = float(len(x) == len(y))
        return value, value, value
    cosines = (x @ y.T) / (row_norms(x)[:, None] * row_norms(y)[None, :])
    precision, recall = float(cosines.max(1).mean()), float(cosines.max(0).mean())
    return precision, recall, harmonic_mean(precision, recall)


def pair_features_torch(
    x: Mapping[int, Any], x_mask: Any, y: Mapping[int, Any], y_mask: Any, layers: Sequence[int]
) -> Any:
    """`pair_features` for a batch of padded texts, with gradients; no text may be empty."""
    import torch

    u, v = (_pooled_summary_torch(t[layers[-1]], mask) for t, mask in ((x, x_mask), (y, y_mask)))
    columns = [(u - v).abs(), u * v]
    for layer in layers:
        columns.append(torch.stack(_greedy_match_torch(x[layer], x_mask, y[layer], y_mask), -1))
    return torch.cat(columns, -1)


def _pooled_summary_torch(vectors: Any, mask: Any) -> Any:
    import torch

    total = (vectors * mask[..., None]).sum(1)
    return torch.nn.functional.normalize(total, dim=-1) * float(total.shape[-1] ** 0.5)


def _greedy_match_torch(x: Any, x_mask: Any, y: Any, y_mask: Any) -> tuple[Any, Any, Any]:
    import torch

    x, y = (torch.nn.functional.normalize(t, dim=-1) for t in (x, y))
    cosines = x @ y.transpose(-1, -2)
    cells = x_mask[:, :, None] & y_mask[:, None, :]
    cosines = cosines.masked_fill(~cells, -2.0)  # below any cosine, so that padding never matches
    precision = (cosines.amax(2) * x_mask).sum(1) / x_mask.sum(1)
    recall = (cosines.amax(1) * y_mask).sum(1) / y_mask.sum(1)
    both = precision + recall
    f = torch.where((precision > 0) & (recall > 0), 2 * precision * recall / both, 0.0)
    return precision, recall, f


HEAD_FILE = "head.safetensors"
_METADATA_KEY = "towers"


@dataclass(frozen=True, slots=True, eq=False)
class BiEncoderHead:
    """Linear head: the layers it reads, its weights and bias, and the direction of its scores."""

    layers: tuple[int, ...]
    weights: Array
    bias: float
    higher_is_better: bool = True


def save_bi_encoder_head(head: BiEncoderHead, folder: Path) -> None:
    """Save a head in the folder of its encoder."""
    from safetensors.numpy import save_file

    facts = {"layers": list(head.layers), "higher_is_better": head.higher_is_better}
    tensors = {
        "weights": np.asarray(head.weights, dtype=np.float32),
        "bias": np.array([head.bias], dtype=np.float32),
    }
    save_file(tensors, folder / HEAD_FILE, metadata={_METADATA_KEY: json.dumps(facts)})


@lru_cache(maxsize=8)
def load_bi_encoder_head(checkpoint: Checkpoint) -> BiEncoderHead:
    """Load the head from a model's folder."""
    path = checkpoint.folder / HEAD_FILE
    if not path.is_file():
        raise DataError(
            f"{checkpoint.display_name} holds no {HEAD_FILE}; "
            "give a folder that evenmatch fit or distil wrote"
        )
    try:
        return _read_head(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"cannot read {path} ({error}); train the metric again") from None


def _read_head(path: Path) -> BiEncoderHead:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            facts = json.loads((file.metadata() or {})[_METADATA_KEY])
            weights = file.get_tensor("weights").astype(np.float64)
            bias = float(file.get_tensor("bias")[0])
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    return BiEncoderHead(tuple(facts["layers"]), weights, bias, bool(facts["higher_is_better"]))
