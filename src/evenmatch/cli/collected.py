"""A scoring run over a file: what is kept of it, and what is written away as it comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from evenmatch.cli.result import Result
from evenmatch.data.pairs import PairFile
from evenmatch.data.rows import Row, row_file
from evenmatch.errors import InputError
from evenmatch.scoring.stream import score_stream
from evenmatch.scoring.tally import Tally
from evenmatch.scoring.together import as_metric
from evenmatch.types import Run, Scores


def collect(
    metrics: Sequence[str], pairs: PairFile, run: Run, *, keep: bool, out: str = ""
) -> Result:
    """The means of a whole file; single scores are kept if asked and written to `out` if given."""
    names = list(dict.fromkeys(metrics))
    parts = [as_metric(name) for name in names]
    tallies = [Tally() for _ in names]
    flagged: Counter[str] = Counter()
    kept: list[Row] = []
    with ExitStack() as files:
        write = files.enter_context(row_file(out)) if out else None
        source = pairs if pairs.rereadable else iter(pairs)
        for found in score_stream(parts, source, run, total=pairs.total):
            if keep or write:
                rows = list(_rows(tallies[0].count, names, found))
                kept += rows if keep else []
                if write:
                    write(rows)
            tallies = [t.plus(scores) for t, scores in zip(tallies, found, strict=True)]
            flagged += _flags(found)
        if not tallies[0].count:
            raise InputError("there is nothing to score: the input holds no pair")
    return Result(dict(zip(names, tallies, strict=True)), flagged, kept if keep else None)


def _rows(start: int, names: Sequence[str], found: Sequence[Scores]) -> Iterator[Row]:
    """Row by row, and in each the metrics in their order."""
    for index, scores in enumerate(zip(*(s.segments for s in found), strict=True), start):
        for name, score in zip(names, scores, strict=True):
            yield Row(index, name, score)


def _flags(found: Sequence[Scores]) -> Counter[str]:
    """How many rows carry each flag, whichever metric raised it."""
    counts: Counter[str] = Counter()
    for scores in zip(*(s.segments for s in found), strict=True):
        if any(score.flags for score in scores):
            counts.update(frozenset().union(*(score.flags for score in scores)))
    return counts
