"""The options of a large run, and evenmatch score under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from evenmatch.cli.options import Command, Running, spells_out
from evenmatch.cli.output import tell
from evenmatch.cli.result import Result, tell_beside
from evenmatch.errors import DataError
from evenmatch.scoring.everything import chosen
from evenmatch.scoring.settings import make_run
from evenmatch.uses.scale.large import RETRIES, SHARD_ROWS, Outcome, score_files
from evenmatch.uses.scale.pool import Runner
from evenmatch.uses.scale.processes import Processes
from evenmatch.uses.scale.ray_actors import Ray

_FAILURES_TOLD = 10


class On(StrEnum):
    """What workers run on."""

    processes = "processes"
    ray = "ray"


@dataclass(frozen=True)
class Scaling:
    """How a large input is shared out: the options beside those every run of metrics has."""

    on: Annotated[
        On | None,
        typer.Option(
            metavar="WHERE",
            help="Share FILE out to workers: processes of this machine, or ray. Needs --out.",
            show_default=False,
        ),
    ] = None
    workers: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many workers; 0 is one for each core.")
    ] = 0
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the run that --out holds: do what is missing."),
    ] = False
    shard_rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="Rows that a worker is given at a time.")
    ] = SHARD_ROWS
    retries: Annotated[
        int, typer.Option(min=0, metavar="N", help="How often a shard that fails is tried again.")
    ] = RETRIES
    max_failures: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Stop when more shards than that have failed.",
            show_default="never",
        ),
    ] = None
    ray_address: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The Ray cluster, as ray.init takes it: HOST:PORT, auto, or ray://HOST:PORT.",
            show_default="one started here for the run",
        ),
    ] = ""
    ray_working_dir: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="A folder to send to every Ray node; relative paths in specs begin there.",
            show_default=False,
        ),
    ] = ""
    ray_models: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="Where embedded models lie on the Ray nodes.",
            show_default="as each node's EVENMATCH_MODELS says",
        ),
    ] = ""

    def check(self, file: str, out: str, *, segments: bool, lines: bool) -> None:
        """Refuse, as wrong usage, what does not go with --on, and what goes only with it."""
        if self.on is None:
            if self != Scaling(shard_rows=self.shard_rows, retries=self.retries):
                raise typer.BadParameter("--workers, --resume and the like need --on")
            return
        if lines or not file:
            raise typer.BadParameter("--on takes FILE or a folder, not -c and -r")
        if segments:
            raise typer.BadParameter("with --on every pair's scores go to --out; drop --segments")
        if not out:
            raise typer.BadParameter("--on needs --out: a .jsonl, .tsv or .parquet file, or DIR")
        if self.on is not On.ray and (self.ray_address or self.ray_working_dir or self.ray_models):
            raise typer.BadParameter("--ray-address and the like need --on ray")

    def runner(self, threads: int) -> Runner:
        """What opens the workers."""
        if self.on is On.ray:
            return Ray(
                self.workers, threads, self.ray_address, self.ray_working_dir, self.ray_models
            )
        return Processes(self.workers, threads)


def takes_scale_options(command: Command) -> Command:
    """A command whose `scaling` parameter is spelt out as the options of `Scaling`."""
    return spells_out("scaling", Scaling)(command)


def score_large(
    file: str, out: str, metrics: Sequence[str], running: Running, scaling: Scaling
) -> Result:
    """The result of a large run; what failed is told, and then it is an error."""
    with running.settings() as settings:
        wanted, reasons = chosen(metrics, make_run(**settings))
        found = score_files(
            file,
            out,
            wanted,
            on=scaling.runner(running.threads),
            resume=scaling.resume,
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
