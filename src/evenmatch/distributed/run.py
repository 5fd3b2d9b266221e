"""score_files: a corpus of any size from files to files, by workers, with nothing lost.

The parts of a run put together into one file, in order.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from evenmatch.data.files import (
    concatenate_parquet,
    is_url,
    local_path,
    resolve_filesystem,
    upload_file,
)
from evenmatch.data.scores import atomic_write, is_score_file
from evenmatch.distributed.driver import (
    DISK_FULL_ERRNOS,
    RunMetrics,
    ShardCheckpointer,
    ShardFailure,
    build_run_metrics,
    manifest_header,
    worker_settings,
)
from evenmatch.distributed.manifest import Manifest, open_manifest
from evenmatch.distributed.messages import Runner, WorkerJob
from evenmatch.distributed.processes import Processes
from evenmatch.distributed.shards import Shard, open_loader, plan_shards
from evenmatch.distributed.worker import merge_tallies
from evenmatch.errors import DataError, InputError
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.streaming import RunningMean

SHARD_ROWS = 2000


RETRIES = 2


@dataclass(frozen=True)
class ScoreFilesResult:
    """What a large run came to: means by metric, flagged rows, and what was given up.

    `seconds` sums what workers spent, by what they did; `kept` is how many rows an earlier run
    had done.
    """

    tallies: Mapping[str, RunningMean]
    flagged: Mapping[str, int]
    failures: tuple[ShardFailure, ...]
    rows: int
    resumed_rows: int
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
) -> ScoreFilesResult:
    """Score a JSONL or Parquet file, or a folder of them, shard by shard, by many workers.

    `out` is a file of rows (.jsonl, .tsv, .parquet) beside which the folder `out`.parts keeps the
    shards and their record, or a folder that keeps them alone. Killed at any moment and asked
    again with `resume`, it does only what is missing. A shard that fails is tried again, then given
    up without stopping the others, until more than `max_failures` have failed.

    The scores are those of `score`, in the order of the input.
    """
    settings = make_run(**run)
    names = [metric] if isinstance(metric, str) else list(dict.fromkeys(metric))
    out = local_path(out)
    folder, form = _parts_folder(out)
    shards = plan_shards(path, shard_rows)
    with open_loader() as load:
        wanted = build_run_metrics(names, shards, load)
        header = manifest_header(wanted, form, shard_rows, settings)
        with open_manifest(folder, header, shards, resume=resume) as manifest:
            before = dict(manifest.done)
            keeper = ShardCheckpointer(manifest, wanted, form, settings, shards)
            job = WorkerJob(
                wanted.specs, form, worker_settings(settings), os.getcwd(), wanted.idf_tables
            )
            failures = keeper.score_missing(on, job, load, retries, max_failures)
            if not failures and is_score_file(out):
                _join_output([manifest.part_path(s.number, form) for s in shards], out)
            return _collect_result(manifest, wanted, failures, shards, before)


def _parts_folder(out: str) -> tuple[Path, str]:
    """The folder that keeps the parts, and their suffix."""
    if is_url(out):
        return _remote_parts_folder(out)
    if is_score_file(out):
        if not Path(out).resolve().parent.is_dir():
            raise DataError(f"there is no folder to write {out} in; make it first")
        return Path(f"{out}.parts"), part_suffix(out)
    if not out or Path(out).is_file() or Path(out).suffix:
        raise InputError(
            f"cannot tell how to write {out or 'the scores'}; "
            "give a .jsonl, .tsv or .parquet file, or a folder"
        )
    return Path(out), ".jsonl"


def _remote_parts_folder(address: str) -> tuple[Path, str]:
    """The parts of a file that will lie elsewhere: beside nothing, so in the working directory."""
    resolve_filesystem(address)  # better refused now than after hours
    if not is_score_file(address):
        raise InputError(
            f"an address takes one file, got {address}; let it end in .jsonl, .tsv or .parquet"
        )
    return Path(f"{Path(address).name}.parts"), part_suffix(address)


def _join_output(parts: Sequence[Path], out: str) -> None:
    try:
        join_parts(parts, out)
    except OSError as error:
        if error.errno not in DISK_FULL_ERRNOS:
            raise
        raise DataError(
            f"{out}: {(error.strerror or '').lower()}; every shard is done and kept in "
            f"{parts[0].parent}; make room and go on with --resume"
        ) from None


def _collect_result(
    manifest: Manifest,
    wanted: RunMetrics,
    failures: Sequence[ShardFailure],
    shards: Sequence[Shard],
    before: Mapping[int, Mapping[str, Any]],
) -> ScoreFilesResult:
    lines = [manifest.done[s.number] for s in shards if s.number in manifest.done]
    tallies = {
        name: merge_tallies(part, [line["tallies"][name] for line in lines])
        if lines
        else RunningMean()
        for name, part in wanted.metrics.items()
    }
    flagged: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for line in lines:
        flagged.update(line["flags"])
        for what, spent in line["seconds"].items():
            seconds[what] += spent
    kept = sum(line["rows"] for line in before.values())
    rows = sum(line["rows"] for line in lines)
    return ScoreFilesResult(tallies, flagged, tuple(failures), rows, kept, seconds)


def join_parts(parts: Sequence[Path], out: str) -> None:
    """One file of all rows; it appears whole or not at all.

    At an address of another place it is made here and then copied there; whether half a copy can be
    seen on the way is up to that place.
    """
    if is_url(out):
        with tempfile.TemporaryDirectory(dir=parts[0].parent) as folder:
            whole = str(Path(folder) / Path(out).name)
            join_parts(parts, whole)
            upload_file(whole, out)
        return
    with atomic_write(out) as place:
        if out.lower().endswith(".parquet"):
            concatenate_parquet([str(part) for part in parts], place)
        else:
            opened: Any = gzip.open if out.lower().endswith(".gz") else open
            with opened(place, "wb") as sink:
                _concatenate_files(parts, sink, headed=part_suffix(out) == ".tsv")
        with open(place, "rb+") as file:
            os.fsync(file.fileno())


def part_suffix(out: str) -> str:
    """The suffix of the parts of a file: they are not compressed."""
    return Path(out.lower().removesuffix(".gz")).suffix


def _concatenate_files(parts: Sequence[Path], sink: IO[bytes], *, headed: bool) -> None:
    """Text after text, of those with a header only the first one's."""
    for n, part in enumerate(parts):
        with part.open("rb") as source:
            if headed and n:
                source.readline()
            shutil.copyfileobj(source, sink, 1 << 20)
