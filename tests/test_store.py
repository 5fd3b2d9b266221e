"""The store is bounded, shared by processes, and consistent after a kill."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenmatch.errors import DataError
from evenmatch.store import Store, _open_segments
from tests.support.damage import damage_file


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


def test_the_least_recently_used_entries_are_evicted_first(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", 1000)
    for i in range(10):
        store.write({key(i): bytes(100)})
    store.write({}, used=[key(0)])
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


def test_a_batch_larger_than_the_store_is_bounded(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", 10_000)
    store.write({key(i): bytes(500) for i in range(100)})
    assert 0 < store.usage()[1] <= 10_000
    assert read(store, 99) == [bytes(500)]


def test_a_folder_that_cannot_be_used_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a file")
    store = Store(tmp_path / "s", 10**6)
    for use in (lambda: read(store, 1), lambda: store.write({key(1): b"x"}), store.usage):
        with pytest.raises(DataError, match=r"cannot use the cache in .* evenmatch cache clear"):
            use()


def test_a_changed_entry_counts_as_absent_and_is_written_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path / "s", 10**6)
    store.write({key(1): b"first", key(2): b"second"})
    (data,) = (tmp_path / "s").glob("*.data")
    data.write_bytes(data.read_bytes().replace(b"first", b"fir5t"))
    assert read(store, 1, 2) == [None, b"second"]
    assert caplog.messages == [
        f"1 entries in {tmp_path / 's'} are damaged or gone; they are computed again"
    ]
    store.write({key(1): b"first"})
    assert read(store, 1, 2) == [b"first", b"second"]
    forget_open_stores()
    assert read(store, 1, 2) == [b"first", b"second"]


@pytest.mark.parametrize("kind", ["data", "index"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "zero", "swap", "remove", "grow", "folder"])
def test_damage_hides_entries_but_never_alters_one(tmp_path: Path, kind: str, damage: str) -> None:
    draw = random.Random(f"{kind} {damage}")
    values = {key(i): draw.randbytes(draw.randrange(1, 300)) for i in range(60)}
    for attempt in range(2):
        folder = tmp_path / str(attempt)
        store = Store(folder, 8000)
        for i in range(0, 60, 5):
            store.write({key(n): values[key(n)] for n in range(i, i + 5)})
        files = sorted(folder.glob(f"*.{kind}"))
        assert len(files) > 5
        if damage == "folder":
            shutil.rmtree(folder)
            folder.mkdir()
        for file in files if damage != "folder" else []:
            damage_file(file, damage, draw)
        forget_open_stores()
        store.usage()
        for found, i in zip(read(store, *range(60)), range(60), strict=True):
            assert found in (None, values[key(i)])
        store.write(values)
        store.write({}, used=values)
        for found, i in zip(read(store, *range(60)), range(60), strict=True):
            assert found in (None, values[key(i)])
        store.clear()
        store.write({key(1): b"one"})
        assert read(store, 1) == [b"one"]


@pytest.mark.parametrize("name", ["data.mdb", "00000001.index", "00000001.data", "lock"])
def test_clear_works_on_anything(tmp_path: Path, name: str) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / name).write_bytes(b"not a store" * 1000)
    (tmp_path / "s" / "folder").mkdir()
    store = Store(tmp_path / "s", 10**6)
    store.clear()
    assert store.usage() == (0, 0)
    store.write({key(1): b"one"})
    assert read(store, 1) == [b"one"]


def test_a_store_truncated_while_in_use_stops_nobody(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", 10**8)
    store.write({key(i): bytes(10_000) for i in range(100)})
    assert None not in read(store, *range(100))
    (data,) = (tmp_path / "s").glob("*.data")
    os.truncate(data, 50_000)
    assert read(store, *range(100)) == [bytes(10_000)] * 5 + [None] * 95
    store.write({key(50): b"again"})
    assert read(store, 50) == [b"again"]


def test_another_process_clears_the_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", 10**6)
    store.write({key(1): b"one", key(2): b"two"})
    assert read(store, 1) == [b"one"]
    done = writer(tmp_path / "s", 5, 0, clear=True)
    done.communicate(timeout=60)
    assert read(store, 1) == [None]
    store.write({key(3): b"three"})
    assert read(store, 1, 2, 3) == [None, None, b"three"]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_uses_the_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", 10**6)
    store.write({key(1): b"one"})
    assert read(store, 1) == [b"one"]
    child = os.fork()
    if not child:
        try:
            assert read(store, 1) == [b"one"]
            store.write({key(2): b"two"})
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert read(store, 1, 2) == [b"one", b"two"]


def test_a_full_disk_is_one_line_and_what_is_stored_stays(tmp_path: Path) -> None:
    """The largest size of a file stands in for the size of a disk."""
    program = """
import resource, signal, sys
from pathlib import Path
from evenmatch.errors import DataError
from evenmatch.store import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
store = Store(Path(sys.argv[1]), 10**9)
for i in range(20):
    try:
        store.write({b"%020d" % i: (b"%08d" % i) * 500})
    except DataError as error:
        print(i, error)
        break
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "s")], capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout.startswith("7 cannot use the cache in ")
    assert "File too large" in done.stdout
    store = Store(tmp_path / "s", 10**9)
    assert [value is not None for value in read(store, *range(8))] == [True] * 7 + [False]
    store.write({key(7): b"room again"})
    assert read(store, 6, 7) == [b"00000006" * 500, b"room again"]


def forget_open_stores() -> None:
    """Read the files again, as another process would."""
    _open_segments.cache_clear()


_WRITER = """
import sys
from pathlib import Path
from evenmatch.store import Store
store, start = Store(Path(sys.argv[1]), 10**9), int(sys.argv[2])
if sys.argv[4:]:
    store.clear()
for i in range(start, start + int(sys.argv[3])):
    store.write({b"%020d" % i: (b"%08d" % i) * 2500})
    print(i, flush=True)
"""


def writer(folder: Path, start: int, count: int, *, clear: bool = False) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", _WRITER, str(folder), str(start), str(count)]
    arguments += ["clear"] * clear
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
