"""evenmatch score --on: the command under workers."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from evenmatch.cli.options import Running
from evenmatch.cli.output import tell
from evenmatch.cli.result import Result, tell_beside
from evenmatch.cli.scale import Scaling
from evenmatch.errors import DataError
from evenmatch.scoring.everything import chosen
from evenmatch.scoring.settings import make_run
from evenmatch.uses.scale.large import Outcome, score_files

_FAILURES_TOLD = 10


def check_large(file: str, out: str, *, segments: bool, lines: bool) -> None:
    """Refuse, as wrong usage, what does not go with --on."""
    if lines or not file:
        raise typer.BadParameter("--on takes FILE or a folder, not -c and -r")
    if segments:
        raise typer.BadParameter("with --on every pair's scores go to --out; drop --segments")
    if not out:
        raise typer.BadParameter("--on needs --out: a .jsonl, .tsv or .parquet file, or DIR")


def score_large(
    file: str, out: str, metrics: Sequence[str], running: Running, scaling: Scaling, resume: bool
) -> Result:
    """The result of a large run; what failed is told, and then it is an error."""
    with running.settings() as settings:
        wanted, reasons = chosen(metrics, make_run(**settings))
        found = score_files(
            file,
            out,
            wanted,
            on=scaling.runner(running.threads),
            resume=resume,
            shard_rows=scaling.shard_rows,
            retries=scaling.retries,
            max_failures=scaling.max_failures,
            **settings,
        )
    if found.kept:
        tell(f"{found.kept} of {found.rows} rows were done before")
    if found.failures:
        raise _given_up(found, out)
    result = Result(found.tallies, found.flagged, absent=reasons)
    tell_beside(result)
    return result


def _given_up(found: Outcome, out: str) -> DataError:
    for failure in found.failures[:_FAILURES_TOLD]:
        tell(str(failure))
    count = len(found.failures)
    if count > _FAILURES_TOLD:
        tell(f"and {count - _FAILURES_TOLD} more")
    return DataError(
        f"{count} {'shard' if count == 1 else 'shards'} failed; the other {found.rows} rows are "
        f"done and kept for {out}; mend the rows named above and go on with --resume"
    )
