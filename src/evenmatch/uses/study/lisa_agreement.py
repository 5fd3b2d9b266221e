"""What approximate assignment does to a metric: agreement with the exact one and with people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenmatch.data.ratings import RatedSet
from evenmatch.stats.correlations import correlation
from evenmatch.uses.meta.agreement import correlate

EXACT, GREEDY = "f_disc", "align"
_RESAMPLES = 200


@dataclass(frozen=True, slots=True)
class Agreeing:
    """Kendall's tau-b of one metric on one set, with exact F_DISC and with people."""

    solver: str
    subset: str
    outputs: int
    with_exact: float
    with_people: float


def agreeing(rated: RatedSet, solvers: Sequence[str], **run: Any) -> list[Agreeing]:
    """A row for greedy, exact and each of `solvers`: F_DISC with nothing else changed."""
    specs = {"greedy": GREEDY, "lsa": EXACT, **{s: f"align(alignment={s})" for s in solvers}}
    found = correlate(
        list(specs.values()), rated, "segment", "kendall", resamples=_RESAMPLES, **run
    )
    marks = found.scored[0].marks
    exact = marks[EXACT].segments.ravel()
    values = {entry.metric: entry for entry in found.entries}
    return [
        Agreeing(
            solver,
            rated.subset,
            values[spec].n,
            float(correlation(marks[spec].segments.ravel(), exact, "kendall")),
            values[spec].value,
        )
        for solver, spec in specs.items()
    ]
