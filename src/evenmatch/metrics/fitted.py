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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.errors import DataError
from evenmatch.files import explain_failed_write, set_ordinary_modes
from evenmatch.models.adapters import ADAPTER_WEIGHTS_FILE, find_adapter
from evenmatch.models.backbone import LongTextMode, resolve_model
from evenmatch.models.checkpoints import Checkpoint, Layer, LocalFile, find_checkpoint
from evenmatch.registry import CallContext, register
from evenmatch.scoring.engine import (
    Chunk,
    ChunkScores,
    EngineMetric,
    ReadyMetric,
    open_encoder,
    small_matrix_threads,
)
from evenmatch.scoring.reducers import empty_text_flags, harmonic_mean
from evenmatch.similarity.vectors import row_norms
from evenmatch.types import Array, Embedded, Score
from evenmatch.units.text import Pieces
from evenmatch.vectors.transformer import Transformer


@register("metric", "fitted")
@dataclass(frozen=True)
class FittedMetric(EngineMetric):
    """Bi-encoder with a linear head, from a folder written by `evenmatch fit` or `distil`.

    The encoder reads each text separately. The head's features are differences and products of the
    pooled vectors, and greedy precision, recall and F1 at two layers; with a projection also the
    worst-matched fifth of the tokens, and precision, recall and F1 with learned token weights. With
    one empty side the matches are 0, with two they are 1. Scores are on the scale of the training
    data. `model` is the folder. `long` sets what happens to a text that exceeds the model's limit.
    `adapter` loads an adapter trained by `evenmatch debias` for this metric, or one that
    `evenmatch fit` trained with `--kind adapter` or `projection`, which brings its own head:
    `model` is then a pretrained encoder.
    """

    model: str
    long: LongTextMode = "truncate"
    adapter: str = ""

    def open(self, context: CallContext) -> ReadyMetric:
        """Open the encoder at each layer that the head reads."""
        head = self.head(context.once)
        exact = context.with_exact_vectors()  # weights may be far above 1
        plain = dataclasses.replace(self, adapter="") if head.projections else self
        by_layer = {n: open_encoder(plain.encoder(n), exact) for n in head.layers}
        split = Pieces()

        def score(*layers: tuple[Embedded, Embedded]) -> Score:
            x, y = (
                {n: embedded.vectors for n, embedded in zip(head.layers, side, strict=True)}
                for side in zip(*layers, strict=True)
            )
            features = pair_features(x, y, head.layers, head.projections)
            value = head.bias + float(np.dot(head.weights, features))
            candidate, reference = layers[0]
            empty = empty_text_flags(candidate.units.text, reference.units.text)
            return Score(value, flags=candidate.flags | reference.flags | empty)

        def score_chunk(chunk: Chunk) -> ChunkScores:
            embedded = [chunk.embedded_pairs(split, sides) for sides in by_layer.values()]
            with small_matrix_threads(chunk.run):
                scores = list(map(score, *embedded))
            best = chunk.best_scores(scores, lambda s: s.value, highest=head.higher_is_better)
            return best, None

        return ReadyMetric(score_chunk, facts=by_layer[head.layers[-1]][0].facts)

    def encoder(self, layer: Layer = "last") -> Transformer:
        """The encoder of both texts, at a layer."""
        return Transformer(self.model, layer, long=self.long, adapter=self.adapter)

    def head(self, once: Callable[..., Any] = lambda f, *args: f(*args)) -> BiEncoderHead:
        """The linear head: the adapter's, or the one in the model's folder."""
        own = once(load_adapter_head, once(find_adapter, self.adapter)) if self.adapter else None
        if own is None:
            own = once(load_bi_encoder_head, once(find_checkpoint, self.model))
        head: BiEncoderHead = own
        return head

    def resolve(self, context: CallContext) -> tuple[FittedMetric, tuple[str, ...]]:
        """Return the metric with model and adapter named by content hash."""
        return resolve_model(self, context)

    @property
    def higher_is_better(self) -> bool:
        """The direction of the ratings or scores it was trained on."""
        return self.head().higher_is_better

    @property
    def bounds(self) -> tuple[float, float]:
        """Infinite: a linear head has no bounds."""
        return (-math.inf, math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """A learned change of the token vectors of one layer, and the weights of tokens.

    A vector h becomes h + up(relu(down(h))). The logarithm of a token's weight is the product of
    its new vector with `importance`, from -3 to 3. Arrays and tensors are treated alike.
    """

    down: Any
    down_bias: Any
    up: Any
    up_bias: Any
    importance: Any

    def __call__(self, vectors: Any) -> Any:
        """Return the new vectors."""
        inner = (vectors @ self.down.T + self.down_bias).clip(0, None)
        return vectors + inner @ self.up.T + self.up_bias

    def log_weights(self, vectors: Any) -> Any:
        """The logarithms of the weights of tokens, given their new vectors."""
        return (vectors @ self.importance).clip(-_MOST_IMPORTANCE, _MOST_IMPORTANCE)


def pair_features(
    x: Mapping[int, Array],
    y: Mapping[int, Array],
    layers: Sequence[int],
    projections: Sequence[Projection] = (),
) -> Array:
    """Features of two texts, given their token vectors by layer.

    Absolute differences and products of the pooled vectors at the last layer, then the matches of
    the tokens at each layer. With `projections`, one for each layer, the vectors are projected
    first, and each layer also has the mean of the worst-matched fifth and weighted matches.
    """
    new = dict(zip(layers, projections, strict=True)) if projections else {}
    x, y = ({n: new[n](t[n]) if new else t[n] for n in layers} for t in (x, y))
    u, v = pooled_summary(x[layers[-1]]), pooled_summary(y[layers[-1]])
    matches: list[float] = []
    for layer in layers:
        best = best_cosines(x[layer], y[layer])
        matches += _precision_recall_f(best, [np.ones(len(side)) for side in best])
        if new:
            weights = [np.exp(new[layer].log_weights(t[layer])) for t in (x, y)]
            matches += [_worst_fifth(side) for side in best]
            matches += _precision_recall_f(best, weights)
    return np.concatenate([abs(u - v), u * v, matches])


def pooled_summary(vectors: Array) -> Array:
    """Mean of the token vectors, scaled to the norm √dim; zeros for an empty text."""
    if not len(vectors):
        return np.zeros(vectors.shape[1])
    mean = np.asarray(vectors, dtype=np.float64).mean(0)
    found: Array = mean / row_norms(mean[None])[0] * len(mean) ** 0.5
    return found


def best_cosines(x: Array, y: Array) -> tuple[Array, Array]:
    """The highest cosine of each token of x and of y; a single 0 or 1 if one or both are empty."""
    if not len(x) or not len(y):
        value = np.full(1, float(len(x) == len(y)))
        return value, value
    cosines = (x @ y.T) / (row_norms(x)[:, None] * row_norms(y)[None, :])
    return cosines.max(1), cosines.max(0)


def _precision_recall_f(best: Sequence[Array], weights: Sequence[Array]) -> list[float]:
    # an empty text has no weights, and the other's do not matter
    same = [w if len(w) == len(b) else np.ones(len(b)) for b, w in zip(best, weights, strict=True)]
    means = [float(np.average(b, weights=w)) for b, w in zip(best, same, strict=True)]
    return [*means, harmonic_mean(*means)]


def _worst_fifth(best: Array) -> float:
    return float(np.sort(best)[: -(-len(best) // 5)].mean())


def pair_features_torch(
    x: Mapping[int, Any],
    x_mask: Any,
    y: Mapping[int, Any],
    y_mask: Any,
    layers: Sequence[int],
    projections: Sequence[Projection] = (),
) -> Any:
    """`pair_features` for a batch of padded texts, with gradients; no text may be empty."""
    import torch

    masks = (x_mask, y_mask)
    new = dict(zip(layers, projections, strict=True)) if projections else {}
    x, y = ({n: new[n](t[n]) if new else t[n] for n in layers} for t in (x, y))
    u, v = (_pooled_summary_torch(t[layers[-1]], mask) for t, mask in ((x, x_mask), (y, y_mask)))
    columns = [(u - v).abs(), u * v]
    for layer in layers:
        best = _best_cosines_torch(x[layer], x_mask, y[layer], y_mask)
        columns.append(_precision_recall_f_torch(best, masks))
        if new:
            logs = [new[layer].log_weights(t[layer]) for t in (x, y)]
            weights = [a.exp() * mask for a, mask in zip(logs, masks, strict=True)]
            worst = [_worst_fifth_torch(b, mask) for b, mask in zip(best, masks, strict=True)]
            columns += [torch.stack(worst, -1), _precision_recall_f_torch(best, weights)]
    return torch.cat(columns, -1)


def _pooled_summary_torch(vectors: Any, mask: Any) -> Any:
    import torch

    total = (vectors * mask[..., None]).sum(1)
    return torch.nn.functional.normalize(total, dim=-1) * float(total.shape[-1] ** 0.5)


def _best_cosines_torch(x: Any, x_mask: Any, y: Any, y_mask: Any) -> tuple[Any, Any]:
    import torch

    x, y = (torch.nn.functional.normalize(t, dim=-1) for t in (x, y))
    cosines = x @ y.transpose(-1, -2)
    cells = x_mask[:, :, None] & y_mask[:, None, :]
    cosines = cosines.masked_fill(~cells, -2.0)  # below any cosine, so that padding never matches
    return cosines.amax(2), cosines.amax(1)


def _precision_recall_f_torch(best: Sequence[Any], weights: Sequence[Any]) -> Any:
    import torch

    precision, recall = ((b * w).sum(1) / w.sum(1) for b, w in zip(best, weights, strict=True))
    both = precision + recall
    f = torch.where((precision > 0) & (recall > 0), 2 * precision * recall / both, 0.0)
    return torch.stack([precision, recall, f], -1)


def _worst_fifth_torch(best: Any, mask: Any) -> Any:
    import torch

    count = (mask.sum(1) + 4) // 5
    kept = torch.arange(mask.shape[1], device=best.device) < count[:, None]
    return (best.masked_fill(~mask, 2.0).sort(1).values * kept).sum(1) / count


HEAD_FILE = "head.safetensors"
_METADATA_KEY = "towers"
_PROJECTION = "projection"
_MOST_IMPORTANCE = 3.0  # of the logarithm of a token's weight


@dataclass(frozen=True, slots=True, eq=False)
class BiEncoderHead:
    """Linear head: the layers it reads, its weights and bias, and the direction of its scores.

    `projections` change the token vectors before they are matched, one for each layer, if any.
    """

    layers: tuple[int, ...]
    weights: Array
    bias: float
    higher_is_better: bool = True
    projections: tuple[Projection, ...] = ()


def save_bi_encoder_head(head: BiEncoderHead, folder: Path) -> None:
    """Save a head in the folder of its encoder."""
    from safetensors.numpy import save_file

    facts = {"layers": list(head.layers), "higher_is_better": head.higher_is_better}
    tensors = {
        "weights": np.asarray(head.weights, dtype=np.float32),
        "bias": np.array([head.bias], dtype=np.float32),
    }
    with explain_failed_write(folder):
        save_file(tensors, folder / HEAD_FILE, metadata={_METADATA_KEY: json.dumps(facts)})
    set_ordinary_modes(folder)


@lru_cache(maxsize=8)
def load_bi_encoder_head(checkpoint: Checkpoint) -> BiEncoderHead:
    """Load the head from a model's folder."""
    from safetensors import SafetensorError, safe_open

    path = checkpoint.folder / HEAD_FILE
    if not path.is_file():
        raise DataError(
            f"{checkpoint.display_name} holds no {HEAD_FILE}; "
            "give a folder that evenmatch fit or distil wrote"
        )
    try:
        with safe_open(path, framework="numpy") as file:
            facts = json.loads((file.metadata() or {})[_METADATA_KEY])
            weights = file.get_tensor("weights").astype(np.float64)
            bias = float(file.get_tensor("bias")[0])
        return BiEncoderHead(tuple(facts["layers"]), weights, bias, bool(facts["higher_is_better"]))
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise DataError(f"cannot read {path} ({error}); train the metric again") from None


def head_metadata(head: BiEncoderHead) -> dict[str, str]:
    """Return a head as the metadata of the adapter file that it belongs to."""
    numbers = [float(f"{weight:.6g}") for weight in head.weights]
    facts = {"layers": list(head.layers), "higher_is_better": head.higher_is_better}
    return {_METADATA_KEY: json.dumps({**facts, "weights": numbers, "bias": head.bias})}


def save_projections(head: BiEncoderHead, folder: Path) -> None:
    """Save a head with projections as an adapter file, in half precision."""
    from safetensors.numpy import save_file

    tensors = {
        f"{_PROJECTION}.{layer}.{name}": np.ascontiguousarray(array, dtype=np.float16)
        for layer, projection in zip(head.layers, head.projections, strict=True)
        for name, array in dataclasses.asdict(projection).items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    with explain_failed_write(folder):
        save_file(tensors, folder / ADAPTER_WEIGHTS_FILE, metadata=head_metadata(head))
    set_ordinary_modes(folder)


@lru_cache(maxsize=8)
def load_adapter_head(adapter: LocalFile) -> BiEncoderHead | None:
    """Load the head that an adapter file has; None for an adapter without one."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(adapter.path, framework="numpy") as file:
            metadata = file.metadata() or {}
        if _METADATA_KEY not in metadata:
            return None
        facts = json.loads(metadata[_METADATA_KEY])
        weights = np.array(facts["weights"], dtype=np.float64)
        layers, bias = tuple(map(int, facts["layers"])), float(facts["bias"])
        higher = bool(facts["higher_is_better"])
        return BiEncoderHead(layers, weights, bias, higher, _read_projections(adapter, layers))
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise DataError(f"cannot read {adapter.path} ({error}); train it again") from None


def _read_projections(adapter: LocalFile, layers: Sequence[int]) -> tuple[Projection, ...]:
    """The projections in an adapter file, one for each layer; empty if it has none."""
    from safetensors.numpy import load_file

    tensors = {name: array.astype(np.float32) for name, array in load_file(adapter.path).items()}
    if not any(name.startswith(_PROJECTION) for name in tensors):
        return ()
    names = [each.name for each in dataclasses.fields(Projection)]
    return tuple(
        Projection(*(tensors[f"{_PROJECTION}.{layer}.{name}"] for name in names))
        for layer in layers
    )
