"""score_files: a corpus of any size from files to files, by workers, with nothing lost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.data.addresses import is_address, local, store_of
from evenmatch.data.rows import is_row_file
from evenmatch.errors import DataError, InputError
from evenmatch.scoring.settings import make_run
from evenmatch.scoring.tally import Tally
from evenmatch.uses.scale.driving import Failure
from evenmatch.uses.scale.job import Job
from evenmatch.uses.scale.joining import form_of, join_parts
from evenmatch.uses.scale.keeping import NO_ROOM, Keeper, as_sent, header_of
from evenmatch.uses.scale.loading import loading
from evenmatch.uses.scale.manifest import Manifest, open_manifest
from evenmatch.uses.scale.pool import Runner
from evenmatch.uses.scale.processes import Processes
from evenmatch.uses.scale.recipes import Recipes, recipes
from evenmatch.uses.scale.shards import Shard, plan_shards
from evenmatch.uses.scale.sums import joined

SHARD_ROWS = 2000
RETRIES = 2


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
    out = local(out)
    folder, form = _place(out)
    shards = plan_shards(path, shard_rows)
    with loading() as load:
        wanted = recipes(names, shards, load)
        header = header_of(wanted, form, shard_rows, settings)
        with open_manifest(folder, header, shards, resume=resume) as manifest:
            before = dict(manifest.done)
            keeper = Keeper(manifest, wanted, form, settings, shards)
            job = Job(wanted.specs, form, as_sent(settings), os.getcwd(), wanted.tables)
            failures = keeper.work(on, job, load, retries, max_failures)
            if not failures and is_row_file(out):
                _join([manifest.part(s.number, form) for s in shards], out)
            return _outcome(manifest, wanted, failures, shards, before)


def _place(out: str) -> tuple[Path, str]:
    """The folder that keeps the parts, and their suffix."""
    if is_address(out):
        return _place_here(out)
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


def _place_here(address: str) -> tuple[Path, str]:
    """The parts of a file that will lie elsewhere: beside nothing, so in the working directory."""
    store_of(address)  # better refused now than after hours
    if not is_row_file(address):
        raise InputError(
            f"an address takes one file, got {address}; let it end in .jsonl, .tsv or .parquet"
        )
    return Path(f"{Path(address).name}.parts"), form_of(address)


def _join(parts: Sequence[Path], out: str) -> None:
    try:
        join_parts(parts, out)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise DataError(
            f"{out}: {(error.strerror or '').lower()}; every shard is done and kept in "
            f"{parts[0].parent}; make room and go on with --resume"
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
