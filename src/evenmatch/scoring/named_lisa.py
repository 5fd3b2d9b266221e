"""LiSAScore by name: BERTScore with approximate assignment, and its baseline."""

from __future__ import annotations

from typing import Literal

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


@register("metric", "lisa_rowmask")
def lisa_rowmask(
    model: str = "minilm",
    layer: Layer = "auto",
    idf: bool | str = False,
    include_padding: int = 0,
    long: Long = "truncate",
    trust_remote_code: bool = False,
) -> AlignMetric:
    """LiSAScore by row masking: one-to-one, most urgent pair first (Mander & Phillips 2024).

    Opening and closing tokens can be matched to and carry no weight. `include_padding` pads every
    text to that many pieces, as the paper does to make repetition: paddings can be matched to.
    """
    return _lisa(RowMask(), model, layer, idf, include_padding, long, trust_remote_code)


@register("metric", "lisa_recursive")
def lisa_recursive(
    model: str = "minilm",
    layer: Layer = "auto",
    idf: bool | str = False,
    include_padding: int = 0,
    iterations: int = 10,
    factor: float = 0.8,
    legacy: bool = False,
    long: Long = "truncate",
    trust_remote_code: bool = False,
) -> AlignMetric:
    """LiSAScore by recursion: refine, then the best of each line (Mander & Phillips 2024).

    `iterations`, `factor` and `legacy` are those of the solver `recursive`, `include_padding` that
    of `lisa_rowmask`.
    """
    solver = Recursive(iterations, factor, legacy)
    return _lisa(solver, model, layer, idf, include_padding, long, trust_remote_code)


@register("metric", "lisa_topk")
def lisa_topk(
    model: str = "minilm",
    layer: Layer = "auto",
    idf: bool | str = False,
    include_padding: int = 0,
    iterations: int = 10,
    factor: float = 10.0,
    long: Long = "truncate",
    trust_remote_code: bool = False,
) -> AlignMetric:
    """LiSAScore by top-k: refine, then the highest cells anywhere (Mander & Phillips 2024).

    `iterations` and `factor` are those of the solver `topk`, `include_padding` that of
    `lisa_rowmask`.
    """
    solver = TopK(iterations, factor)
    return _lisa(solver, model, layer, idf, include_padding, long, trust_remote_code)


@register("metric", "lisa_auction")
def lisa_auction(
    model: str = "minilm",
    layer: Layer = "auto",
    idf: bool | str = False,
    include_padding: int = 0,
    iterations: int | Literal["short"] = "short",
    factor: float = 1.0,
    long: Long = "truncate",
    trust_remote_code: bool = False,
) -> AlignMetric:
    """LiSAScore by auction: refine at full strength (Mander & Phillips 2024).

    `iterations` and `factor` are those of the solver `auction`, `include_padding` that of
    `lisa_rowmask`.
    """
    solver = Auction(iterations, factor)
    return _lisa(solver, model, layer, idf, include_padding, long, trust_remote_code)


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


def _lisa(
    solver: Solver,
    model: str,
    layer: Layer,
    idf: bool | str,
    include_padding: int,
    long: Long,
    trust_remote_code: bool,
) -> AlignMetric:
    vectors = Transformer(
        model,
        layer,
        weights=idf_weighting(idf),
        long=long,
        trust_remote_code=trust_remote_code,
        pad_to=include_padding,
    )
    return AlignMetric(Pieces(marks=True), vectors, alignment=solver)
