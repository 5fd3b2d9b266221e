"""Metrics by name: each a row of parts."""

from __future__ import annotations

from evenmatch.alignment.assign import Greedy, Lsa
from evenmatch.alignment.transport import Emd
from evenmatch.registry import register
from evenmatch.scoring.metric import AlignMetric
from evenmatch.types import Solver, Weighting
from evenmatch.units.pieces import Pieces
from evenmatch.vectors.layers import Layer
from evenmatch.vectors.pretrained import Long
from evenmatch.vectors.transformer import Transformer
from evenmatch.vectors.weighting import Idf, Norm, Uniform


@register("metric", "bertscore")
def bertscore(
    model: str = "minilm",
    layer: Layer = "auto",
    idf: bool | str = False,
    marks: bool = True,
    long: Long = "truncate",
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
    long: Long = "truncate",
    trust_remote_code: bool = False,
    adapter: str = "",
) -> AlignMetric:
    """F_DISC: one-to-one alignment of greatest total similarity (Jin & Gildea 2022)."""
    return _optimized(Lsa(), Uniform(), model, layer, idf, marks, long, trust_remote_code, adapter)


@register("metric", "f_cont")
def f_cont(
    model: str = "minilm",
    layer: Layer = "auto",
    idf: bool | str = False,
    marks: bool = False,
    long: Long = "truncate",
    trust_remote_code: bool = False,
    mass: Weighting = Norm(),
    solver: Solver = Emd(),
    adapter: str = "",
) -> AlignMetric:
    """F_CONT: optimal transport, each piece as heavy as its vector is long (Jin & Gildea 2022)."""
    return _optimized(solver, mass, model, layer, idf, marks, long, trust_remote_code, adapter)


def _optimized(
    solver: Solver,
    mass: Weighting,
    model: str,
    layer: Layer,
    idf: bool | str,
    marks: bool,
    long: Long,
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
