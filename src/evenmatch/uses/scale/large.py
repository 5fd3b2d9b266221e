"""score_files: a corpus of any size from files to files, by workers, with nothing lost."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.data.rows import is_row_file
from evenmatch.errors import DataError, InputError
from evenmatch.scoring.settings import make_run
from evenmatch.scoring.tally import Tally
from evenmatch.types import Run
from evenmatch.uses.scale.driving import Driver, Failure
from evenmatch.uses.scale.job import Done, Job, Ready
from evenmatch.uses.scale.joining import form_of, join_parts
from evenmatch.uses.scale.loading import loading
from evenmatch.uses.scale.manifest import Manifest, open_manifest
from evenmatch.uses.scale.pool import Runner
from evenmatch.uses.scale.processes import Processes
from evenmatch.uses.scale.recipes import Recipes, recipes
from evenmatch.uses.scale.shards import Shard, plan_shards
from evenmatch.uses.scale.sums import joined

SHARD_ROWS = 2000
RETRIES = 2
_LAYOUT = 1
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Outcome:
    """What a large run came to: means by metric, flagged rows, and what was given up.

    `seconds` sums what workers spent, by what they did; `kept` is how many rows an earlier run
    had done.
    """

    tallies: Mapping[str, Tally]
    flagged: Mapping[str, int]
    failures: tuple[Failure, ...]
    rows: int
    kept: int
    seconds: Mapping[str, float]


def score_files(
    path: str,
    out: str,
    metric: str | Sequence[str] = "bertscore",
    *,
    on: Runner = Processes(),
    resume: bool = False,
    shard_rows: int = SHARD_ROWS,
    retries: int = RETRIES,
    max_failures: int | None = None,
    **run: Any,
) -> Outcome:
    """Score a JSONL or Parquet file, or a folder of them, shard by shard, by many workers.

    `out` is a file of rows (.jsonl, .tsv, .parquet) beside which the folder `out`.parts keeps the
    shards and their record, or a folder that keeps them alone. Killed at any moment and asked
    again with `resume`, it does only what is missing. A shard that fails is tried again, then given
    up without stopping the others, until more than `max_failures` have failed.

    The scores are those of `score`, in the order of the input.
    """
    settings = make_run(**run)
    names = [metric] if isinstance(metric, str) else list(dict.fromkeys(metric))
    folder, form = _place(out)
    shards = plan_shards(path, shard_rows)
    with loading() as load:
        wanted = recipes(names, shards, load)
        header = {
            "layout": _LAYOUT,
            "metrics": wanted.signatures,
            "form": form,
            "shard_rows": shard_rows,
            "vectors": "compact" if settings.cache and not settings.cache.exact else "exact",
        }
        with open_manifest(folder, header, shards, resume=resume) as manifest:
            before = dict(manifest.done)
            keeper = _Keeper(manifest, wanted, form, settings, shards)
            job = Job(wanted.specs, form, _plain(settings), os.getcwd(), wanted.tables)
            failures = keeper.work(on, job, load, retries, max_failures)
            if not failures and is_row_file(out):
                _join([manifest.part(s.number, form) for s in shards], out)
            return _outcome(manifest, wanted, failures, shards, before)


def _place(out: str) -> tuple[Path, str]:
    """The folder that keeps the parts, and their suffix."""
    if is_row_file(out):
        if not Path(out).resolve().parent.is_dir():
            raise DataError(f"there is no folder to write {out} in; make it first")
        return Path(f"{out}.parts"), form_of(out)
    if not out or Path(out).is_file() or Path(out).suffix:
        raise InputError(
            f"cannot tell how to write {out or 'the scores'}; "
            "give a .jsonl, .tsv or .parquet file, or a folder"
        )
    return Path(out), ".jsonl"


def _plain(run: Run) -> dict[str, Any]:
    """Run settings as they travel; progress is told here and not there."""
    return {
        "device": run.device,
        "threads": run.threads,
        "batch_tokens": run.batch_tokens,
        "cache": run.cache,
    }


@dataclass(frozen=True)
class _Keeper:
    """Keeps what workers send and tells how far the run has come."""

    manifest: Manifest
    recipes: Recipes
    form: str
    run: Run
    shards: Sequence[Shard]

    def work(
        self, on: Runner, job: Job, load: Any, retries: int, max_failures: int | None
    ) -> list[Failure]:
        todo = [shard for shard in self.shards if shard.number not in self.manifest.done]
        self._tell()
        if not todo:
            return []
        with on(job) as pool:
            driver = Driver(pool, load, self.keep, self.check, retries, max_failures)
            return driver(todo)

    def check(self, ready: Ready) -> None:
        self.recipes.check(ready.signatures)

    def keep(self, shard: Shard, done: Done) -> None:
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
        if error.errno not in _NO_ROOM:
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


def _join(parts: Sequence[Path], out: str) -> None:
    try:
        join_parts(parts, out)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise DataError(
            f"{out}: {(error.strerror or '').lower()}; every shard is done and kept in "
            f"{out}.parts; make room and go on with --resume"
        ) from None


def _outcome(
    manifest: Manifest,
    wanted: Recipes,
    failures: Sequence[Failure],
    shards: Sequence[Shard],
    before: Mapping[int, Mapping[str, Any]],
) -> Outcome:
    lines = [manifest.done[s.number] for s in shards if s.number in manifest.done]
    tallies = {
        name: joined(part, [line["tallies"][name] for line in lines]) if lines else Tally()
        for name, part in wanted.parts.items()
    }
    flagged: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for line in lines:
        flagged.update(line["flags"])
        for what, spent in line["seconds"].items():
            seconds[what] += spent
    kept = sum(line["rows"] for line in before.values())
    rows = sum(line["rows"] for line in lines)
    return Outcome(tallies, flagged, tuple(failures), rows, kept, seconds)
