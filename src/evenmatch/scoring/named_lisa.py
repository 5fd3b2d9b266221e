"""LiSAScore by name: BERTScore with approximate assignment, and its baseline."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal

from evenmatch.alignment.assign import Greedy
from evenmatch.alignment.auction import Auction
from evenmatch.alignment.recursive import Recursive
from evenmatch.alignment.row_mask import RowMask
from evenmatch.alignment.topk import TopK
from evenmatch.registry import register
from evenmatch.scoring.average import Average
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.named import idf_weighting
from evenmatch.types import Solver
from evenmatch.units.closing import Closing
from evenmatch.units.pieces import Pieces
from evenmatch.vectors.layers import Layer
from evenmatch.vectors.pretrained import Long
from evenmatch.vectors.transformer import Transformer


def _padded(
    model: str = "minilm",
    layer: Layer = "auto",
    idf: bool | str = False,
    include_padding: int = 0,
    long: Long = "truncate",
    trust_remote_code: bool = False,
) -> Transformer:
    weights = idf_weighting(idf)
    return Transformer(
        model,
        layer,
        weights=weights,
        long=long,
        trust_remote_code=trust_remote_code,
        pad_to=include_padding,
    )


def _lisa(solver: Callable[..., Solver]) -> Callable[..., AlignMetric]:
    """A metric with the settings of `_padded` and, after them, those of its solver.

    Specs read a metric's settings off its signature, so the signature is put together here.
    """
    shared, own = (dict(inspect.signature(f, eval_str=True).parameters) for f in (_padded, solver))
    settings = inspect.Signature(list((shared | own).values()))

    @functools.wraps(solver)
    def make(*given: Any, **named: Any) -> AlignMetric:
        bound = settings.bind(*given, **named).arguments
        vectors = _padded(**{k: v for k, v in bound.items() if k in shared})
        chosen = solver(**{k: v for k, v in bound.items() if k in own})
        return AlignMetric(Pieces(marks=True), vectors, alignment=chosen)

    make.__signature__ = settings  # type: ignore[attr-defined]  # where inspect looks first
    make.__annotations__ = {k: p.annotation for k, p in settings.parameters.items()}
    return make


@register("metric", "lisa_rowmask")
@_lisa
def lisa_rowmask() -> Solver:
    """LiSAScore by row masking: one-to-one, most urgent pair first (Mander & Phillips 2024).

    Opening and closing tokens can be matched to and carry no weight. `include_padding` pads every
    text to that many pieces, as the paper does to make repetition: paddings can be matched to.
    """
    return RowMask()


@register("metric", "lisa_recursive")
@_lisa
def lisa_recursive(iterations: int = 10, factor: float = 0.8, legacy: bool = False) -> Solver:
    """LiSAScore by recursion: refine, then the best of each line (Mander & Phillips 2024).

    `iterations`, `factor` and `legacy` are those of the solver `recursive`, the other settings
    those of `lisa_rowmask`.
    """
    return Recursive(iterations, factor, legacy)


@register("metric", "lisa_topk")
@_lisa
def lisa_topk(iterations: int = 10, factor: float = 10.0) -> Solver:
    """LiSAScore by top-k: refine, then the highest cells anywhere (Mander & Phillips 2024).

    `iterations` and `factor` are those of the solver `topk`, the other settings those of
    `lisa_rowmask`.
    """
    return TopK(iterations, factor)


@register("metric", "lisa_auction")
@_lisa
def lisa_auction(iterations: int | Literal["short"] = "short", factor: float = 1.0) -> Solver:
    """LiSAScore by auction: refine at full strength (Mander & Phillips 2024).

    `iterations` and `factor` are those of the solver `auction`, the other settings those of
    `lisa_rowmask`.
    """
    return Auction(iterations, factor)


@register("metric", "eot")
def eot(
    model: str = "minilm",
    layer: Layer = "last",
    long: Long = "truncate",
    trust_remote_code: bool = False,
) -> AlignMetric:
    """The cosine of the two texts' closing tokens, LiSAScore's baseline without alignment."""
    vectors = Transformer(model, layer, long=long, trust_remote_code=trust_remote_code)
    return AlignMetric(Closing(), vectors, alignment=Greedy(), scoring=Average())
