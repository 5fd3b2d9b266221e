"""The outcome of a comparison of metrics with people, and how it reads."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from evenmatch.data.tables import TextTable, table_to_text
from evenmatch.evaluation.rated_scores import ScoredSet

# What stands for the subset in the row that averages over all of them.
AVERAGE_SUBSET = "average"


@dataclass(frozen=True, slots=True)
class AgreementEntry:
    """One metric's agreement on one set: value, number of points, bounds, significance cluster.

    A metric in cluster 1 is not significantly worse than another of that cluster; None where
    nothing was tested. NaN is no correlation.
    """

    data: str
    subset: str
    metric: str
    level: str
    method: str
    value: float
    n: int
    low: float
    high: float
    cluster: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Metrics compared with people: a row per set and metric, averages after each data set's."""

    entries: tuple[AgreementEntry, ...]
    scored: tuple[ScoredSet, ...]
    testing: AgreementTestSettings
    outliers: str
    tests: tuple[str, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each entry as a plain dictionary without its cluster; None where there is no number."""
        dicts = [asdict(entry) for entry in self.entries]
        return [
            {key: _nan_to_none(v) for key, v in row.items() if key != "cluster"} for row in dicts
        ]

    @property
    def metrics(self) -> tuple[str, ...]:
        """What was compared, in order."""
        return tuple(dict.fromkeys(entry.metric for entry in self.entries))

    @property
    def signatures(self) -> dict[str, str]:
        """The recipe of each metric."""
        return {
            name: marks.signature for each in self.scored for name, marks in each.scores.items()
        }

    def table(self) -> TextTable:
        """A line per entry."""
        header = ["data", "subset", "metric", self.entries[0].method, *self._bounds, "n", "cluster"]
        rows = [
            [
                *(e.data, e.subset or "-", e.metric),
                *map(format_correlation, (e.value, e.low, e.high)),
                str(e.n),
                "-" if e.cluster is None else str(e.cluster),
            ]
            for e in self.entries
        ]
        return [header, *rows]

    def grid(self) -> TextTable:
        """A line per metric and a column per subset, as papers print it."""
        columns = list(dict.fromkeys((e.data, e.subset) for e in self.entries))
        values = {(e.data, e.subset, e.metric): e.value for e in self.entries}
        several = len({data for data, _ in columns}) > 1
        header = [
            f"{data} {subset}".strip() if several else subset or data for data, subset in columns
        ]
        rows = [
            [m, *(format_correlation(values.get((*column, m), math.nan)) for column in columns)]
            for m in self.metrics
        ]
        return [["metric", *header], *rows]

    def notes(self) -> list[str]:
        """What the table rests on: level, systems left out, intervals, tests, recipes."""
        t, first = self.testing, self.entries[0]
        lower = dict.fromkeys(
            name
            for each in self.scored
            for name, marks in each.scores.items()
            if not marks.higher_is_better
        )
        theirs = [name for name, recipe in self.signatures.items() if not recipe]
        left = {"listed": "listed outliers", "mad": "outliers by the MAD rule", "keep": ""}
        without = ["people", left[self.outliers]] if first.level == "system" else ["people"]
        return [
            f"{first.method} at level {first.level}, without {' and '.join(filter(None, without))}",
            f"intervals: {t.confidence:.0%}, BCa bootstrap, {t.resamples} resamples, seed {t.seed}",
            *([f"clusters: {', '.join(self.tests)}, one-sided, .05"] if self.tests else []),
            *([f"negated, as lower is better: {', '.join(lower)}"] if lower else []),
            *([f"scores as published: {', '.join(theirs)}"] if theirs else []),
            *(f"{name}: {recipe}" for name, recipe in self.signatures.items() if recipe),
        ]

    def __str__(self) -> str:
        return "\n\n".join([table_to_text(self.table()), "\n".join(self.notes())])

    @property
    def _bounds(self) -> tuple[str, str]:
        outside = 50 * (1 - self.testing.confidence)
        return f"{outside:.3g}%", f"{100 - outside:.3g}%"


def format_correlation(value: float) -> str:
    """A correlation with three decimals; a dash where there is none.

    >>> format_correlation(0.12345), format_correlation(float("nan"))
    ('0.123', '-')
    """
    return "-" if math.isnan(value) else f"{value:.3f}"


def _nan_to_none(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


@dataclass(frozen=True, slots=True)
class AgreementTestSettings:
    """How intervals and significance clusters are made."""

    confidence: float = 0.95
    resamples: int = 1000
    seed: int = 0
