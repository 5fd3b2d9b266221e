"""The scores of keyphrase systems as a table, and how it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from evenmatch.data.tables import TextTable, table_to_text


@dataclass(frozen=True, slots=True)
class Resampling:
    """How intervals and p-values were made."""

    confidence: float
    resamples: int
    trials: int
    seed: int


@dataclass(frozen=True, slots=True)
class KeyphraseCell:
    """A score and the bounds of its bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f}-{self.high:.3f})"


@dataclass(frozen=True, slots=True)
class KeyphraseRow:
    """One system by one metric: over present phrases, over absent ones, and over all."""

    data: str
    prediction: str
    metric: str
    cells: Mapping[Column, KeyphraseCell]
    documents: int

    def record(self) -> dict[str, Any]:
        """The row as JSON has it."""
        values: dict[str, float] = {column: self.cells[column].value for column in COLUMNS}
        bounds = {c: [self.cells[c].low, self.cells[c].high] for c in COLUMNS}
        return {
            "data": self.data,
            "prediction": self.prediction,
            "metric": self.metric,
            **values,
            "documents": self.documents,
            "intervals": bounds,
        }


@dataclass(frozen=True, slots=True)
class KeyphraseGap:
    """By how much a metric scores one system higher than another on the same documents.

    P-values are two-sided; those of Holm are adjusted for the pairs of systems of one data set,
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

    def __str__(self) -> str:
        p = max(self.holm_bootstrap, self.holm_randomisation)
        mark = "***" if p < 0.001 else "**" if p < 0.01 else "*" if p < 0.05 else ""
        return f"{self.difference:+.3f}{mark}"


@dataclass(frozen=True, slots=True)
class KeyphraseTable:
    """Scores by data set, system and metric, and the differences between systems."""

    rows: tuple[KeyphraseRow, ...]
    gaps: tuple[KeyphraseGap, ...]
    flagged: Mapping[str, Mapping[str, Mapping[str, int]]]  # by data set, system and flag
    errors: tuple[str, ...]
    signatures: Mapping[str, str]
    resampling: Resampling

    def score_table(self) -> TextTable:
        """A row per data set, system and metric."""
        header = ["data", "prediction", "metric", *COLUMNS, "documents"]
        rows = [
            [r.data, r.prediction, r.metric, *(str(r.cells[c]) for c in COLUMNS), str(r.documents)]
            for r in self.rows
        ]
        return [header, *rows]

    def gap_table(self) -> TextTable:
        """A row per data set, metric and two systems: the second's score less the first's."""
        header = ["data", "metric", "system", "less", *COLUMNS]
        by_pair: dict[tuple[str, ...], dict[str, str]] = {}
        for gap in self.gaps:
            key = (gap.data, gap.metric, gap.system, gap.baseline)
            by_pair.setdefault(key, {})[gap.column] = str(gap)
        return [header, *([*key, *(own[c] for c in COLUMNS)] for key, own in by_pair.items())]

    def notes(self) -> list[str]:
        """What the tables rest on, and what was odd with the documents."""
        return [*self._method_notes(), *self._data_notes()]

    def _method_notes(self) -> Iterator[str]:
        r = self.resampling
        yield f"intervals: {100 * r.confidence:g} %, {r.resamples} resamples of documents"
        if self.gaps:
            yield (
                "* .05, ** .01, *** .001 by paired bootstrap and by approximate randomisation "
                f"({r.trials} trials), both adjusted (Holm) for the pairs of systems"
            )
        yield from (f"{name}: {signature}" for name, signature in self.signatures.items())

    def _data_notes(self) -> Iterator[str]:
        for data, systems in self.flagged.items():
            for system, flags in systems.items():
                if flags:
                    counts = ", ".join(f"{flag} {count}" for flag, count in flags.items())
                    yield f"documents flagged in {data}, {system}: {counts}"
        if self.errors:
            yield f"could not be read: {len(self.errors)} things, the first: {self.errors[0]}"

    def document(self) -> dict[str, Any]:
        """Everything as JSON has it."""
        return {
            "rows": [row.record() for row in self.rows],
            "tests": [asdict(gap) for gap in self.gaps],
            "flagged": {d: {s: dict(f) for s, f in own.items()} for d, own in self.flagged.items()},
            "trouble": list(self.errors),
            "signatures": dict(self.signatures),
            "resampling": asdict(self.resampling),
        }

    def __str__(self) -> str:
        tables = [table_to_text(self.score_table())]
        if self.gaps:
            tables.append(table_to_text(self.gap_table()))
        return "\n\n".join([*tables, "\n".join(self.notes())])


Column: TypeAlias = Literal["present", "absent", "all"]


COLUMNS: tuple[Column, ...] = get_args(Column)
