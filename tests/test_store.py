"""The store is bounded, shared by processes, and consistent after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenmatch.errors import DataError
from evenmatch.store import Store


def key(i: int) -> bytes:
    return b"%020d" % i


def read(store: Store, *numbers: int) -> list[bytes | None]:
    with store.read_entries([key(i) for i in numbers]) as views:
        return [None if v is None else bytes(v) for v in views]


def test_written_entries_are_read(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", 10**6)
    store.write({key(1): b"one", key(2): b"two"})
    assert read(store, 2, 1, 3) == [b"two", b"one", None]
    assert store.usage() == (2, 6)


def test_a_store_that_was_never_written_is_empty_and_leaves_no_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", 10**6)
    assert read(store, 1) == [None]
    assert store.usage() == (0, 0)
    store.clear()
    assert not (tmp_path / "s").exists()


def test_an_entry_is_never_overwritten(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", 10**6)
    store.write({key(1): b"first"})
    store.write({key(1): b"second"})
    assert read(store, 1) == [b"first"]
    assert store.usage() == (1, 5)


def test_clear_removes_everything(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", 10**6)
    store.write({key(1): b"x"})
    store.clear()
    assert read(store, 1) == [None]
    assert store.usage() == (0, 0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1e9]
    monkeypatch.setattr("evenmatch.store.time.time", lambda: now[0])
    return now


def test_the_least_recently_used_entries_are_evicted_first(
    tmp_path: Path, clock: list[float]
) -> None:
    store = Store(tmp_path / "s", 1000)
    for i in range(10):
        clock[0] += 3600
        store.write({key(i): bytes(100)})
    clock[0] += 3600
    store.write({}, used=[key(0)])
    clock[0] += 3600
    store.write({key(10): bytes(100)})
    left = [i for i in range(11) if read(store, i) != [None]]
    assert 0 in left
    assert 10 in left
    assert 1 not in left
    assert store.usage()[1] <= 1000


def test_the_store_stays_within_its_bound(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", 50_000)
    for i in range(40):
        store.write({key(100 * i + j): bytes(500) for j in range(10)})
        assert store.usage()[1] <= 50_000


def test_a_damaged_file_raises_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "data.mdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(DataError, match=r"cannot use the vector cache in .* evenmatch cache clear"):
        read(Store(tmp_path / "s", 10**6), 1)


def test_clear_repairs_a_damaged_store(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "data.mdb").write_bytes(b"not a database" * 1000)
    store = Store(tmp_path / "s", 10**6)
    store.clear()
    store.write({key(1): b"one"})
    assert read(store, 1) == [b"one"]


_WRITER = """
import sys
from pathlib import Path
from evenmatch.store import Store
store, start = Store(Path(sys.argv[1]), 10**9), int(sys.argv[2])
for i in range(start, start + int(sys.argv[3])):
    store.write({b"%020d" % i: (b"%08d" % i) * 2500})
    print(i, flush=True)
"""


def writer(folder: Path, start: int, count: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", _WRITER, str(folder), str(start), str(count)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    writers = [writer(tmp_path / "s", start, 40) for start in (0, 1000)]
    for process in writers:
        process.communicate(timeout=60)
        assert process.returncode == 0
    store = Store(tmp_path / "s", 10**9)
    for i in [*range(40), *range(1000, 1040)]:
        assert read(store, i) == [(b"%08d" % i) * 2500]


def test_a_kill_at_any_moment_leaves_only_complete_entries(tmp_path: Path) -> None:
    for attempt in range(4):
        process = writer(tmp_path / "s", 10_000 * attempt, 10_000)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.03 * attempt)
        os.kill(process.pid, signal.SIGKILL)
        reported = [int(line) for line in process.communicate()[0].split()]
        store = Store(tmp_path / "s", 10**9)
        # Every entry reported as written exists, and every existing entry is complete.
        for i in range(10_000 * attempt, max(reported, default=10_000 * attempt) + 2):
            value, complete = read(store, i)[0], (b"%08d" % i) * 2500
            assert value == complete or (value is None and i not in reported)
    store.write({key(1): b"still writable"})
