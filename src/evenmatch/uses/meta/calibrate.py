"""calibrate: metrics brought to a human scale: one by a monotone map, several as a blend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy as np

from evenmatch.data.cards import Made, check_out, write_card
from evenmatch.data.ratings import RatedSet
from evenmatch.data.ratings_reading import Ratings, as_sets, names_of
from evenmatch.data.tables import Table
from evenmatch.errors import InputError
from evenmatch.registry import spec
from evenmatch.scoring.blend import Blend
from evenmatch.scoring.saved import read_metric, write_whole
from evenmatch.scoring.settings import make_run
from evenmatch.scoring.together import as_metric
from evenmatch.types import Metric
from evenmatch.uses.meta.calibrate_judging import judge, recipe_of
from evenmatch.uses.meta.calibrate_monotone import monotone
from evenmatch.uses.meta.calibrate_ridge import choose, gather, weigh
from evenmatch.uses.meta.calibrate_scores import Rated, score_rated

# What to choose from where nothing is named: all of it comes from one pass of the texts through
# the embedded encoder, or from their letters.
PARTS = (
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
class _Found:
    """A calibrated metric, the metric it is compared with, and how it was chosen."""

    metric: Metric
    single: Metric
    how: str
    table: Table


def calibrate(
    data: Ratings,
    out: str | PathLike[str],
    metrics: str | Metric | Sequence[str | Metric] = PARTS,
    *,
    test: Ratings | None = None,
    stand_ins: Mapping[str, str | Metric] = MappingProxyType({}),
    most: int = 16,
    seed: int = 0,
    **run: Any,
) -> Made:
    """Bring metrics to the scale of ratings, save that as a metric in `out`, judge it on others.

    One metric gets a monotone map. Of several, parts are chosen one by one (at most `most`) and
    weighed by ridge regression; both choices are cross-validated, subset by subset where there are
    several. `test` are other ratings to judge by. The last metric may have been fitted to the same
    ratings if `stand_ins` names for each subset one that was fitted without it: its scores are what
    the last metric would say of outputs it has not seen. `run` is as in `score`.
    """
    folder, how = check_out(out), make_run(**run)
    given = list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]
    if not given or most < 1:
        raise InputError("name at least one metric to calibrate, and allow at least one part")
    parts = [as_metric(metric) for metric in given]
    sets = as_sets(data)
    rated = score_rated(parts, sets, how, seed=seed, stand_ins=_checked(stand_ins, sets))
    found = _mapped(parts[0], rated) if len(parts) == 1 else _blended(parts, rated, most)
    written = write_whole(folder, spec(found.metric))
    metric: Metric = read_metric(str(folder))
    facts = {
        "fitted on": f"{names_of(sets)} ({len(rated.ratings)} rated outputs)",
        "how": found.how,
        "metric": f"`{written}`",
    }
    judged: dict[str, Table] = {"What it is made of": found.table}
    document: dict[str, Any] = {}
    if test is not None:
        tables, document = judge(metric, found.single, as_sets(test), run, seed=seed)
        judged |= tables
    made = Made(
        folder,
        "A metric calibrated by ratings",
        metric.signature,
        facts,
        judged,
        {"folder": str(folder), "signature": metric.signature, **facts, **document},
    )
    write_card(made)
    return made


def _checked(stand_ins: Mapping[str, str | Metric], sets: Sequence[RatedSet]) -> dict[str, Metric]:
    """Stand-ins for all subsets or none: what is known by heart somewhere is trusted everywhere."""
    names = [each.subset for each in sets]
    if stand_ins and set(stand_ins) != set(names):
        odd = sorted(set(names) ^ set(stand_ins))
        raise InputError(
            f"there must be a stand-in for every subset and for no other, check {', '.join(odd)}; "
            f"the subsets are {', '.join(names)}"
        )
    return {subset: as_metric(metric) for subset, metric in stand_ins.items()}


def _mapped(metric: Metric, rated: Rated) -> _Found:
    scaled = monotone(metric, rated.scores[:, 0], rated.ratings)
    knots = zip(scaled.at, scaled.to, strict=True)
    table = [["score", "rating"], *([f"{a:.4f}", f"{t:.4f}"] for a, t in knots)]
    return _Found(scaled, metric, f"a monotone map with {len(scaled.at)} knots", table)


def _blended(parts: Sequence[Metric], rated: Rated, most: int) -> _Found:
    sums = gather(rated.scores, rated.ratings, rated.cells, rated.folds)
    chosen = choose(sums, most)
    at = list(chosen.parts)
    if not at:
        raise InputError("every metric gives all outputs about the same score; name others")
    weights = np.array([float(f"{w:.{_DIGITS}g}") for w in weigh(sums, chosen)])
    bias = float((rated.ratings - rated.scores[:, at] @ weights).mean())
    metric = Blend(tuple(parts[i] for i in at), tuple(weights.tolist()), round(bias, _DIGITS))
    rows = [
        [recipe_of(parts[i]), f"{w:.4g}", f"{value:.4f}"]
        for i, w, value in zip(at, weights, chosen.agreement, strict=True)
    ]
    how = (
        f"{len(at)} of {len(parts)} parts, chosen one by one by the mean correlation on parts of "
        f"the ratings left out ({len(rated.folds)} of them); ridge strength {chosen.strength:g}"
    )
    return _Found(metric, parts[at[0]], how, [["part", "weight", "agreement with it"], *rows])
