"""Result of measuring the agreement of metrics with human ratings, as tables and notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from evenmatch.data.scores import json_record
from evenmatch.data.tables import TextTable, table_to_latex, table_to_text
from evenmatch.evaluation.rated_scores import ScoredSet
from evenmatch.stats.bootstrap import name_bounds

# Subset name of the rows that average over all subsets.
AVERAGE_SUBSET = "average"

SelectionTask: TypeAlias = Literal["filter", "rerank"]


@dataclass(frozen=True, slots=True)
class AgreementTestSettings:
    """Settings of the bootstrap intervals and of the permutation tests."""

    confidence: float = 0.95
    resamples: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class AgreementEntry:
    """One metric's agreement on one set: value, number of points, bounds, significance cluster.

    No metric of a cluster is significantly worse than another of the same cluster; cluster 1 is the
    best. The cluster is None where no test was made. NaN means that there is no correlation.
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

    def cells(self) -> list[str]:
        """Cells of a table: data, subset, metric, value, bounds and number of points."""
        numbers = map(format_correlation, (self.value, self.low, self.high))
        return [self.data, self.subset or "-", self.metric, *numbers, str(self.n)]


@dataclass(frozen=True, slots=True)
class SelectionEntry:
    """Precision, recall and F1 of a metric's selection on one set, with an interval for F1.

    `n` is the number of segments. `chance` is the F1 of keeping every output as a filter, or of a
    random choice as a re-ranker.
    """

    data: str
    subset: str
    metric: str
    task: SelectionTask
    precision: float
    recall: float
    value: float
    low: float
    high: float
    chance: float
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Agreement of metrics with human ratings: an entry for each set and metric.

    The averages over subsets follow the entries of each data set. `selection` holds the metrics as
    filters and re-rankers, where `measure_selection` was asked.
    """

    entries: tuple[AgreementEntry, ...]
    scored: tuple[ScoredSet, ...]
    testing: AgreementTestSettings
    outliers: str
    tests: tuple[str, ...]
    selection: tuple[SelectionEntry, ...] = ()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each entry as a plain dictionary without its cluster; None in place of NaN."""
        rows = (json_record(asdict(entry)) for entry in self.entries)
        return [{name: value for name, value in row.items() if name != "cluster"} for row in rows]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics, in order."""
        return tuple(dict.fromkeys(entry.metric for entry in self.entries))

    @property
    def signatures(self) -> dict[str, str]:
        """Signature of each metric; empty for published scores."""
        return {
            name: scores.signature for each in self.scored for name, scores in each.scores.items()
        }

    def table(self) -> TextTable:
        """Table with a row for each entry."""
        header = ["data", "subset", "metric", self.entries[0].method, *self.bounds, "n", "cluster"]
        rows = ([*e.cells(), str(e.cluster or "-")] for e in self.entries)
        return [header, *([*row[:2], self._label(row[2]), *row[3:]] for row in rows)]

    def grid(self) -> TextTable:
        """Table with a row for each metric and a column for each subset, as in papers."""
        columns = list(dict.fromkeys((e.data, e.subset) for e in self.entries))
        values = {(e.data, e.subset, e.metric): e.value for e in self.entries}
        several = len({data for data, _ in columns}) > 1
        header = [
            f"{data} {subset}".strip() if several else subset or data for data, subset in columns
        ]
        rows = [
            [
                self._label(m),
                *(format_correlation(values.get((*column, m), math.nan)) for column in columns),
            ]
            for m in self.metrics
        ]
        return [["metric", *header], *rows]

    def to_latex(self) -> str:
        """The `grid` as LaTeX, with the highest value of each column in bold, and the `table`."""
        table = self.grid()
        columns = list(zip(*table[1:], strict=True))[1:]
        best = [max((float(c) for c in column if c != "-"), default=None) for column in columns]
        bold = {
            (row, column)
            for row, cells in enumerate(table[1:], 1)
            for column, cell in enumerate(cells[1:], 1)
            if cell != "-" and float(cell) == best[column - 1]
        }
        return f"{table_to_latex(table, bold)}\n\n{table_to_latex(self.table())}"

    def notes(self) -> list[str]:
        """How the numbers are computed: level, excluded systems, intervals, tests, signatures."""
        t, first, lower = self.testing, self.entries[0], self._lower_is_better
        published = [name for name, signature in self.signatures.items() if not signature]
        excluded = "human-written outputs"
        if first.level == "system" and self.outliers != "keep":
            rule = "listed with the data" if self.outliers == "listed" else "by the MAD rule"
            excluded += f", outlier systems {rule}"
        notes = [
            f"{first.method} at level {first.level}; excluded: {excluded}",
            f"intervals: {t.confidence:.0%}, BCa bootstrap, {t.resamples} resamples, seed {t.seed}",
        ]
        if self.tests:
            notes.append(f"clusters: {', '.join(self.tests)}, one-sided test at p < .05")
        if lower:
            notes.append(
                f"↓ lower is better, so the sign is reversed: {', '.join(lower)}; a higher "
                "agreement is better for every metric"
            )
        if any(entry.subset == AVERAGE_SUBSET for entry in self.entries):
            notes.append(f"{AVERAGE_SUBSET}: mean over subsets; its n is their number")
        if published:
            notes.append(f"published scores: {', '.join(published)}")
        signed = {name: signature for name, signature in self.signatures.items() if signature}
        return [*notes, *(f"{name}: {signature}" for name, signature in signed.items())]

    @property
    def _lower_is_better(self) -> list[str]:
        every = ((name, scores) for each in self.scored for name, scores in each.scores.items())
        return list(dict.fromkeys(name for name, s in every if not s.higher_is_better))

    def _label(self, metric: str) -> str:
        return f"{metric} ↓" if metric in self._lower_is_better else metric

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the tables in notebooks instead of all fields."""
        printer.text(str(self))

    def __str__(self) -> str:
        tables = [self.table(), *([selection_table(self.selection)] if self.selection else [])]
        return "\n\n".join([*map(table_to_text, tables), "\n".join(self.notes())])

    @property
    def bounds(self) -> tuple[str, str]:
        """Column names of the interval bounds, for example 2.5% and 97.5%."""
        return name_bounds(self.testing.confidence)


def selection_table(entries: Sequence[SelectionEntry]) -> TextTable:
    """Return a table with a row for each metric, set and task."""
    header = ["data", "subset", "metric", "as", "precision", "recall", "F1", "from", "to", "chance"]
    numbers = ("precision", "recall", "value", "low", "high", "chance")
    return [
        [*header, "n"],
        *(
            [e.data, e.subset or "-", e.metric, e.task]
            + [f"{getattr(e, name):.3f}" for name in numbers]
            + [str(e.n)]
            for e in entries
        ),
    ]


def format_correlation(value: float) -> str:
    """Format a correlation with three decimals; NaN as a dash.

    >>> format_correlation(0.12345), format_correlation(float("nan"))
    ('0.123', '-')
    """
    return "-" if math.isnan(value) else f"{value:.3f}"
