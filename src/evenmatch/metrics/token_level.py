"""Token-level alignment metrics by name, each a choice of parts for `AlignMetric`.

BERTScore, F_DISC and F_CONT come first, then the baseline `eot`, MoverScore and LiSAScore. The last
three are trained with evenmatch and shipped with it: a blend fitted to WMT ratings, and two metrics
with an adapter against gender bias. The latter are `bertscore` and `f_disc` with some settings
fixed (`with_settings_of`); use the same function for other variants of a metric.
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
from evenmatch.scoring.reducers import Average, Nearness
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
    """BERTScore: match every token with its most similar one (Zhang et al. 2020).

    Equal to the bert_score package at batch size 1: special tokens can be matched to but have
    weight 0; `marks` leaves them out if False. `idf` weights tokens by inverse document frequency:
    True counts the call's references, a string names a table. `adapter` loads an adapter trained
    by `evenmatch debias`.
    """
    return _transformer_metric(
        Greedy(), Uniform(), model, layer, idf, marks, long, trust_remote_code, adapter
    )


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
    """F_DISC: one-to-one alignment with the greatest total similarity (Jin & Gildea 2022)."""
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
    """F_CONT: optimal transport with vector norms as token masses (Jin & Gildea 2022)."""
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
        weights=_idf_weighting(idf),
        mass=mass,
        long=long,
        trust_remote_code=trust_remote_code,
        adapter=adapter,
    )
    return AlignMetric(Pieces(marks=marks), vectors, alignment=solver)


def _idf_weighting(idf: bool | str) -> Weighting:
    """The weighting for a metric's `idf` setting: counted, from a table, or uniform."""
    if isinstance(idf, str):
        return Idf(idf)
    return Idf() if idf else Uniform()


@register("metric", "eot")
def eot(
    model: str = "minilm",
    layer: Layer = "last",
    long: LongTextMode = "truncate",
    trust_remote_code: bool = False,
) -> AlignMetric:
    """Cosine similarity of the end-of-text tokens of two texts, the baseline of LiSAScore."""
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
    """MoverScore: the earth mover's distance between the tokens of two texts (Zhao et al. 2019).

    `idf` weights tokens by inverse document frequency: True counts the call's candidates and its
    references separately, a string names one table for both. `version` 1 combines the last five
    layers by power means, squares the distances and scores 1 minus their sum. `n_gram` above 1
    needs version 1. `stop_words` are left out.
    """
    first = version == 1
    if n_gram > 1 and not first:
        raise InputError(
            "moverscore's second version has no n-grams; set version=1, or leave n_gram at 1"
        )
    weighting = _idf_weighting(idf)
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


# LiSAScore: BERTScore with approximate one-to-one assignment, one metric per solver


def _padded_transformer(
    model: str = "minilm",
    layer: Layer = "auto",
    idf: bool | str = False,
    include_padding: int = 0,
    long: LongTextMode = "truncate",
    trust_remote_code: bool = False,
) -> Transformer:
    return Transformer(
        model,
        layer,
        weights=_idf_weighting(idf),
        long=long,
        trust_remote_code=trust_remote_code,
        pad_to=include_padding,
    )


def _lisa_metric(solver: Callable[..., Solver]) -> Callable[..., AlignMetric]:
    """Make a metric with the settings of `_padded_transformer`, followed by those of its solver.

    Specs read the settings of a metric from its signature, so the signature is composed here.
    """
    shared, own = (
        dict(inspect.signature(f, eval_str=True).parameters) for f in (_padded_transformer, solver)
    )
    settings = inspect.Signature(list((shared | own).values()))

    @functools.wraps(solver)
    def make(*args: Any, **kwargs: Any) -> AlignMetric:
        bound = settings.bind(*args, **kwargs).arguments
        vectors = _padded_transformer(**{k: v for k, v in bound.items() if k in shared})
        chosen = solver(**{k: v for k, v in bound.items() if k in own})
        return AlignMetric(Pieces(marks=True), vectors, alignment=chosen)

    make.__signature__ = settings  # type: ignore[attr-defined]  # inspect reads this first
    make.__annotations__ = {k: p.annotation for k, p in settings.parameters.items()}
    return make


@register("metric", "lisa_rowmask")
@_lisa_metric
def lisa_rowmask() -> Solver:
    """LiSAScore by row masking: one-to-one, most urgent pair first (Mander & Phillips 2024).

    Special tokens can be matched to but have weight 0. `include_padding` pads every text to that
    many tokens, as the paper does to create repetition; padding tokens can be matched to as well.
    """
    return RowMask()


@register("metric", "lisa_recursive")
@_lisa_metric
def lisa_recursive(iterations: int = 10, factor: float = 0.8, legacy: bool = False) -> Solver:
    """LiSAScore by recursion: refine, then take each line's maximum (Mander & Phillips 2024).

    `iterations`, `factor` and `legacy` are settings of the solver `recursive`; the others are those
    of `lisa_rowmask`.
    """
    return Recursive(iterations, factor, legacy)


@register("metric", "lisa_topk")
@_lisa_metric
def lisa_topk(iterations: int = 10, factor: float = 10.0) -> Solver:
    """LiSAScore by top-k: refine, then take the highest cells (Mander & Phillips 2024).

    `iterations` and `factor` are settings of the solver `topk`; the others are those of
    `lisa_rowmask`.
    """
    return TopK(iterations, factor)


@register("metric", "lisa_auction")
@_lisa_metric
def lisa_auction(iterations: int | Literal["short"] = "short", factor: float = 1.0) -> Solver:
    """LiSAScore by auction: refine at full strength (Mander & Phillips 2024).

    `iterations` and `factor` are settings of the solver `auction`; the others are those of
    `lisa_rowmask`.
    """
    return Auction(iterations, factor)


# Metrics that were trained with evenmatch and are shipped with it


@register("metric", "wmt_blend")
def wmt_blend() -> Blend:
    """Blend of eleven alignment and n-gram metrics, fitted to human ratings of WMT15 and WMT16.

    Scores are on the scale of the standardised ratings: 0 is an average output, and 1 is one
    standard deviation better.
    """
    metric: Blend = read_metric(str(files("evenmatch.metrics") / "shipped" / "wmt_blend"))
    return metric


_GENDER_ADAPTER = "gender"


# The adapter was trained for one model, up to the layer the metrics read, so neither can be set.
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
