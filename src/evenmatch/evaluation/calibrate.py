"""Calibration of metrics to human ratings: isotonic regression of one, ridge regression of several.

`calibrate` is the entry point. A single metric is mapped onto the scale of the ratings by isotonic
regression (`fit_monotone`). Of several, parts are selected greedily (`select_parts`) and weighted
by ridge regression (`solve_ridge`), cross-validated.

The regression works on sums of products for each cell (a subset, or a fold of one), so that
leaving a cell out means subtracting its sums. Scores and ratings are centred within each cell: the
weights are learned from differences within subsets, not between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy as np

from evenmatch.api import metric_name
from evenmatch.data.cards import MetricCard, check_output_folder, write_card
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.reading import RatingsLike, as_rated_sets, join_set_names
from evenmatch.data.tables import TextTable
from evenmatch.errors import InputError
from evenmatch.evaluation.agreement import agreement_differences, average_entries, correlate
from evenmatch.evaluation.layer_selection import assign_folds
from evenmatch.protocols import Metric
from evenmatch.registry import spec
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.ensembles import Blend, Monotone
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import as_metric, read_metric, score_metrics, write_portable_metric
from evenmatch.stats.panel import Floats, Indexes
from evenmatch.types import Pair, Run

# Default candidates: all of them need one forward pass of the embedded encoder, or only the text.
DEFAULT_PARTS = (
    *(f"f_cont(layer={layer})" for layer in range(1, 7)),
    "f_disc(layer=4)",
    "bertscore(layer=4)",
    "bertscore(layer=6)",
    "align(units=opening, vectors=transformer(layer=6), scoring=average)",
    *(
        f"align(units=whole_text, vectors=transformer(layer={layer}, pool='mean'), scoring=average)"
        for layer in (4, 6)
    ),
    *(f"align(vectors=transformer(layer={layer}), scoring=worst)" for layer in (2, 4, 6)),
    "chrf",
    "chrf(word_order=2)",
    "rouge1",
    "ter",
    "reference_length",
)

MAX_KNOTS = 40
N_FOLDS = 5
# Ridge penalties as fractions of the number of ratings; on ties the first is used.
RIDGE_STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1)

_MIN_GAIN = 5e-4  # smallest increase in agreement for which a part is added
# Metrics whose scores vary less than this would get weights that amplify rounding errors.
_MIN_SCORE_STD = 1e-3

_DIGITS = 6


@check_arguments
def calibrate(
    data: RatingsLike,
    out: str | PathLike[str],
    metrics: str | Metric | Sequence[str | Metric] = DEFAULT_PARTS,
    *,
    test: RatingsLike | None = None,
    stand_ins: Mapping[str, str | Metric] = MappingProxyType({}),
    most: int = 16,
    seed: int = 0,
    **run: Any,
) -> MetricCard:
    """Calibrate metrics to human ratings, save the result as a metric in `out`, and evaluate it.

    A single metric gets a monotone map. Of several metrics, parts are selected one by one (at most
    `most`) and weighted by ridge regression. The parts and the ridge strength are chosen by
    cross-validation, over subsets where there are several. `test` are other ratings to evaluate on.

    The last metric may have been fitted to the same ratings if `stand_ins` gives, for each subset,
    a metric fitted without that subset. Its scores there replace those of the last metric, which
    would be too good on outputs it was fitted to. `run` takes the run settings of `score`.
    """
    folder, how = check_output_folder(out), make_run(**run)
    given = list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]
    if not given or most < 1:
        raise InputError(
            "calibration needs at least one metric and most of at least 1, got "
            f"{len(given)} metrics and most={most}"
        )
    parts = [as_metric(metric) for metric in given]
    sets = as_rated_sets(data)
    scores, ratings, cells = score_rated_outputs(
        parts, sets, how, seed=seed, stand_ins=_check_stand_ins(stand_ins, sets)
    )
    fitted: Monotone | Blend
    table: TextTable
    if len(parts) == 1:
        fitted, single = fit_monotone(parts[0], scores[:, 0], ratings), parts[0]
        method = f"a monotone map with {len(fitted.at)} knots"
        knots = zip(fitted.at, fitted.to, strict=True)
        table = [["score", "rating"], *([f"{a:.4f}", f"{t:.4f}"] for a, t in knots)]
    else:
        fitted, method, table = _fit_blend(parts, scores, ratings, cells, most)
        single = fitted.parts[0]
    written = write_portable_metric(folder, spec(fitted))
    metric: Metric = read_metric(str(folder))
    facts = {
        "fitted on": f"{join_set_names(sets)} ({len(ratings)} rated outputs)",
        "how": method,
        "metric": f"`{written}`",
    }
    judged: dict[str, TextTable] = {"Parts": table}
    document: dict[str, Any] = {}
    if test is not None:
        tables, document = evaluate_calibrated(metric, single, as_rated_sets(test), run, seed=seed)
        judged |= tables
    card = MetricCard(
        folder,
        "A metric calibrated by ratings",
        metric.signature,
        facts,
        judged,
        {"folder": str(folder), "signature": metric.signature, **facts, **document},
    )
    write_card(card)
    return card


def evaluate_calibrated(
    metric: Metric,
    single: Metric,
    sets: Sequence[RatedSet],
    run: Mapping[str, Any],
    *,
    seed: int,
) -> tuple[dict[str, TextTable], dict[str, Any]]:
    """Measure the agreement of both metrics with human ratings, and the difference.

    `single` is the metric that was calibrated, or the first part of a blend. Returns the tables of
    the card and the same numbers as JSON.
    """
    names = {metric_name(metric): "calibrated", metric_name(single): metric_recipe(single)}
    found = correlate([metric, single], sets, "segment", seed=seed, **run)
    by_set = agreement_differences(found, [(metric_name(metric), metric_name(single))])
    more = [entry for rows in by_set for entry in rows]
    more += average_entries(by_set, [each.group for each in found.scored])
    entries = [replace(entry, metric=names[entry.metric]) for entry in found.entries]
    entries += [replace(entry, metric="difference") for entry in more]
    what = f"Agreement on other ratings: {join_set_names(sets)}"
    rows = [{k: v for k, v in asdict(e).items() if k != "cluster"} for e in entries]
    header = ["data", "subset", "metric", "r", "2.5%", "97.5%", "n"]
    return {what: [header, *(entry.cells() for entry in entries)]}, {"rows": rows}


def metric_recipe(metric: Metric) -> str:
    """The spec of a metric with content hashes in place of local model paths."""
    return metric.signature.split(" · ")[0]


def score_rated_outputs(
    metrics: Sequence[Metric],
    sets: Sequence[RatedSet],
    run: Run,
    *,
    seed: int,
    stand_ins: Mapping[str, Metric],
) -> tuple[Floats, Floats, Indexes]:
    """Score all rated outputs with all metrics in one pass; human references are excluded.

    Returns scores (outputs, metrics), ratings, and the cell of each output. Each of several subsets
    is a cell; a single subset is divided by segments. On a subset with a stand-in, that metric's
    scores replace those of the last metric.
    """
    pairs: list[Pair] = []
    ratings: list[float] = []
    owners: list[int] = []
    segments: list[str] = []
    for number, each in enumerate(given.exclude_humans() for given in sets):
        cells = each.cells(rated=True)
        pairs += [replace(p, references=p.references[:1]) for p in each.pairs(cells)]
        ratings += each.ratings[cells].tolist()
        owners += [number] * len(cells[0])
        segments += [each.segments[i] for i in cells[1]]
    if len(set(ratings)) < 2:
        raise InputError(
            f"calibration needs at least two different ratings, got {len(ratings)} ratings "
            f"with {len(set(ratings))} distinct values"
        )
    found = score_metrics(metrics, pairs, run)
    scores = np.array([[score.value for score in each.segments] for each in found]).T
    for subset, metric in stand_ins.items():
        rows = [i for i, owner in enumerate(owners) if sets[owner].subset == subset]
        replaced = score_metrics([metric], [pairs[i] for i in rows], run)[0]
        scores[rows, -1] = [score.value for score in replaced.segments]
    if len(set(owners)) > 1:
        cell_of = np.array(owners)
    elif len(set(segments)) < 2 * N_FOLDS:
        raise InputError(
            f"{len(set(segments))} segments are too few for cross-validation; "
            f"give at least {2 * N_FOLDS}"
        )
    else:
        (cell_of,) = assign_folds([segments], N_FOLDS, seed)
    return scores, np.array(ratings), np.unique(cell_of, return_inverse=True)[1]


def fit_monotone(metric: Metric, scores: Floats, ratings: Floats) -> Monotone:
    """Map the scores of a metric to ratings by isotonic regression (monotone least squares).

    Scores are first divided into at most `MAX_KNOTS` groups of equal size, so that each knot is
    based on many ratings. The knots are the means of the groups; groups with the same fitted value
    are merged.
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(scores, kind="stable")
    groups = np.array_split(order, min(MAX_KNOTS, len(order)))
    at = np.array([scores[g].mean() for g in groups])
    means = np.array([ratings[g].mean() for g in groups])
    sizes = np.array([float(len(g)) for g in groups])
    fitted = isotonic_regression(means, weights=sizes, increasing=metric.higher_is_better)
    edges = np.asarray(fitted.blocks)[:-1]
    total = np.add.reduceat(sizes, edges)
    knots = np.round(np.add.reduceat(at * sizes, edges) / total, _DIGITS)
    to = np.round(np.asarray(fitted.x)[edges], _DIGITS)
    kept = np.concatenate([[True], np.diff(knots) > 0])
    if kept.sum() < 2 or to[kept][0] == to[kept][-1]:
        raise InputError(
            "the metric's scores are not correlated with the ratings, so they cannot be mapped to "
            "them; try another metric"
        )
    return Monotone(metric, tuple(knots[kept].tolist()), tuple(to[kept].tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class CellSums:
    """Sums of products of standardised scores with each other and with ratings, for each cell."""

    scale: Floats  # (metrics,) standard deviation that scores were divided by
    products: Floats  # (cells, metrics, metrics)
    with_ratings: Floats  # (cells, metrics)
    squares: Floats  # (cells,) of the ratings
    counts: Floats  # (cells,)


@dataclass(frozen=True, slots=True)
class RidgeSelection:
    """Selected parts in order of selection, the ridge strength, and the agreement after each.

    `agreement` is cross-validated: the mean correlation over held-out cells.
    """

    parts: tuple[int, ...]
    strength: float
    agreement: tuple[float, ...]


def sum_products(scores: Floats, ratings: Floats, cells: Indexes) -> CellSums:
    """Sum the products of scores (ratings, metrics) with each other and with ratings, by cell."""
    scale = scores.std(0)
    products, with_ratings, squares = [], [], []
    for cell in range(cells.max() + 1):
        in_cell = cells == cell
        x = scores[in_cell] / np.where(scale > 0, scale, 1.0)
        x, y = x - x.mean(0), ratings[in_cell] - ratings[in_cell].mean()
        products.append(x.T @ x)
        with_ratings.append(x.T @ y)
        squares.append(y @ y)
    sums = np.array(products), np.array(with_ratings), np.array(squares)
    return CellSums(scale, *sums, np.bincount(cells).astype(np.float64))


def select_parts(sums: CellSums, most: int) -> RidgeSelection:
    """Select at most `most` parts greedily, each time the one that increases agreement most.

    Selection ends when the increase is smaller than `_MIN_GAIN`.
    """
    usable = np.flatnonzero(sums.scale >= _MIN_SCORE_STD).tolist()
    best = RidgeSelection((), RIDGE_STRENGTHS[0], ())
    while len(best.parts) < most:
        tried = [
            (cross_validated_correlation(sums, (*best.parts, part), strength), part, strength)
            for part in usable
            if part not in best.parts
            for strength in RIDGE_STRENGTHS
        ]
        if not tried:
            break
        value, part, strength = max(tried, key=lambda each: each[0])
        if best.agreement and value < best.agreement[-1] + _MIN_GAIN:
            break
        best = RidgeSelection((*best.parts, part), strength, (*best.agreement, value))
    return best


def cross_validated_correlation(sums: CellSums, parts: Sequence[int], strength: float) -> float:
    """Mean correlation over cells, each evaluated with weights fitted without it."""
    at = np.array(parts)
    found = []
    for cell, others in enumerate(1.0 - np.eye(len(sums.counts))):
        weights = solve_ridge(sums, parts, strength, others)
        variance = weights @ sums.products[cell][at[:, None], at] @ weights * sums.squares[cell]
        if variance > 0:
            found.append(weights @ sums.with_ratings[cell][at] / np.sqrt(variance))
    return float(np.mean(found)) if found else 0.0


def solve_ridge(sums: CellSums, parts: Sequence[int], strength: float, cells: Floats) -> Floats:
    """Ridge weights of standardised scores; `cells` is 1 for each cell to fit to, else 0."""
    at = np.array(parts)
    gram = np.tensordot(cells, sums.products[:, at[:, None], at], 1)
    shrunk = gram + strength * (cells @ sums.counts) * np.eye(len(at))
    found = np.linalg.solve(shrunk, cells @ sums.with_ratings[:, at])
    return np.asarray(found, dtype=np.float64)


def ridge_weights(sums: CellSums, chosen: RidgeSelection) -> Floats:
    """Weights of the unstandardised scores of the selected parts, fitted to all ratings."""
    all_cells = np.ones(len(sums.counts))
    weights = solve_ridge(sums, chosen.parts, chosen.strength, all_cells)
    found: Floats = weights / sums.scale[np.array(chosen.parts)]
    return found


def _check_stand_ins(
    stand_ins: Mapping[str, str | Metric], sets: Sequence[RatedSet]
) -> dict[str, Metric]:
    """Build the stand-ins; there must be one for every subset, or none at all.

    On a subset without one, the fitted metric's scores would be too good and its weight too high.
    """
    names = [each.subset for each in sets]
    if stand_ins and set(stand_ins) != set(names):
        unmatched = sorted(set(names) ^ set(stand_ins))
        raise InputError(
            "there must be a stand-in for every subset and for no other, check "
            f"{', '.join(unmatched)}; the subsets are {', '.join(names)}"
        )
    return {subset: as_metric(metric) for subset, metric in stand_ins.items()}


def _fit_blend(
    parts: Sequence[Metric], scores: Floats, ratings: Floats, cells: Indexes, most: int
) -> tuple[Blend, str, TextTable]:
    """Fit a blend of selected parts; return it with how they were selected, and a table of them."""
    sums = sum_products(scores, ratings, cells)
    chosen = select_parts(sums, most)
    at = list(chosen.parts)
    if not at:
        raise InputError("every metric gives all outputs nearly the same score; give others")
    weights = np.array([float(f"{w:.{_DIGITS}g}") for w in ridge_weights(sums, chosen)])
    bias = float((ratings - scores[:, at] @ weights).mean())
    metric = Blend(tuple(parts[i] for i in at), tuple(weights.tolist()), round(bias, _DIGITS))
    rows = [
        [metric_recipe(parts[i]), f"{w:.4g}", f"{value:.4f}"]
        for i, w, value in zip(at, weights, chosen.agreement, strict=True)
    ]
    how = (
        f"{len(at)} of {len(parts)} parts, selected one by one by the mean correlation on held-out "
        f"ratings ({len(sums.counts)} folds); ridge strength {chosen.strength:g}"
    )
    header = ["part", "weight", "agreement with it added"]
    return metric, how, [header, *rows]
