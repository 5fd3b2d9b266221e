"""calibrate: metrics brought to a human scale: one by a monotone map, several as a blend.

A calibrated metric on other ratings, beside the single metric it has to be better than.

A metric's scores onto the scale of ratings, order kept: isotonic regression.

Ridge regression of ratings on several metrics, and the choice of those worth having.

Everything is computed from sums of products, cell by cell (a subset, or a part of one), so that to
leave a cell out is to subtract its sums. Scores and ratings are centred within each cell: what is
learnt is to tell outputs of one subset apart, not the subsets.

Metrics' scores of rated outputs as one table, with the cells that cross-validation needs.
"""

from __future__ import annotations

import dataclasses
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
from evenmatch.evaluation.agreement_result import AgreementEntry, format_correlation
from evenmatch.protocols import Metric
from evenmatch.registry import spec
from evenmatch.scoring.ensembles import Blend, Monotone
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.scoring.saved import read_metric, write_portable_metric
from evenmatch.stats.panel import Floats, Indexes
from evenmatch.types import Pair, Run

# What to choose from where nothing is named: all of it comes from one pass of the texts through
# the embedded encoder, or from their letters.
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


_DIGITS = 6


@dataclass(frozen=True, slots=True)
class _Calibration:
    """A calibrated metric, the metric it is compared with, and how it was chosen."""

    metric: Metric
    single: Metric
    how: str
    table: TextTable


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
    """Bring metrics to the scale of ratings, save that as a metric in `out`, judge it on others.

    One metric gets a monotone map. Of several, parts are chosen one by one (at most `most`) and
    weighed by ridge regression; both choices are cross-validated, subset by subset where there are
    several. `test` are other ratings to judge by. The last metric may have been fitted to the same
    ratings if `stand_ins` names for each subset one that was fitted without it: its scores are what
    the last metric would say of outputs it has not seen. `run` is as in `score`.
    """
    folder, how = check_output_folder(out), make_run(**run)
    given = list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]
    if not given or most < 1:
        raise InputError("name at least one metric to calibrate, and allow at least one part")
    parts = [as_metric(metric) for metric in given]
    sets = as_rated_sets(data)
    rated = score_rated_outputs(
        parts, sets, how, seed=seed, stand_ins=_check_stand_ins(stand_ins, sets)
    )
    found = (
        _calibrate_single(parts[0], rated)
        if len(parts) == 1
        else _calibrate_blend(parts, rated, most)
    )
    written = write_portable_metric(folder, spec(found.metric))
    metric: Metric = read_metric(str(folder))
    facts = {
        "fitted on": f"{join_set_names(sets)} ({len(rated.ratings)} rated outputs)",
        "how": found.how,
        "metric": f"`{written}`",
    }
    judged: dict[str, TextTable] = {"What it is made of": found.table}
    document: dict[str, Any] = {}
    if test is not None:
        tables, document = evaluate_calibrated(
            metric, found.single, as_rated_sets(test), run, seed=seed
        )
        judged |= tables
    made = MetricCard(
        folder,
        "A metric calibrated by ratings",
        metric.signature,
        facts,
        judged,
        {"folder": str(folder), "signature": metric.signature, **facts, **document},
    )
    write_card(made)
    return made


def _check_stand_ins(
    stand_ins: Mapping[str, str | Metric], sets: Sequence[RatedSet]
) -> dict[str, Metric]:
    """Stand-ins for all subsets or none: what is known by heart somewhere is trusted everywhere."""
    names = [each.subset for each in sets]
    if stand_ins and set(stand_ins) != set(names):
        odd = sorted(set(names) ^ set(stand_ins))
        raise InputError(
            f"there must be a stand-in for every subset and for no other, check {', '.join(odd)}; "
            f"the subsets are {', '.join(names)}"
        )
    return {subset: as_metric(metric) for subset, metric in stand_ins.items()}


def _calibrate_single(metric: Metric, rated: CalibrationData) -> _Calibration:
    scaled = fit_monotone(metric, rated.scores[:, 0], rated.ratings)
    knots = zip(scaled.at, scaled.to, strict=True)
    table = [["score", "rating"], *([f"{a:.4f}", f"{t:.4f}"] for a, t in knots)]
    return _Calibration(scaled, metric, f"a monotone map with {len(scaled.at)} knots", table)


def _calibrate_blend(parts: Sequence[Metric], rated: CalibrationData, most: int) -> _Calibration:
    sums = sum_products(rated.scores, rated.ratings, rated.cells, rated.folds)
    chosen = select_parts(sums, most)
    at = list(chosen.parts)
    if not at:
        raise InputError("every metric gives all outputs about the same score; name others")
    weights = np.array([float(f"{w:.{_DIGITS}g}") for w in ridge_weights(sums, chosen)])
    bias = float((rated.ratings - rated.scores[:, at] @ weights).mean())
    metric = Blend(tuple(parts[i] for i in at), tuple(weights.tolist()), round(bias, _DIGITS))
    rows = [
        [metric_recipe(parts[i]), f"{w:.4g}", f"{value:.4f}"]
        for i, w, value in zip(at, weights, chosen.agreement, strict=True)
    ]
    how = (
        f"{len(at)} of {len(parts)} parts, chosen one by one by the mean correlation on parts of "
        f"the ratings left out ({len(rated.folds)} of them); ridge strength {chosen.strength:g}"
    )
    return _Calibration(metric, parts[at[0]], how, [["part", "weight", "agreement with it"], *rows])


def evaluate_calibrated(
    metric: Metric,
    single: Metric,
    sets: Sequence[RatedSet],
    run: Mapping[str, Any],
    *,
    seed: int,
) -> tuple[dict[str, TextTable], dict[str, Any]]:
    """Agreement of both with people and the difference: for people, and for programs.

    `single` is the metric that was calibrated, or the best of a blend's parts.
    """
    names = {metric_name(metric): "calibrated", metric_name(single): metric_recipe(single)}
    found = correlate([metric, single], sets, "segment", seed=seed, **run)
    pairs = [tuple(names)]
    by_set = agreement_differences(found, pairs)  # type: ignore[arg-type]  # two names
    more = [entry for rows in by_set for entry in rows]
    more += average_entries(by_set, [each.group for each in found.scored])
    entries = [replace(entry, metric=names[entry.metric]) for entry in found.entries]
    entries += [replace(entry, metric="difference") for entry in more]
    what = f"Agreement on other ratings: {join_set_names(sets)}"
    rows = [{k: v for k, v in asdict(e).items() if k != "cluster"} for e in entries]
    return {what: _agreement_table(entries)}, {"rows": rows}


def metric_recipe(metric: Metric) -> str:
    """What a metric is, models in folders by content: what a card can say on any machine."""
    return metric.signature.split(" · ")[0]


def _agreement_table(entries: Sequence[AgreementEntry]) -> TextTable:
    body = [
        [
            e.data,
            e.subset or "-",
            e.metric,
            *map(format_correlation, (e.value, e.low, e.high)),
            str(e.n),
        ]
        for e in entries
    ]
    return [["data", "subset", "metric", "r", "2.5%", "97.5%", "n"], *body]


MAX_KNOTS = 40


def fit_monotone(metric: Metric, scores: Floats, ratings: Floats) -> Monotone:
    """The metric on the scale of ratings, by the least squares of what goes one way.

    Scores are grouped into equal parts first, so that a knot rests on many ratings; the knots are
    the groups' means, those of one value joined into one.
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
            "the metric's scores do not go with the ratings, so there is no map between them; "
            "try another metric"
        )
    return Monotone(metric, tuple(knots[kept].tolist()), tuple(to[kept].tolist()))


# Shares of the number of ratings; the first that is best is taken.
RIDGE_STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1)


_MIN_GAIN = 5e-4  # what a part must add to the agreement to be taken


# Scores that differ less than this among themselves would get weights that magnify rounding.
_MIN_SCORE_STD = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class CellSums:
    """Products of standardised scores with each other and with ratings, for each cell."""

    scale: Floats  # (metrics,) what a score was divided by
    products: Floats  # (cells, metrics, metrics)
    with_ratings: Floats  # (cells, metrics)
    squares: Floats  # (cells,) of the ratings
    counts: Floats  # (cells,)
    folds: Indexes  # (cells,) which cells are left out together


@dataclass(frozen=True, slots=True)
class RidgeSelection:
    """Which metrics were taken, in that order, how strongly shrunk, and the agreement on the way.

    `agreement` is cross-validated: after each part taken, the mean over cells left out.
    """

    parts: tuple[int, ...]
    strength: float
    agreement: tuple[float, ...]


def sum_products(scores: Floats, ratings: Floats, cells: Indexes, folds: Indexes) -> CellSums:
    """The sums of scores (ratings, metrics), given each rating's cell and each cell's fold."""
    scale = scores.std(0)
    products, with_ratings, squares, counts = [], [], [], []
    for cell in range(len(folds)):
        own = cells == cell
        x = scores[own] / np.where(scale > 0, scale, 1.0)
        x, y = x - x.mean(0), ratings[own] - ratings[own].mean()
        products.append(x.T @ x)
        with_ratings.append(x.T @ y)
        squares.append(y @ y)
        counts.append(float(own.sum()))
    return CellSums(
        scale,
        np.array(products),
        np.array(with_ratings),
        np.array(squares),
        np.array(counts),
        folds,
    )


def solve_ridge(sums: CellSums, parts: Sequence[int], strength: float, cells: Floats) -> Floats:
    """The weights of standardised scores that fit the ratings of these cells."""
    at = np.array(parts)
    gram = np.tensordot(cells, sums.products[:, at[:, None], at], 1)
    shrunk = gram + strength * (cells @ sums.counts) * np.eye(len(at))
    found = np.linalg.solve(shrunk, cells @ sums.with_ratings[:, at])
    return np.asarray(found, dtype=np.float64)


def cross_validated_correlation(sums: CellSums, parts: Sequence[int], strength: float) -> float:
    """The mean correlation over cells, each fold judged by weights found without it."""
    at = np.array(parts)
    found = []
    for fold in np.unique(sums.folds):
        out = sums.folds == fold
        weights = solve_ridge(sums, parts, strength, (~out).astype(np.float64))
        for cell in np.flatnonzero(out):
            spread = weights @ sums.products[cell][at[:, None], at] @ weights * sums.squares[cell]
            if spread > 0:
                found.append(weights @ sums.with_ratings[cell][at] / np.sqrt(spread))
    return float(np.mean(found)) if found else 0.0


def select_parts(sums: CellSums, most: int) -> RidgeSelection:
    """Parts taken one by one, each the one that adds most, while it is worth it; at most `most`."""
    every = np.flatnonzero(sums.scale >= _MIN_SCORE_STD).tolist()
    best = RidgeSelection((), RIDGE_STRENGTHS[0], ())
    while len(best.parts) < most:
        tried = [
            (cross_validated_correlation(sums, (*best.parts, part), strength), part, strength)
            for part in every
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


def ridge_weights(sums: CellSums, chosen: RidgeSelection) -> Floats:
    """The weights of the chosen parts' own scores, from all ratings."""
    everything = np.ones(len(sums.folds))
    weights = solve_ridge(sums, chosen.parts, chosen.strength, everything)
    found: Floats = weights / sums.scale[np.array(chosen.parts)]
    return found


N_FOLDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationData:
    """Scores (outputs, metrics) beside ratings; each output's cell, and each cell's fold."""

    scores: Floats
    ratings: Floats
    cells: Indexes
    folds: Indexes


def score_rated_outputs(
    metrics: Sequence[Metric],
    sets: Sequence[RatedSet],
    run: Run,
    *,
    seed: int,
    stand_ins: Mapping[str, Metric] = MappingProxyType({}),
) -> CalibrationData:
    """All metrics over all rated outputs of machines, in one pass.

    With several subsets each is a cell and a fold of its own; of one, parts of its segments are.
    On a subset that has one of the `stand_ins`, that gives the scores of the last metric.
    """
    pairs: list[Pair] = []
    ratings: list[float] = []
    owners: list[int] = []
    segments: list[str] = []
    for number, each in enumerate(given.exclude_humans() for given in sets):
        cells = each.cells(rated=True)
        pairs += [dataclasses.replace(p, references=p.references[:1]) for p in each.pairs(cells)]
        ratings += each.ratings[cells].tolist()
        owners += [number] * len(cells[0])
        segments += [each.segments[i] for i in cells[1]]
    if len(set(ratings)) < 2:
        raise InputError(f"{len(ratings)} ratings, all alike or none, are nothing to calibrate by")
    found = score_metrics(metrics, pairs, run)
    scores = np.array([[score.value for score in each.segments] for each in found]).T
    for subset, metric in stand_ins.items():
        rows = [i for i, owner in enumerate(owners) if sets[owner].subset == subset]
        again = score_metrics([metric], [pairs[i] for i in rows], run)[0]
        scores[rows, -1] = [score.value for score in again.segments]
    cells_of = np.array(owners) if len(set(owners)) > 1 else _segment_folds(segments, seed)
    numbers, cells_of = np.unique(cells_of, return_inverse=True)
    return CalibrationData(scores, np.array(ratings), cells_of, np.arange(len(numbers)))


def _segment_folds(segments: Sequence[str], seed: int) -> Indexes:
    names = list(dict.fromkeys(segments))
    if len(names) < 2 * N_FOLDS:
        raise InputError(
            f"{len(names)} segments are too few to hold some out; give at least {2 * N_FOLDS}"
        )
    order = np.random.default_rng(seed).permutation(len(names))
    part = dict(zip((names[i] for i in order), np.arange(len(names)) % N_FOLDS, strict=True))
    return np.array([part[name] for name in segments], dtype=np.intp)
