"""Runs that can be resumed: `score_files` by workers, `resumable_run` in this process.

The input is split into shards (`shards.py`), each shard is scored by a worker and stored
(`driver.py`, `manifest.py`), and the parts are concatenated in input order.

A run in this process stores the scores of finished chunks beside the output file, in the folder
`FILE.partial` with a manifest of the same form. The next run with the same output file reads them
instead of scoring those chunks again. The folder is removed when the output file is complete.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.data.files import (
    concatenate_parquet,
    is_url,
    local_path,
    resolve_filesystem,
    upload_file,
)
from evenmatch.data.scores import LayoutStyle, ScoreLayout, atomic_write, is_score_file
from evenmatch.distributed.driver import (
    Driver,
    ShardFailure,
    build_run_metrics,
    explain_full_disk,
    manifest_header,
)
from evenmatch.distributed.manifest import Manifest, open_manifest
from evenmatch.distributed.pool import Runner
from evenmatch.distributed.processes import Processes
from evenmatch.distributed.shards import (
    Shard,
    ShardLoader,
    make_shard,
    parse_shard_pairs,
    plan_shards,
)
from evenmatch.distributed.worker import PACKED_SUFFIX, merge_tallies, pack_scores, unpack_scores
from evenmatch.errors import DataError, EvenmatchError, InputError
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.streaming import RunningMean
from evenmatch.types import Pair, Scores

SHARD_ROWS = 2000
RETRIES = 2


@check_arguments
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
    layout: LayoutStyle = "long",
    scale: float = 1.0,
    **run: Any,
) -> ScoreFilesResult:
    """Score a JSONL or Parquet file, or a folder of them, in shards by several workers.

    `out` is a file (.jsonl, .tsv, .csv, .parquet) with a row for each pair and metric, or with the
    `layout` 'wide' a row for each pair; numbers are multiplied by `scale`. The scored shards and
    the manifest are stored in the folder `out`.parts. If `out` is a folder, they are stored there
    and not joined. A run that was interrupted at any moment and is repeated with `resume` scores
    only the missing shards. A shard that fails is retried `retries` times. The other shards are
    scored nevertheless, unless more than `max_failures` shards fail.

    The scores are equal to those of `score`, in the order of the input.
    """
    settings = make_run(**run)
    names = [metric] if isinstance(metric, str) else list(dict.fromkeys(metric))
    out = local_path(out)
    folder, suffix = _parts_folder(out)
    shards = plan_shards(path, shard_rows)
    with closing(ShardLoader()) as load:
        metrics = build_run_metrics(names, shards, load)
        written = ScoreLayout(layout, _first_fields(shards, load), scale)
        header = manifest_header(metrics, written.describe(suffix), shard_rows, settings)
        with open_manifest(folder, header, shards, resume=resume) as manifest:
            resumed = sum(line["rows"] for line in manifest.done.values())
            limits = (retries, max_failures)
            driver = Driver(manifest, metrics, suffix, settings, shards, load, *limits, written)
            failures = driver(on)
            if not failures and is_score_file(out):
                with explain_full_disk(f"every shard is scored and stored in {folder}", out):
                    join_parts([manifest.part_path(s.number, suffix) for s in shards], out)
            lines = [manifest.done[number] for number in sorted(manifest.done)]
    tallies = {
        name: merge_tallies(part, [line["tallies"][name] for line in lines]).scaled(scale)
        for name, part in metrics.metrics.items()
    }
    flagged: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for line in lines:
        flagged.update(line["flags"])
        seconds.update(line["seconds"])
    rows = sum(line["rows"] for line in lines)
    return ScoreFilesResult(tallies, flagged, tuple(failures), rows, resumed, seconds)


@dataclass(frozen=True)
class ScoreFilesResult:
    """Result of `score_files`: means by metric, counts of flags, and failed shards.

    `seconds` is the time that workers spent, by activity; `resumed_rows` is the number of rows that
    an earlier run had scored.
    """

    tallies: Mapping[str, RunningMean]
    flagged: Mapping[str, int]
    failures: tuple[ShardFailure, ...]
    rows: int
    resumed_rows: int
    seconds: Mapping[str, float]


def join_parts(parts: Sequence[Path], out: str) -> None:
    """Concatenate the parts into one file, atomically.

    For a remote address the file is built locally and then uploaded; whether the upload is atomic
    depends on the remote file system.
    """
    if is_url(out):
        with tempfile.TemporaryDirectory(prefix=".upload-", dir=parts[0].parent) as folder:
            whole = str(Path(folder) / Path(out).name)
            join_parts(parts, whole)
            upload_file(whole, out)
        return
    with atomic_write(out) as temporary:
        if out.lower().endswith(".parquet"):
            concatenate_parquet([str(part) for part in parts], temporary)
        else:
            open_file: Any = gzip.open if out.lower().endswith(".gz") else open
            with open_file(temporary, "wb") as sink:
                for n, part in enumerate(parts):
                    with part.open("rb") as source:
                        if n and part.suffix in (".tsv", ".csv"):
                            source.readline()  # the header is that of the first part
                        shutil.copyfileobj(source, sink, 1 << 20)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())


def _first_fields(shards: Sequence[Shard], load: ShardLoader) -> tuple[str, ...] | None:
    """Names of the first pair's own fields; None if it cannot be read, which workers report."""
    with suppress(EvenmatchError):
        for pair in parse_shard_pairs(load(shards[0]), shards[0]):
            return tuple(pair.fields or ())
    return None


def part_suffix(out: str) -> str:
    """Suffix of the parts of a file, which are not compressed."""
    return Path(out.lower().removesuffix(".gz")).suffix


def _parts_folder(out: str) -> tuple[Path, str]:
    """Return the folder of the parts, and their suffix; for a URL, in the working directory."""
    if is_url(out):
        resolve_filesystem(out)  # fail now rather than after hours of work
        if not is_score_file(out):
            raise InputError(
                f"remote output must be one file, got {out}; use .jsonl, .tsv, .csv or .parquet"
            )
        return Path(f"{Path(out).name}.parts"), part_suffix(out)
    if is_score_file(out):
        if not Path(out).resolve().parent.is_dir():
            raise DataError(f"the folder of {out} does not exist; create it first")
        return Path(f"{out}.parts"), part_suffix(out)
    if not out or Path(out).is_file() or Path(out).suffix:
        raise InputError(
            f"unknown output format of {out or 'the scores'}; "
            "give a .jsonl, .tsv, .csv or .parquet file, or a folder"
        )
    return Path(out), ".jsonl"


@contextmanager
def resumable_run(
    out: str, source: str, header: Callable[[], Mapping[str, Any]]
) -> Iterator[PartialScores]:
    """Yield the store of finished chunks of the run that writes `out`; removed on success.

    `source` names the input in messages. `header` returns the settings that must be unchanged for a
    run to be continued; it is called only if there is something to store or to continue.
    """
    folder = Path(f"{out}.partial")
    with ExitStack() as stack:
        yield PartialScores(folder, source, header, stack)
    shutil.rmtree(folder, ignore_errors=True)


class PartialScores:
    """The `ChunkStore` of a run; nothing is written before the first chunk is saved."""

    def __init__(
        self,
        folder: Path,
        source: str,
        header: Callable[[], Mapping[str, Any]],
        stack: ExitStack,
    ) -> None:
        self._folder, self._source, self._header, self._stack = folder, source, header, stack
        self._opened: Manifest | None = None
        self._count = 0
        self.resumed_rows = 0

    def load(self, first: int, pairs: Sequence[Pair]) -> list[Scores] | None:
        """Return the scores of a chunk if an earlier run stored them."""
        number, self._count = self._count, self._count + 1
        if not self._folder.exists():
            return None
        manifest = self._manifest()
        if number not in manifest.done:
            return None
        manifest.check_shard(make_shard(number, first, self._source, pairs))
        self.resumed_rows += len(pairs)
        return unpack_scores(manifest.part_path(number, PACKED_SUFFIX).read_bytes())

    def save(self, first: int, pairs: Sequence[Pair], scores: Sequence[Scores]) -> None:
        """Store the scores of the chunk that was last asked for."""
        shard = make_shard(self._count - 1, first, self._source, pairs)
        self._manifest().add_shard(shard, pack_scores(scores), {"form": PACKED_SUFFIX})

    def _manifest(self) -> Manifest:
        if self._opened is None:
            opened = open_manifest(self._folder, self._header(), None, resume=True)
            self._opened = self._stack.enter_context(opened)
        return self._opened
