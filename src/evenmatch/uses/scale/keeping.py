"""What workers send is kept as it comes: entered in the record, and told."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenmatch.errors import DataError
from evenmatch.types import Run
from evenmatch.uses.scale.driving import Driver, Failure
from evenmatch.uses.scale.job import Done, Job, Ready
from evenmatch.uses.scale.manifest import Manifest
from evenmatch.uses.scale.pool import Runner
from evenmatch.uses.scale.recipes import Recipes
from evenmatch.uses.scale.shards import Shard

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LAYOUT = 1


def header_of(wanted: Recipes, form: str, shard_rows: int, run: Run) -> dict[str, Any]:
    """What a record is a record of; a run that differs in any of it is another."""
    return {
        "layout": _LAYOUT,
        "metrics": wanted.signatures,
        "form": form,
        "shard_rows": shard_rows,
        "vectors": "compact" if run.cache and not run.cache.exact else "exact",
    }


def as_sent(run: Run) -> dict[str, Any]:
    """Run settings as they travel; progress is told here and not there."""
    return {
        "device": run.device,
        "threads": run.threads,
        "batch_tokens": run.batch_tokens,
        "cache": run.cache,
    }


@dataclass(frozen=True)
class Keeper:
    """Keeps what workers send and tells how far the run has come."""

    manifest: Manifest
    recipes: Recipes
    form: str
    run: Run
    shards: Sequence[Shard]

    def work(
        self, on: Runner, job: Job, load: Any, retries: int, max_failures: int | None
    ) -> list[Failure]:
        """Score what is missing; gives the shards that were given up."""
        todo = [shard for shard in self.shards if shard.number not in self.manifest.done]
        self._tell()
        if not todo:
            return []
        with on(job) as pool:
            driver = Driver(pool, load, self.keep, self.check, retries, max_failures)
            return driver(todo)

    def check(self, ready: Ready) -> None:
        """Refuse a worker that computes something else."""
        self.recipes.check(ready.signatures)

    def keep(self, shard: Shard, done: Done) -> None:
        """Enter a shard in the record and tell."""
        self.recipes.check({name: own["signature"] for name, own in done.tallies.items()})
        found = {
            "form": self.form,
            "tallies": done.tallies,
            "flags": done.flags,
            "seconds": {k: round(v, 4) for k, v in done.seconds.items()},
        }
        try:
            self.manifest.enter(shard, done.data, found)
        except OSError as error:
            raise self._no_room(error) from None
        self._tell()

    def _no_room(self, error: OSError) -> OSError:
        if error.errno not in NO_ROOM:
            return error
        return DataError(
            f"{error.filename}: {(error.strerror or '').lower()}; {len(self.manifest.done)} of "
            f"{len(self.shards)} shards are done and kept; make room and go on with --resume"
        )

    def _tell(self) -> None:
        if self.run.progress is not None:
            last = self.shards[-1]
            done = sum(line["rows"] for line in self.manifest.done.values())
            self.run.progress(done, last.first + last.rows)
