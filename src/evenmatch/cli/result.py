"""The outcome of a scoring run, and how it is printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenmatch.cli.output import as_json, tell
from evenmatch.cli.printing import Format
from evenmatch.data.rows import COLUMNS, Row, as_record, cells
from evenmatch.data.tables import Table, as_latex, as_text, as_tsv, number
from evenmatch.scoring.tally import Tally


@dataclass(frozen=True)
class Result:
    """Means by metric, how many rows carry each flag, and the single scores where kept."""

    tallies: Mapping[str, Tally]
    flagged: Mapping[str, int]
    rows: Sequence[Row] | None = None
    absent: Mapping[str, str] = field(default_factory=dict)  # metrics that cannot run, and why

    @property
    def count(self) -> int:
        """The number of pairs scored."""
        return next(iter(self.tallies.values())).count

    def printed(self, style: Format) -> str:
        """The result as a person or a program reads it."""
        if style is Format.json:
            return as_json(self.document())
        if style is Format.tsv:
            return as_tsv(self._exact_means() if self.rows is None else self._exact_rows())
        if style is Format.latex:
            recipes = "".join(f"% {line}\n" for line in self._recipes())
            return recipes + as_latex(self._means() if self.rows is None else self._short_rows())
        parts = [] if self.rows is None else [as_text(self._short_rows())]
        return "\n\n".join([*parts, as_text(self._means()), "\n".join(self._recipes())])

    def document(self) -> dict[str, Any]:
        """The result as JSON has it."""
        found: dict[str, Any] = {"metrics": {name: self._metric(name) for name in self.tallies}}
        return found | ({"absent": dict(self.absent)} if self.absent else {})

    def _metric(self, name: str) -> dict[str, Any]:
        tally = self.tallies[name]
        mean = as_record(tally.mean)
        found = {"signature": tally.signature, "mean": mean["value"]}
        found |= {key: mean[key] for key in ("precision", "recall")}
        if tally.corpus is not None:
            found["corpus"] = tally.corpus
        if self.rows is not None:
            found["segments"] = [as_record(r.score) for r in self.rows if r.metric == name]
        return found

    def _means(self) -> Table:
        rows = [[name, *map(number, means), count] for name, means, count in self._summaries()]
        return [["metric", *self._columns(), "pairs"], *rows]

    def _exact_means(self) -> Table:
        rows = [
            [name, *("" if m is None else repr(m) for m in means), count]
            for name, means, count in self._summaries()
        ]
        signed = [[*row, self.tallies[row[0]].signature] for row in rows]
        return [["metric", *self._columns(), "pairs", "signature"], *signed]

    def _summaries(self) -> Iterator[tuple[str, list[float | None], str]]:
        for name, tally in self.tallies.items():
            mean = tally.mean
            corpus = [tally.corpus] if self._has_corpus else []
            yield name, [mean.value, mean.precision, mean.recall, *corpus], str(tally.count)

    def _columns(self) -> list[str]:
        return ["mean", "precision", "recall", *(["corpus"] if self._has_corpus else [])]

    @property
    def _has_corpus(self) -> bool:
        return any(tally.corpus is not None for tally in self.tallies.values())

    def _exact_rows(self) -> Table:
        return [list(COLUMNS), *map(cells, self.rows or ())]

    def _short_rows(self) -> Table:
        rows = [
            [str(r.row), r.metric, *map(number, (s.value, s.precision, s.recall)), _flags(r)]
            for r in self.rows or ()
            for s in [r.score]
        ]
        return [list(COLUMNS), *rows]

    def _recipes(self) -> list[str]:
        return [f"{name}: {tally.signature}" for name, tally in self.tallies.items()]


def _flags(row: Row) -> str:
    return ", ".join(sorted(row.score.flags))


def tell_beside(result: Result) -> None:
    """Say beside the result which rows are flagged and which metrics cannot run."""
    if result.flagged:
        counts = ", ".join(f"{count} {flag}" for flag, count in sorted(result.flagged.items()))
        tell(f"flagged rows: {counts} (of {result.count})")
    for name, why in result.absent.items():
        tell(f"{name} cannot run: {why}")
