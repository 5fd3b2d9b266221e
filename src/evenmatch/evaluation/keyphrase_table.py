"""Result of scoring keyphrase systems: scores, differences and notes, as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from evenmatch.data.tables import TextTable, direction_label, table_to_text
from evenmatch.stats.bootstrap import Interval
from evenmatch.stats.paired import Resampling

Column: TypeAlias = Literal["present", "absent", "all"]
COLUMNS: tuple[Column, ...] = get_args(Column)
LOWER_IS_BETTER = ("count_error", "duplicate_phrases", "duplicate_words")
_FLAT_FIELDS = ("data", "prediction", "metric", *COLUMNS, "documents")


@dataclass(frozen=True, slots=True)
class KeyphraseRow:
    """Scores of one system by one metric, over present, absent and all phrases.

    `precision` and `recall` are empty where the metric has none.
    """

    data: str
    prediction: str
    metric: str
    cells: Mapping[Column, Interval]
    documents: int
    precision: Mapping[Column, float] = field(default_factory=dict)
    recall: Mapping[Column, float] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """The row as a JSON object."""
        return {
            "data": self.data,
            "prediction": self.prediction,
            "metric": self.metric,
            **{column: self.cells[column].value for column in COLUMNS},
            "documents": self.documents,
            "intervals": {c: [self.cells[c].low, self.cells[c].high] for c in COLUMNS},
            "precision": dict(self.precision) or None,
            "recall": dict(self.recall) or None,
        }


@dataclass(frozen=True, slots=True)
class KeyphraseGap:
    """Score of a system minus score of a baseline on the same documents, by one metric.

    P-values are two-sided; `holm_…` are adjusted (Holm) for the pairs of systems of one data set,
    metric and column.
    """

    data: str
    metric: str
    column: Column
    baseline: str
    system: str
    difference: float
    low: float
    high: float
    p_bootstrap: float
    p_randomisation: float
    holm_bootstrap: float
    holm_randomisation: float

    @property
    def p(self) -> float:
        """The larger of both adjusted p-values."""
        return max(self.holm_bootstrap, self.holm_randomisation)

    def __str__(self) -> str:
        stars = "***" if self.p < 0.001 else "**" if self.p < 0.01 else "*" if self.p < 0.05 else ""
        p = "p < .001" if self.p < 0.001 else f"p = {self.p:.3f}".replace("0.", ".")
        # adding 0.0 turns -0.0 into 0.0
        value, low, high = (round(n, 3) + 0.0 for n in (self.difference, self.low, self.high))
        return f"{value:+.3f}{stars} ({low:+.3f} to {high:+.3f}), {p}"


@dataclass(frozen=True, slots=True)
class KeyphraseTable:
    """Scores by data set, system and metric, and the differences between systems.

    With `full`, the table of scores shows precision and recall.
    """

    rows: tuple[KeyphraseRow, ...]
    gaps: tuple[KeyphraseGap, ...]
    flagged: Mapping[str, Mapping[str, Mapping[str, int]]]  # by data set, system and flag
    errors: tuple[str, ...]
    signatures: Mapping[str, str]
    resampling: Resampling
    full: bool = False

    def score_table(self) -> TextTable:
        """Table of scores with a row for each data set, system and metric."""
        table = [[*_FLAT_FIELDS, *(f"P/R {column}" for column in COLUMNS if self.full)]]
        for row in self.rows:
            cells = [row.cells[column] for column in COLUMNS]
            scores = [f"{c.value:.3f} ({c.low:.3f}-{c.high:.3f})" for c in cells]
            metric = direction_label(row.metric, row.metric not in LOWER_IS_BETTER)
            line = [row.data, row.prediction, metric, *scores, str(row.documents)]
            if self.full:
                line += [
                    f"{row.precision[c]:.3f}/{row.recall[c]:.3f}" if row.precision else "-"
                    for c in COLUMNS
                ]
            table.append(line)
        return table

    def gap_table(self) -> TextTable:
        """Table of differences (system minus baseline) for each data set, metric and pair."""
        header = ["data", "metric", "system", "baseline", *COLUMNS]
        by_pair: dict[tuple[str, ...], dict[str, str]] = {}
        for gap in self.gaps:
            metric = direction_label(gap.metric, gap.metric not in LOWER_IS_BETTER)
            key = (gap.data, metric, gap.system, gap.baseline)
            by_pair.setdefault(key, {})[gap.column] = str(gap)
        return [header, *([*key, *(gaps[c] for c in COLUMNS)] for key, gaps in by_pair.items())]

    def flat_records(self) -> list[dict[str, Any]]:
        """The rows as those of a TSV file: without intervals, precision and recall if `full`."""
        records = []
        for row in self.rows:
            record = {name: row.record()[name] for name in _FLAT_FIELDS}
            if self.full:
                for name, values in (("precision", row.precision), ("recall", row.recall)):
                    record |= {f"{name}_{column}": values.get(column, "") for column in COLUMNS}
            records.append(record)
        return records

    def notes(self) -> list[str]:
        """How the numbers are computed, and problems with the documents."""
        r = self.resampling
        notes = [f"intervals: {100 * r.confidence:g} %, {r.resamples} resamples of documents"]
        if self.gaps:
            notes.append(
                "differences: system minus baseline, with interval; p: the larger p-value of "
                f"paired bootstrap and approximate randomisation ({r.trials} trials), "
                "Holm-adjusted for the pairs of systems; * p < .05, ** p < .01, *** p < .001"
            )
        lower = [name for name in LOWER_IS_BETTER if any(row.metric == name for row in self.rows)]
        if lower:
            notes.append(f"↓ lower is better: {', '.join(lower)}")
        notes += [f"{name}: {signature}" for name, signature in self.signatures.items()]
        for data, systems in self.flagged.items():
            for system, flags in systems.items():
                if flags:
                    counts = ", ".join(f"{flag} {count}" for flag, count in flags.items())
                    notes.append(f"flagged documents in {data}, {system}: {counts}")
        if self.errors:
            notes.append(f"errors while reading: {len(self.errors)}, the first: {self.errors[0]}")
        return notes

    def document(self) -> dict[str, Any]:
        """The whole result as a JSON object."""
        return {
            "rows": [row.record() for row in self.rows],
            "tests": [asdict(gap) for gap in self.gaps],
            "flagged": self.flagged,
            "trouble": list(self.errors),
            "signatures": dict(self.signatures),
            "resampling": asdict(self.resampling),
            "full": self.full,
        }

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the tables in notebooks instead of all fields."""
        printer.text(str(self))

    def __str__(self) -> str:
        tables = [table_to_text(self.score_table())]
        if self.gaps:
            tables.append(table_to_text(self.gap_table()))
        return "\n\n".join([*tables, "\n".join(self.notes())])
