"""Metrics by name: each a row of parts.

LiSAScore by name: BERTScore with approximate assignment, and its baseline.

moverscore: how far a candidate's words must travel to become the reference's.

Metrics that were made here and come with evenmatch: a blend, and metrics with an adapter.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Literal

from evenmatch.alignment.assignment import Greedy, Lsa
from evenmatch.alignment.lisa import Auction, Recursive, RowMask, TopK
from evenmatch.alignment.transport import Emd
from evenmatch.errors import InputError
from evenmatch.models.backbone import LongTextMode
from evenmatch.models.layers import Layer
from evenmatch.protocols import Solver, Weighting
from evenmatch.registry import register
from evenmatch.registry.parts import with_settings_of
from evenmatch.scoring.ensembles import Blend
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.reducers import (
    Average,
    Nearness,
)
from evenmatch.scoring.saved import read_metric
from evenmatch.similarity.vectors import Euclidean
from evenmatch.units.text import Closing, Pieces
from evenmatch.vectors.mover import Mover
from evenmatch.vectors.transformer import Transformer
from evenmatch.vectors.weighting import Idf, Norm, Uniform


@register("metric", "bertscore")
def bertscore(
    model: str = "minilm",
    layer: Layer = "auto",
    idf: bool | str = False,
    marks: bool = True,
    long: LongTextMode = "truncate",
    trust_remote_code: bool = False,
    adapter: str = "",
) -> AlignMetric:
    """BERTScore: every piece takes its most similar partner (Zhang et al. 2020).

    Equal to the bert_score package at batch size 1: opening and closing tokens can be matched to
    and carry no weight. `idf=True` counts the call's references; a string names a table.
    `adapter` switches on one that `evenmatch debias` made.
    """
    vectors = Transformer(
        model,
        layer,
        weights=idf_weighting(idf),
        long=long,
        trust_remote_code=trust_remote_code,
        adapter=adapter,
    )
    return AlignMetric(Pieces(marks=marks), vectors, alignment=Greedy())


@register("metric", "f_disc")
def f_disc(
    model: str = "minilm",
    layer: Layer = "auto",
    idf: bool | str = False,
    marks: bool = False,
    long: LongTextMode = "truncate",
    trust_remote_code: bool = False,
    adapter: str = "",
) -> AlignMetric:
    """F_DISC: one-to-one alignment of greatest total similarity (Jin & Gildea 2022)."""
    return _transformer_metric(
        Lsa(), Uniform(), model, layer, idf, marks, long, trust_remote_code, adapter
    )


@register("metric", "f_cont")
def f_cont(
    model: str = "minilm",
    layer: Layer = "auto",
    idf: bool | str = False,
    marks: bool = False,
    long: LongTextMode = "truncate",
    trust_remote_code: bool = False,
    mass: Weighting = Norm(),
    solver: Solver = Emd(),
    adapter: str = "",
) -> AlignMetric:
    """F_CONT: optimal transport, each piece as heavy as its vector is long (Jin & Gildea 2022)."""
    return _transformer_metric(
        solver, mass, model, layer, idf, marks, long, trust_remote_code, adapter
    )


def _transformer_metric(
    solver: Solver,
    mass: Weighting,
    model: str,
    layer: Layer,
    idf: bool | str,
    marks: bool,
    long: LongTextMode,
    trust_remote_code: bool,
    adapter: str,
) -> AlignMetric:
    vectors = Transformer(
        model,
        layer,
        weights=idf_weighting(idf),
        mass=mass,
        long=long,
        trust_remote_code=trust_remote_code,
        adapter=adapter,
    )
    return AlignMetric(Pieces(marks=marks), vectors, alignment=solver)


def idf_weighting(idf: bool | str) -> Weighting:
    """A metric's `idf` setting as a weighting: counted, from a table, or all alike."""
    if isinstance(idf, str):
        return Idf(idf)
    return Idf() if idf else Uniform()


def _padded_transformer(
    model: str = "minilm",
    layer: Layer = "auto",
    idf: bool | str = False,
    include_padding: int = 0,
    long: LongTextMode = "truncate",
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


def _lisa_metric(solver: Callable[..., Solver]) -> Callable[..., AlignMetric]:
    """A metric with the settings of `_padded` and, after them, those of its solver.

    Specs read a metric's settings off its signature, so the signature is put together here.
    """
    shared, own = (
        dict(inspect.signature(f, eval_str=True).parameters) for f in (_padded_transformer, solver)
    )
    settings = inspect.Signature(list((shared | own).values()))

    @functools.wraps(solver)
    def make(*given: Any, **named: Any) -> AlignMetric:
        bound = settings.bind(*given, **named).arguments
        vectors = _padded_transformer(**{k: v for k, v in bound.items() if k in shared})
        chosen = solver(**{k: v for k, v in bound.items() if k in own})
        return AlignMetric(Pieces(marks=True), vectors, alignment=chosen)

    make.__signature__ = settings  # type: ignore[attr-defined]  # where inspect looks first
    make.__annotations__ = {k: p.annotation for k, p in settings.parameters.items()}
    return make


@register("metric", "lisa_rowmask")
@_lisa_metric
def lisa_rowmask() -> Solver:
    """LiSAScore by row masking: one-to-one, most urgent pair first (Mander & Phillips 2024).

    Opening and closing tokens can be matched to and carry no weight. `include_padding` pads every
    text to that many pieces, as the paper does to make repetition: paddings can be matched to.
    """
    return RowMask()


@register("metric", "lisa_recursive")
@_lisa_metric
def lisa_recursive(iterations: int = 10, factor: float = 0.8, legacy: bool = False) -> Solver:
    """LiSAScore by recursion: refine, then the best of each line (Mander & Phillips 2024).

    `iterations`, `factor` and `legacy` are those of the solver `recursive`, the other settings
    those of `lisa_rowmask`.
    """
    return Recursive(iterations, factor, legacy)


@register("metric", "lisa_topk")
@_lisa_metric
def lisa_topk(iterations: int = 10, factor: float = 10.0) -> Solver:
    """LiSAScore by top-k: refine, then the highest cells anywhere (Mander & Phillips 2024).

    `iterations` and `factor` are those of the solver `topk`, the other settings those of
    `lisa_rowmask`.
    """
    return TopK(iterations, factor)


@register("metric", "lisa_auction")
@_lisa_metric
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
    long: LongTextMode = "truncate",
    trust_remote_code: bool = False,
) -> AlignMetric:
    """The cosine of the two texts' closing tokens, LiSAScore's baseline without alignment."""
    vectors = Transformer(model, layer, long=long, trust_remote_code=trust_remote_code)
    return AlignMetric(Closing(), vectors, alignment=Greedy(), scoring=Average())


@register("metric", "moverscore")
def moverscore(
    model: str = "minilm",
    layer: Layer = "last",
    version: Literal[1, 2] = 2,
    n_gram: int = 1,
    idf: bool | str = True,
    stop_words: tuple[str, ...] = (),
    long: LongTextMode = "truncate",
    trust_remote_code: bool = False,
) -> AlignMetric:
    """MoverScore: the earth mover's distance between two texts' pieces (Zhao et al. 2019).

    Pieces weigh by idf, counted from the call's candidates and references each for themselves;
    `idf` may also be False, or a table for both. `version` 1 joins the last five layers by power
    means, squares distances and takes their sum from 1, and is the one that knows `n_gram` above 1.
    """
    first = version == 1
    if n_gram > 1 and not first:
        raise InputError("moverscore's second version has no n-grams; say version=1, or n_gram=1")
    weighting = idf_weighting(idf)
    vectors = Mover(
        model,
        layer,
        layers=5 if first else 1,
        n_gram=n_gram,
        candidates=weighting,
        references=weighting,
        stop_words=stop_words,
        long=long,
        trust_remote_code=trust_remote_code,
    )
    return AlignMetric(Pieces(), vectors, Euclidean(squared=first), Emd(), Nearness(linear=first))


_GENDER_ADAPTER = "gender"


@register("metric", "wmt_blend")
def wmt_blend() -> Blend:
    """Eleven alignments and n-gram counts, weighed by people's ratings of WMT15 and WMT16 outputs.

    On the scale of those ratings, standardised: 0 is the mean output, 1 a deviation better.
    """
    made: Blend = read_metric(str(files("evenmatch.metrics") / "shipped" / "wmt_blend"))
    return made


# The adapter was trained for one model, up to the layer that the metrics read there.
@register("metric", "bertscore_even")
@with_settings_of(bertscore, "model", "layer", "adapter", "trust_remote_code")
def bertscore_even(**settings: Any) -> AlignMetric:
    """BERTScore on the embedded encoder with less gender bias, by the adapter `gender`."""
    return bertscore(adapter=_GENDER_ADAPTER, **settings)


@register("metric", "f_disc_even")
@with_settings_of(f_disc, "model", "layer", "adapter", "trust_remote_code")
def f_disc_even(**settings: Any) -> AlignMetric:
    """F_DISC on the embedded encoder with less gender bias, by the adapter `gender`."""
    return f_disc(adapter=_GENDER_ADAPTER, **settings)
