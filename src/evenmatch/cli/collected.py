"""A scoring run over a file: what is kept of it, and what is written away as it comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack

from evenmatch.cli.result import Result
from evenmatch.data.pairs import PairFile
from evenmatch.data.rows import Row, row_file, rows_of
from evenmatch.errors import InputError
from evenmatch.scoring.stream import score_stream
from evenmatch.scoring.tally import Tally, count_flags
from evenmatch.scoring.together import as_metric
from evenmatch.types import Run


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
                rows = list(rows_of(tallies[0].count, names, found))
                kept += rows if keep else []
                if write:
                    write(rows)
            tallies = [t.plus(scores) for t, scores in zip(tallies, found, strict=True)]
            flagged += count_flags(found)
        if not tallies[0].count:
            raise InputError("there is nothing to score: the input holds no pair")
    return Result(dict(zip(names, tallies, strict=True)), flagged, kept if keep else None)
