"""Options of commands whose pairs can be shared out to workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import typer

from evenmatch.cli.options import Running, count, optional
from evenmatch.uses.scale.large import RETRIES, SHARD_ROWS
from evenmatch.uses.scale.pool import Runner
from evenmatch.uses.scale.processes import Processes
from evenmatch.uses.scale.ray_actors import Ray
from evenmatch.uses.scale.sharing import Sharing, sharing_out

Parts: TypeAlias = Annotated[
    str,
    optional(
        "DIR", "With --on, keep finished shards here; the next run does only what is missing."
    ),
]


class On(StrEnum):
    """What workers run on."""

    processes = "processes"
    ray = "ray"


@dataclass(frozen=True)
class Scaling:
    """How many pairs are shared out: the options beside those every run of metrics has."""

    on: Annotated[
        On | None,
        optional("WHERE", "Share the pairs out to workers: processes of this machine, or ray."),
    ] = None
    workers: Annotated[int, count("How many workers; 0 is one for each core.", least=0)] = 0
    shard_rows: Annotated[int, count("Rows that a worker is given at a time.")] = SHARD_ROWS
    retries: Annotated[int, count("How often a shard that fails is tried again.", least=0)] = (
        RETRIES
    )
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
        optional("DIR", "A folder to send to every Ray node; relative paths in specs begin there."),
    ] = ""
    ray_models: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="Where embedded models lie on the Ray nodes.",
            show_default="as each node's EVENMATCH_MODELS says",
        ),
    ] = ""

    def check(self, *others: object) -> None:
        """Refuse, as wrong usage, what goes only with --on, `others` among it, or with --on ray."""
        plain = Scaling(shard_rows=self.shard_rows, retries=self.retries)
        if self.on is None and (any(others) or self != plain):
            raise typer.BadParameter("--workers, --resume, --parts and the like need --on")
        if self.on is not On.ray and (self.ray_address or self.ray_working_dir or self.ray_models):
            raise typer.BadParameter("--ray-address and the like need --on ray")

    def runner(self, threads: int) -> Runner:
        """What opens the workers."""
        if self.on is On.ray:
            return Ray(
                self.workers, threads, self.ray_address, self.ray_working_dir, self.ray_models
            )
        return Processes(self.workers, threads)

    @contextmanager
    def settings(self, running: Running, parts: str) -> Iterator[dict[str, Any]]:
        """The run settings of the library, workers among them where they are asked for."""
        self.check(parts)
        with running.settings() as settings, self._sharing(running.threads, parts) as on:
            yield {**settings, "on": on}

    @contextmanager
    def _sharing(self, threads: int, parts: str) -> Iterator[Sharing | None]:
        if self.on is None:
            yield None
            return
        with sharing_out(
            self.runner(threads),
            parts=parts,
            shard_rows=self.shard_rows,
            retries=self.retries,
            max_failures=self.max_failures,
        ) as sharing:
            yield sharing
