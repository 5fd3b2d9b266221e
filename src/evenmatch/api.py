"""High-level functions: score texts, align two texts, solve an alignment problem.

`score`, `align`, `solve` and `solve_batch` are the functions that `evenmatch` exports.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any, overload

import numpy as np

from evenmatch.errors import InputError
from evenmatch.protocols import MetricLike, Solver, TextColumn
from evenmatch.registry import build, kind_of, spec
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.aligned import Aligned, align_texts
from evenmatch.scoring.inputs import (
    hash_texts,
    make_pairs,
    make_run,
    warn_of_misreadings,
    warn_of_truncation,
)
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.types import Alignment, Array, Problem, Scores


@overload
def score(
    candidates: Sequence[str] | TextColumn,
    references: Sequence[str] | Sequence[Sequence[str]] | TextColumn,
    metric: MetricLike = "bertscore",
    *,
    sources: Sequence[str] | TextColumn | None = None,
    **run: Any,
) -> Scores: ...


@overload
def score(
    candidates: Sequence[str] | TextColumn,
    references: Sequence[str] | Sequence[Sequence[str]] | TextColumn,
    metric: Sequence[MetricLike],
    *,
    sources: Sequence[str] | TextColumn | None = None,
    **run: Any,
) -> dict[str, Scores]: ...


def score(
    candidates: Sequence[str] | TextColumn,
    references: Sequence[str] | Sequence[Sequence[str]] | TextColumn,
    metric: MetricLike | Sequence[MetricLike] = "bertscore",
    *,
    sources: Sequence[str] | TextColumn | None = None,
    **run: Any,
) -> Scores | dict[str, Scores]:
    """Score each candidate against its reference, or the best of its references.

    Texts are lists of strings or columns of a polars or pandas frame. `metric` is a name, a spec, a
    folder, a part, or a list of those. The default, `bertscore`, is the best alignment metric, or
    close to it, in agreement with human ratings, also where lengths differ. The metrics of a list
    share one pass over the texts, and the result is a dictionary of scores by metric.

    `run` settings control the execution: `device`, such as 'cuda:0'; `threads`; `batch_tokens`, the
    size of a forward pass; `cache`, which stores vectors on disk (True: rounded, changes most
    scores by less than 1e-5; 'exact'; or a folder); `progress`, True or a function of (done,
    total); `on`, a session of workers. None but a rounding cache changes a score.

    >>> round(score(["a b"], ["a b c"], "align(vectors=hashed, alignment=lsa)").mean, 6)
    0.8
    """
    pairs = make_pairs(candidates, references, sources)
    given = list(metric) if isinstance(metric, (list, tuple)) else [metric]
    if not given:
        raise InputError("the list of metrics is empty; name at least one")
    if not pairs:
        raise InputError("nothing to score: the lists of candidates and references are empty")
    metrics = [as_metric(m) for m in given]
    warn_of_misreadings(metrics, pairs)
    texts = hash_texts(pairs)
    scored = score_metrics(metrics, pairs, make_run(**run))
    found = [dataclasses.replace(scores, texts=texts) for scores in scored]
    warn_of_truncation(found)
    if not isinstance(metric, (list, tuple)):
        return found[0]
    return {metric_name(m): s for m, s in zip(given, found, strict=True)}


def align(candidate: str, reference: str, metric: MetricLike = "f_disc") -> Aligned:
    """Align the units of one candidate with the units of one reference.

    The default, `f_disc`, is one-to-one: each unit has at most one partner, and those without one
    are visible.
    """
    for name, text in (("candidate", candidate), ("reference", reference)):
        if not isinstance(text, str):
            raise InputError(f"the {name} must be a string, got {type(text).__name__}")
    aligned = align_texts(candidate, reference, as_metric(metric))
    return dataclasses.replace(aligned, html_renderer=_to_html)


def solve(
    similarity: Array,
    solver: str | Solver,
    row_mass: Array | None = None,
    col_mass: Array | None = None,
) -> Alignment:
    """Align one similarity matrix; every row and column has mass 1 unless given.

    >>> solve([[1.0, 0.9], [0.9, 0.1]], "lsa").rows
    array([[0., 1.],
           [1., 0.]])
    """
    problem = _make_problem(similarity, row_mass, col_mass)
    return as_solver(solver)([problem])[0]


@check_arguments
def solve_batch(similarities: Sequence[Array], solver: str | Solver) -> list[Alignment]:
    """Align several similarity matrices of any sizes; the results are in the same order."""
    return as_solver(solver)([_make_problem(s, None, None) for s in similarities])


def metric_name(metric: Any) -> str:
    """Return the key of a metric in a dictionary of scores: the given string, spec or signature."""
    if isinstance(metric, (str, PathLike)):
        return fspath(metric)
    as_metric(metric)  # raises an error for anything else
    try:
        return spec(metric)
    except InputError:  # built from parts that are not registered
        return str(metric.signature)


def as_solver(given: str | Solver) -> Solver:
    """Return a solver given its name, its spec or an instance."""
    solver = build(given, "alignment") if isinstance(given, str) else given
    if isinstance(solver, type):
        raise InputError(f"expected a solver, got a class; create an instance: {solver.__name__}()")
    if kind_of(solver) not in ("alignment", None) or not callable(solver):
        raise InputError(
            f"expected a solver, got {given!r}; `evenmatch list alignment` shows those available"
        )
    return solver


def _to_html(aligned: Aligned) -> str:
    from evenmatch.viewer.page import alignment_fragment

    return alignment_fragment(aligned)


def _make_problem(similarity: Array, row_mass: Array | None, col_mass: Array | None) -> Problem:
    matrix = _check_array("similarity", similarity, 2)
    masses = []
    for name, mass, count in (
        ("row_mass", row_mass, matrix.shape[0]),
        ("col_mass", col_mass, matrix.shape[1]),
    ):
        given = np.ones(count) if mass is None else _check_array(name, mass, 1)
        if len(given) != count or (given < 0).any():
            raise InputError(f"{name} needs {count} non-negative numbers, got {given.tolist()}")
        masses.append(given)
    return Problem(matrix, *masses)


def _check_array(name: str, value: Array, dimensions: int) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must contain only numbers, in rows of equal length") from None
    if array.ndim != dimensions:
        raise InputError(f"{name} must have {dimensions} dimensions, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} contains a value that is not finite (NaN or infinity)")
    return array
