"""Scores of files as the command `score` prints them: as text, LaTeX, TSV or a JSON document."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evenmatch.data.scores import (
    ScoredPair,
    ScoreLayout,
    exact_cell,
    json_record,
    score_records,
    score_to_record,
)
from evenmatch.data.tables import (
    SystemGrid,
    TextTable,
    direction_label,
    format_number,
    table_to_latex,
    table_to_text,
)
from evenmatch.evaluation.compare import corpus_scores_note
from evenmatch.scoring.metric import as_metric
from evenmatch.scoring.streaming import RunningMean
from evenmatch.types import Pair, Score

_MOST_CHARACTERS = 400  # of a text among the worst, when printed; JSON has all


def metric_document(
    signature: str, mean: Score, corpus: float | None, segments: Iterable[Score] | None
) -> dict[str, Any]:
    """Return the scores of one metric as they appear in a score document."""
    means = score_to_record(mean)
    document: dict[str, Any] = {"signature": signature, "mean": means["value"]}
    document |= {key: means[key] for key in ("precision", "recall")}
    if corpus is not None:
        document["corpus"] = corpus
    if segments is not None:
        document["segments"] = [score_to_record(score) for score in segments]
    return document


@dataclass(frozen=True)
class WorstPairs:
    """The worst of the pairs so far by the first of several metrics, worst first."""

    count: int
    metrics: Sequence[str]
    pairs: Sequence[tuple[ScoredPair, Pair]] = ()

    def add(self, scored: Iterable[ScoredPair], pairs: Iterable[Pair]) -> WorstPairs:
        """Return the worst of these pairs and of those so far."""
        if not self.count:
            return self
        every = [*self.pairs, *zip(scored, pairs, strict=True)]
        return replace(self, pairs=heapq.nsmallest(self.count, every, key=self._rank))

    def _rank(self, each: tuple[ScoredPair, Pair]) -> float:
        value = each[0].scores[self.metrics[0]].value
        if math.isnan(value):
            return math.inf
        return value if as_metric(self.metrics[0]).higher_is_better else -value

    def scaled(self, factor: float) -> WorstPairs:
        """Return the pairs with their scores multiplied by a factor."""
        scaled = [(own.scaled(factor), pair) for own, pair in self.pairs]
        return replace(self, pairs=scaled)

    def records(self) -> list[dict[str, Any]]:
        """Return each pair as a record: row, fields, scores by metric, flags and texts."""
        return [
            {
                **json_record(next(score_records([own], "wide"))),
                "candidate": pair.candidate,
                "references": list(pair.references),
            }
            for own, pair in self.pairs
        ]

    def format(self, show: Callable[[Any], str]) -> str:
        """Return the pairs as text, each with its scores, its flags and its texts."""
        parts = [f"worst pairs by {self.metrics[0]} (rows count from 0)"]
        for own, pair in self.pairs:
            head = [
                f"row {own.row}",
                *(f"{name} {exact_cell(v)}" for name, v in own.fields.items()),
            ]
            head += [f"{name} {show(score.value)}" for name, score in own.scores.items()]
            flags = sorted({flag for score in own.scores.values() for flag in score.flags})
            lines = [", ".join([*head, *flags]), f"  candidate: {_beginning(pair.candidate)}"]
            lines += [f"  reference: {_beginning(text)}" for text in pair.references]
            parts.append("\n".join(lines))
        return "\n\n".join(parts)


def _beginning(text: str) -> str:
    """Return the beginning of a long text, and how much is left out."""
    left = len(text) - _MOST_CHARACTERS
    return text if left <= 0 else f"{text[:_MOST_CHARACTERS]}… ({left} more characters)"


@dataclass(frozen=True)
class ScoreSummary:
    """Means by metric, the number of rows with each flag, and the scores of every pair if kept."""

    tallies: Mapping[str, RunningMean]
    flagged: Mapping[str, int]
    rows: Sequence[ScoredPair] | None = None
    absent: Mapping[str, str] = field(default_factory=dict)  # reason by metric that cannot run
    texts: str = ""  # hash of the texts
    lower: frozenset[str] = frozenset()  # metrics of which a lower score is better
    layout: ScoreLayout = ScoreLayout()
    worst: WorstPairs = WorstPairs(0, ())

    def without_rows(self) -> ScoreSummary:
        """Return the result without the scores of every pair."""
        return replace(self, rows=None)

    def __str__(self) -> str:
        tables = [] if self.rows is None else [row_table(self.rows, self.layout, self.show)]
        tables.append(self._mean_table(self.show))
        worst = [self.worst.format(self.show)] if self.worst.pairs else []
        return "\n\n".join([*map(table_to_text, tables), *worst, "\n".join(self.notes())])

    def to_latex(self) -> str:
        """The scores of every pair if kept, else the means, as a LaTeX table."""
        rows = self.rows
        table = (
            self._mean_table(self.show) if rows is None else row_table(rows, self.layout, self.show)
        )
        return "\n".join([*(f"% {note}" for note in self.notes()), table_to_latex(table)])

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON document."""
        metrics = {}
        for name, t in self.tallies.items():
            kept = None if self.rows is None else [row.scores[name] for row in self.rows]
            metrics[name] = metric_document(t.signature, t.mean, t.corpus, kept)
        document: dict[str, Any] = {"metrics": metrics}
        if self.layout.scale != 1:
            document["scale"] = self.layout.scale
        if self.texts and self.rows is not None:
            document["texts"] = self.texts
        if self.worst.pairs:
            document["worst"] = self.worst.records()
        return document | ({"absent": dict(self.absent)} if self.absent else {})

    def notes(self) -> list[str]:
        """The direction of metrics, and their signatures."""
        signatures = [f"{name}: {tally.signature}" for name, tally in self.tallies.items()]
        lower = [name for name in self.tallies if name in self.lower]
        return [*([f"↓ lower is better: {', '.join(lower)}"] if lower else []), *signatures]

    def show(self, value: Any) -> str:
        """Format a number or a list of flags for reading."""
        if isinstance(value, list):
            return ", ".join(value)
        return format_number(value, self.layout.scale)

    def _mean_table(self, show: Callable[[float | None], str], *, arrows: bool = True) -> TextTable:
        """Return a row per metric; the column of corpus scores is left out if there are none."""
        has_corpus = any(tally.corpus is not None for tally in self.tallies.values())
        corpus_column = ["corpus"] if has_corpus else []
        table = [["metric", "mean", "precision", "recall", *corpus_column, "pairs"]]
        for name, tally in self.tallies.items():
            mean, corpus = tally.mean, [tally.corpus] if has_corpus else []
            numbers = [mean.value, mean.precision, mean.recall, *corpus]
            label = direction_label(name, name not in self.lower) if arrows else name
            table.append([label, *map(show, numbers), str(tally.count)])
        return table

    def exact_table(self) -> TextTable:
        """Return the scores of every pair if kept, else the means, in full precision."""
        if self.rows is not None:
            return row_table(self.rows, self.layout, exact_cell)
        means = self._mean_table(exact_cell, arrows=False)
        signatures = ["signature", *(tally.signature for tally in self.tallies.values())]
        return [[*row, signature] for row, signature in zip(means, signatures, strict=True)]


def row_table(
    rows: Sequence[ScoredPair], layout: ScoreLayout, show: Callable[[Any], str]
) -> TextTable:
    """Return the scores of every pair as in a score file; `show` formats numbers and flags."""
    records = list(score_records(rows, layout.style))
    columns = list(dict.fromkeys(name for record in records for name in record))
    ours = {"precision", "recall", "flags"}
    cells = (
        [
            show(value) if isinstance(value, float) or name in ours else exact_cell(value)
            for name in columns
            for value in [record.get(name)]
        ]
        for record in records
    )
    return [columns, *cells]


@dataclass(frozen=True)
class SystemsSummary:
    """The scores of several systems by the same metrics."""

    systems: Mapping[str, ScoreSummary]
    absent: Mapping[str, str] = field(default_factory=dict)
    worst: WorstPairs = WorstPairs(0, ())

    def without_rows(self) -> SystemsSummary:
        """Return the result without the scores of every pair."""
        systems = {name: summary.without_rows() for name, summary in self.systems.items()}
        return replace(self, systems=systems)

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON document."""
        return {
            "systems": {name: summary.document() for name, summary in self.systems.items()},
            **({"worst": self.worst.records()} if self.worst.pairs else {}),
            **({"absent": dict(self.absent)} if self.absent else {}),
        }

    def __str__(self) -> str:
        each = list(self.systems.values())
        rows = [row for summary in each for row in summary.rows or ()]
        parts = [table_to_text(row_table(rows, each[0].layout, each[0].show))] if rows else []
        parts.append(self._grid().to_text())
        if self.worst.pairs:
            parts.append(self.worst.format(each[0].show))
        return "\n\n".join([*parts, "\n".join(self._notes())])

    def to_latex(self) -> str:
        """The table of systems and metrics in LaTeX."""
        return "\n".join([*(f"% {note}" for note in self._notes()), self._grid().to_latex()])

    def exact_table(self) -> TextTable:
        """Return the scores of every pair if kept, else the means, in full precision."""
        each = list(self.systems.values())
        rows = [row for summary in each for row in summary.rows or ()]
        return row_table(rows, each[0].layout, exact_cell) if rows else self._mean_table()

    def _grid(self) -> SystemGrid:
        """Return the table of systems and metrics: corpus scores if a metric has them, or means."""
        first = next(iter(self.systems.values()))
        return SystemGrid(
            {name: name not in first.lower for name in first.tallies},
            {
                system: {
                    name: tally.mean.value if tally.corpus is None else tally.corpus
                    for name, tally in summary.tallies.items()
                }
                for system, summary in self.systems.items()
            },
            scale=first.layout.scale,
        )

    def _notes(self) -> list[str]:
        first = next(iter(self.systems.values()))
        corpus = [name for name, tally in first.tallies.items() if tally.corpus is not None]
        return [*corpus_scores_note(corpus, first.tallies, "pairs"), *first.notes()]

    def _mean_table(self) -> TextTable:
        tables = {name: summary.exact_table() for name, summary in self.systems.items()}
        header = next(iter(tables.values()))[0]
        return [
            ["system", *header],
            *([name, *row] for name, table in tables.items() for row in table[1:]),
        ]
