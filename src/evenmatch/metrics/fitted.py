"""fitted: a metric trained on ratings, or to imitate another metric; loaded from its folder.

What a two-tower metric sees of two texts: how their summaries differ, how their pieces match.

Both texts go through the encoder on their own, so that a text met again costs nothing. The same
numbers are computed here for scoring, and in torch where such a metric is trained.

The head of a trained metric: weights over what it sees of two texts, in a file of its own.
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
from evenmatch.scoring.reducers import empty_side_flags, harmonic_mean
from evenmatch.similarity.vectors import row_norms
from evenmatch.types import Array, Pair, Run, Score, Scores
from evenmatch.units.text import Pieces
from evenmatch.vectors.transformer import Transformer


@dataclass(frozen=True, slots=True, eq=False)
class _LayerVectors:
    """A text's vectors at each layer the head looks at."""

    layers: Mapping[int, Array]
    flags: frozenset[str]


@register("metric", "fitted")
@dataclass(frozen=True)
class FittedMetric:
    """Two towers and a head over them, from a folder that `evenmatch fit` or `distil` wrote.

    Each text goes through the encoder alone; a linear head judges differences and products of
    their summaries and greedy precision, recall and F at two layers. Scores are on the scale of
    what it was trained on. Of an empty side nothing matches, of two everything. `adapter` switches
    on one that `debias` trained through this metric.
    """

    model: str
    long: LongTextMode = "truncate"
    adapter: str = ""

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores of the pairs, in order; the best reference counts where there are several."""
        return self.score_pairs(pairs, Run())

    def score_pairs(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """The same, as `run` says."""
        check_pairs(pairs)
        head = self.head()
        found: dict[int, Score] = {}
        sights: dict[str, _LayerVectors] = {}
        for window, again in chunk_pairs(pairs):
            self._embed_chunk([pairs[i] for i in window], again, sights, head, run)
            with single_blas_thread():
                found.update((i, _score_pair(pairs[i], sights, head)) for i in window)
            if run.progress:
                run.progress(len(found), len(pairs))
        segments = tuple(found[i] for i in range(len(pairs)))
        return Scores(segments, make_signature(self, *cache_facts(run.cache)))

    def _embed_chunk(
        self,
        pairs: Sequence[Pair],
        again: Collection[str],
        sights: dict[str, _LayerVectors],
        head: BiEncoderHead,
        run: Run,
    ) -> None:
        """Put the texts of a window, each encoded once, in the place of those not needed again."""
        wanted = dict.fromkeys(text for pair in pairs for text in texts_of_pair(pair))
        for text, sight in list(sights.items()):
            if text in wanted or text in again:
                kept = {layer: copy_if_view(vectors) for layer, vectors in sight.layers.items()}
                sights[text] = _LayerVectors(kept, sight.flags)
            else:
                del sights[text]
        new = [text for text in wanted if text not in sights]
        encoder, cut = self.encoder(), Pieces()
        for text, states in zip(
            new, encode_cached(encoder.backbone, new, head.layers, run), strict=True
        ):
            looks = {n: encoder.embed(cut(text), states, n) for n in head.layers}
            vectors = {layer: look.vectors for layer, look in looks.items()}
            sights[text] = _LayerVectors(vectors, states.flags)

    def encoder(self) -> Transformer:
        """What both texts go through."""
        return Transformer(self.model, "last", long=self.long, adapter=self.adapter)

    def head(self) -> BiEncoderHead:
        """What judges them."""
        return load_bi_encoder_head(self.encoder().backbone.checkpoint())

    def pin(self) -> FittedMetric:
        """The folders as their content hashes."""
        own = self.encoder().pin()
        return dataclasses.replace(self, model=own.model, adapter=own.adapter)

    def sources(self) -> tuple[str, ...]:
        """The trained model and the adapter by content."""
        return self.encoder().sources()

    @property
    def signature(self) -> str:
        """The recipe, with the folder named by content."""
        return make_signature(self)

    @property
    def higher_is_better(self) -> bool:
        """As in what it was trained on."""
        return self.head().higher_is_better

    @property
    def bounds(self) -> tuple[float, float]:
        """None are known."""
        return (-math.inf, math.inf)


def _score_pair(pair: Pair, sights: Mapping[str, _LayerVectors], head: BiEncoderHead) -> Score:
    """The best score over the references."""
    candidate = sights[pair.candidate]
    found = []
    for text in pair.references:
        reference = sights[text]
        value = float(
            np.dot(head.weights, pair_features(candidate.layers, reference.layers, head.layers))
        )
        own = empty_side_flags(Pair(pair.candidate, (text,)))
        found.append(Score(head.bias + value, flags=candidate.flags | reference.flags | own))
    best = max if head.higher_is_better else min
    return best(found, key=lambda score: score.value)


def pooled_summary(vectors: Array) -> Array:
    """The mean of a text's vectors, as long as a vector of ones would be; zeros for no text."""
    if not len(vectors):
        return np.zeros(vectors.shape[1])
    mean = np.asarray(vectors, dtype=np.float64).mean(0)
    found: Array = mean / row_norms(mean[None])[0] * len(mean) ** 0.5
    return found


def pair_features(x: Mapping[int, Array], y: Mapping[int, Array], layers: Sequence[int]) -> Array:
    """Differences and products of the summaries at the last layer, then P, R, F of each layer."""
    u, v = pooled_summary(x[layers[-1]]), pooled_summary(y[layers[-1]])
    matches = [number for layer in layers for number in greedy_match(x[layer], y[layer])]
    return np.concatenate([abs(u - v), u * v, matches])


def greedy_match(x: Array, y: Array) -> tuple[float, float, float]:
    """Greedy precision, recall and F of two texts' vectors; an empty side 0, two of them 1."""
    if not len(x) or not len(y):
        value = float(len(x) == len(y))
        return value, value, value
    cosines = (x @ y.T) / (row_norms(x)[:, None] * row_norms(y)[None, :])
    precision, recall = float(cosines.max(1).mean()), float(cosines.max(0).mean())
    return precision, recall, harmonic_mean(precision, recall)


def pair_features_torch(
    x: Mapping[int, Any], x_there: Any, y: Mapping[int, Any], y_there: Any, layers: Sequence[int]
) -> Any:
    """`seen` for a batch of padded texts, with gradients; no text of it may be empty."""
    import torch

    u, v = (
        _pooled_summaries_torch(t[layers[-1]], there) for t, there in ((x, x_there), (y, y_there))
    )
    columns = [(u - v).abs(), u * v]
    for layer in layers:
        columns.append(torch.stack(_greedy_match_torch(x[layer], x_there, y[layer], y_there), -1))
    return torch.cat(columns, -1)


def _pooled_summaries_torch(vectors: Any, there: Any) -> Any:
    import torch

    total = (vectors * there[..., None]).sum(1)
    return torch.nn.functional.normalize(total, dim=-1) * float(total.shape[-1] ** 0.5)


def _greedy_match_torch(x: Any, x_there: Any, y: Any, y_there: Any) -> tuple[Any, Any, Any]:
    import torch

    x, y = (torch.nn.functional.normalize(t, dim=-1) for t in (x, y))
    cosines = x @ y.transpose(-1, -2)
    cells = x_there[:, :, None] & y_there[:, None, :]
    cosines = cosines.masked_fill(~cells, -2.0)
    precision = (cosines.amax(2) * x_there).sum(1) / x_there.sum(1)
    recall = (cosines.amax(1) * y_there).sum(1) / y_there.sum(1)
    both = precision + recall
    f = torch.where((precision > 0) & (recall > 0), 2 * precision * recall / both, 0.0)
    return precision, recall, f


HEAD_FILE = "head.safetensors"


_METADATA_KEY = "towers"


@dataclass(frozen=True, slots=True, eq=False)
class BiEncoderHead:
    """A linear head: the layers it looks at, its weights and bias, and which way is good."""

    layers: tuple[int, ...]
    weights: Array
    bias: float
    higher_is_better: bool = True


def save_bi_encoder_head(head: BiEncoderHead, folder: Path) -> None:
    """Write a head beside the encoder it belongs to."""
    from safetensors.numpy import save_file

    facts = {"layers": list(head.layers), "higher_is_better": head.higher_is_better}
    tensors = {
        "weights": np.asarray(head.weights, dtype=np.float32),
        "bias": np.array([head.bias], dtype=np.float32),
    }
    save_file(tensors, folder / HEAD_FILE, metadata={_METADATA_KEY: json.dumps(facts)})


@lru_cache(maxsize=8)
def load_bi_encoder_head(checkpoint: Checkpoint) -> BiEncoderHead:
    """The head in a model's folder."""
    path = checkpoint.folder / HEAD_FILE
    if not path.is_file():
        raise DataError(
            f"{checkpoint.display_name} holds no {HEAD_FILE}; give a folder that evenmatch fit or distil wrote"
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
