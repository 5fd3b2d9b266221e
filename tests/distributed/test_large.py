"""Runs by real worker processes, and what is left when one is ended."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import evenmatch as em
from evenmatch.distributed.pool import (
    ShardDone,
    ShardFailed,
    ShardTask,
    WorkerJob,
    WorkerPool,
    WorkerReady,
    WorkerReply,
)
from evenmatch.distributed.processes import Processes
from evenmatch.distributed.run import ScoreFilesResult, score_files
from evenmatch.distributed.worker import Worker
from tests.distributed.conftest import (
    METRICS,
    Here,
    HerePool,
    expected,
    read_jsonl,
    records,
    write_jsonl,
)

ROWS = records(50)


@pytest.fixture
def given(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "in.jsonl", ROWS)


def run(given: Path, out: Path, **settings: Any) -> ScoreFilesResult:
    return score_files(str(given), str(out), METRICS, **{"on": Here(), "shard_rows": 7, **settings})


def test_processes_give_the_rows_of_a_run_in_one_piece(given: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    found = run(given, out, on=Processes(workers=2))
    assert read_jsonl(out) == expected(ROWS, METRICS)
    scores = em.score([r["candidate"] for r in ROWS], [r["references"] for r in ROWS], METRICS)
    for name, whole in scores.items():
        assert found.tallies[name].mean.value == pytest.approx(whole.mean, abs=1e-12)
        assert found.tallies[name].corpus == pytest.approx(whole.corpus, abs=1e-12)
    assert found.flagged == {"empty_candidate": 3}
    assert (found.rows, found.resumed_rows, found.failures) == (50, 0, ())


@pytest.mark.parametrize("name", ["o.jsonl", "o.jsonl.gz", "o.tsv", "o.tsv.gz", "o.parquet"])
def test_the_file_is_the_one_a_local_run_writes(given: Path, tmp_path: Path, name: str) -> None:
    from evenmatch.cli.main import main

    run(given, tmp_path / name)
    local = tmp_path / f"local-{name}"
    with pytest.raises(SystemExit):
        main(["score", str(given), "--out", str(local), *(x for m in METRICS for x in ("-m", m))])
    read: Any = Path.read_bytes
    if name.endswith(".gz"):
        read = lambda path: gzip.decompress(path.read_bytes())  # noqa: E731  # one of three readers
    if name.endswith(".parquet"):
        read = lambda path: pq.read_table(path).to_pylist()  # noqa: E731
    assert read(tmp_path / name) == read(local)


def test_a_folder_keeps_the_parts_alone(given: Path, tmp_path: Path) -> None:
    run(given, tmp_path / "out")
    parts = sorted((tmp_path / "out").glob("part-*.jsonl"))
    assert [row for part in parts for row in read_jsonl(part)] == expected(ROWS, METRICS)
    assert len(parts) == 8


def test_a_second_run_does_only_what_is_missing(given: Path, tmp_path: Path) -> None:
    out, seen = tmp_path / "out.jsonl", []
    run(given, out)
    (tmp_path / "out.jsonl.parts" / "part-000003.jsonl").unlink()
    found = run(given, out, on=Here(lambda task: seen.append(task.shard.number)), resume=True)
    assert seen == [3]
    assert found.resumed_rows == 43
    assert read_jsonl(out) == expected(ROWS, METRICS)


def test_a_run_that_is_done_starts_no_worker(given: Path, tmp_path: Path) -> None:
    run(given, tmp_path / "out.jsonl")
    run(given, tmp_path / "out.jsonl", on=_refuse, resume=True)


def _refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("no worker is needed")


def test_another_metric_is_refused_with_the_reason(given: Path, tmp_path: Path) -> None:
    run(given, tmp_path / "out.jsonl")
    with pytest.raises(
        em.InputError, match="cannot be resumed: metrics changed from without bleu to"
    ):
        score_files(
            str(given), str(tmp_path / "out.jsonl"), [*METRICS, "bleu"], resume=True, shard_rows=7
        )


def test_a_worker_that_is_killed_is_replaced_and_its_shard_done_again(
    given: Path, tmp_path: Path
) -> None:
    killed: list[int] = []

    def tell(done: int, total: int) -> None:
        if done and not killed:
            child = next(iter(_children()))
            killed.append(child)
            os.kill(child, signal.SIGKILL)

    run(given, tmp_path / "out.jsonl", on=Processes(workers=2), shard_rows=2, progress=tell)
    assert killed
    assert read_jsonl(tmp_path / "out.jsonl") == expected(ROWS, METRICS)


def _children() -> list[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(n) for n in listed.read_text().split()]


def test_a_shard_that_fails_is_tried_again(given: Path, tmp_path: Path) -> None:
    tries: list[int] = []

    def fail_twice(task: ShardTask) -> ShardFailed | None:
        tries.append(task.shard.number)
        return (
            ShardFailed(task.shard.number, "bad luck")
            if tries.count(2) < 3 and task.shard.number == 2
            else None
        )

    found = run(given, tmp_path / "out.jsonl", on=Here(fail_twice), retries=2)
    assert (tries.count(2), found.failures) == (3, ())


def test_a_row_that_always_fails_is_found_and_the_others_are_done(
    given: Path, tmp_path: Path
) -> None:
    def choke(task: ShardTask) -> ShardFailed | None:
        low, high = task.only_rows or (0, task.shard.rows)
        bad = task.shard.number == 2 and low <= 4 < high
        return ShardFailed(task.shard.number, "choked") if bad else None

    found = run(given, tmp_path / "out.jsonl", on=Here(choke))
    assert [str(f) for f in found.failures] == [
        f"rows 14 to 20 ({given} lines 15 to 21) failed, at row 18 ({given} line 19): choked"
    ]
    assert found.rows == 43
    assert not (tmp_path / "out.jsonl").exists()
    run(given, tmp_path / "out.jsonl", resume=True)
    assert read_jsonl(tmp_path / "out.jsonl") == expected(ROWS, METRICS)


def test_a_failure_that_no_single_row_shows_is_told_without_one(
    given: Path, tmp_path: Path
) -> None:
    def choke(task: ShardTask) -> ShardFailed | None:
        return (
            ShardFailed(task.shard.number, "odd")
            if task.shard.number == 2 and task.only_rows is None
            else None
        )

    found = run(given, tmp_path / "out.jsonl", on=Here(choke))
    assert [(f.row, f.reason) for f in found.failures] == [(None, "odd")]


def test_a_corrupt_row_is_named_and_mended_and_the_run_goes_on(given: Path, tmp_path: Path) -> None:
    lines = given.read_text().splitlines(keepends=True)
    given.write_text("".join([*lines[:30], '{"candidate": 7}\n', *lines[31:]]))
    found = run(given, tmp_path / "out.jsonl", on=Processes(workers=1))
    assert [str(f) for f in found.failures] == [
        f"rows 28 to 34 ({given} lines 29 to 35) failed, at row 30 ({given} line 31): "
        f"the candidate of {given} line 31 must be a string, got 7"
    ]
    write_jsonl(given, ROWS)
    assert run(given, tmp_path / "out.jsonl", resume=True).resumed_rows == 43
    assert read_jsonl(tmp_path / "out.jsonl") == expected(ROWS, METRICS)


def test_too_many_failures_end_the_run_and_keep_what_is_done(given: Path, tmp_path: Path) -> None:
    def choke(task: ShardTask) -> ShardFailed | None:
        return (
            ShardFailed(task.shard.number, "choked", row=0, retryable=False)
            if task.shard.number > 3
            else None
        )

    with pytest.raises(em.DataError, match="2 shards have failed, more than --max-failures 1"):
        run(given, tmp_path / "out.jsonl", on=Here(choke), max_failures=1)
    assert run(given, tmp_path / "out.jsonl", resume=True).resumed_rows == 28


def test_a_metric_that_cannot_start_is_one_error(given: Path, tmp_path: Path) -> None:
    metric = "align(vectors=lookup(table='nowhere.safetensors'))"
    with pytest.raises(em.EvenmatchError, match="nowhere"):
        score_files(str(given), str(tmp_path / "o.jsonl"), metric, on=Processes(workers=1))


def test_a_worker_of_another_version_is_refused(given: Path, tmp_path: Path) -> None:
    class Other(HerePool):
        def replies(self) -> list[WorkerReply]:
            return [WorkerReady(dict.fromkeys(METRICS, "something else"), 0.0)]

    @contextmanager
    def on(job: WorkerJob) -> Iterator[WorkerPool]:
        pool: Any = Other(Worker(job), None)
        yield pool

    with pytest.raises(em.DataError, match=r"a worker computes .* as something else, expected"):
        run(given, tmp_path / "o.jsonl", on=on)


def test_idf_is_counted_over_the_whole_input(given: Path, tmp_path: Path) -> None:
    metric = "align(vectors=hashed(weights=idf))"
    score_files(str(given), str(tmp_path / "o.jsonl"), metric, on=Here(), shard_rows=7)
    assert read_jsonl(tmp_path / "o.jsonl") == expected(ROWS, [metric])


@pytest.mark.parametrize("out", ["", "o.xlsx"])
def test_an_output_of_unknown_kind_is_refused(given: Path, out: str) -> None:
    with pytest.raises(em.InputError, match="unknown output format of"):
        score_files(str(given), out, METRICS)


def test_a_missing_folder_is_said_first(given: Path, tmp_path: Path) -> None:
    with pytest.raises(em.DataError, match=r"the folder of .* does not exist; create it first"):
        score_files(str(given), str(tmp_path / "no" / "o.jsonl"), METRICS)


@pytest.mark.model
@pytest.mark.slow
def test_workers_share_the_vector_cache(given: Path, tmp_path: Path, empty_cache: Path) -> None:
    for name in ("cold", "warm"):
        out = tmp_path / f"{name}.jsonl"
        score_files(str(given), str(out), "f_disc", on=Processes(2), shard_rows=10, cache="exact")
        for mine, theirs in zip(read_jsonl(out), expected(ROWS, ["f_disc"]), strict=True):
            assert mine["value"] == pytest.approx(theirs["value"], abs=1e-6)
    assert (empty_cache / "states" / "data.mdb").is_file()


@pytest.fixture
def orphan(given: Path, tmp_path: Path) -> int:
    """The worker of a driver that was killed after its first shard."""
    program = (
        "import os, signal, sys\n"
        "from evenmatch.distributed.run import score_files\n"
        "from evenmatch.distributed.processes import Processes\n"
        "def tell(done, total):\n"
        "    if done:\n"
        "        print(open(f'/proc/self/task/{os.getpid()}/children').read(), flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        f"score_files({str(given)!r}, {str(tmp_path / 'o.jsonl')!r}, {METRICS!r}, "
        "on=Processes(1), shard_rows=7, progress=tell)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    return int(done.stdout.split()[0])


def test_a_worker_ends_soon_after_its_driver(orphan: int) -> None:
    worker = Path(f"/proc/{orphan}")
    for _ in range(100):
        if not worker.exists() or "Z" in (worker / "stat").read_text().split():
            break
        time.sleep(0.1)
    else:
        pytest.fail("the worker is still there")


@pytest.mark.usefixtures("orphan")
def test_a_run_goes_on_where_its_driver_was_killed(given: Path, tmp_path: Path) -> None:
    assert run(given, tmp_path / "o.jsonl", resume=True).resumed_rows == 7
    assert read_jsonl(tmp_path / "o.jsonl") == expected(ROWS, METRICS)


def test_what_is_done_says_where_time_went(given: Path, tmp_path: Path) -> None:
    found = run(given, tmp_path / "o.jsonl")
    assert set(found.seconds) == {"read", "score", "write"}
    assert all(spent > 0 for spent in found.seconds.values())
    lines = (tmp_path / "o.jsonl.parts" / "manifest.jsonl").read_text().splitlines()
    assert {json.loads(line)["shard"] for line in lines[1:]} == set(range(8))


def test_done_and_failed_travel(given: Path, tmp_path: Path) -> None:
    import pickle

    for reply in (ShardDone(1, b"x", {}, {}, {}), ShardFailed(1, "why"), WorkerReady({}, 1.0)):
        assert pickle.loads(pickle.dumps(reply)) == reply
