"""Input and output that lie elsewhere."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenmatch as em
from evenmatch.distributed.run import score_files
from tests.distributed.conftest import METRICS, Here, expected, read_jsonl, records, write_jsonl

ROWS = records(30)


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A store in memory with the pairs in three files; the working directory is a new one."""
    from fsspec.implementations.memory import MemoryFileSystem

    monkeypatch.chdir(tmp_path)
    store = MemoryFileSystem()
    store.store.clear()
    lines = [json.dumps(row) + "\n" for row in ROWS]
    store.pipe("/in/a.jsonl", "".join(lines[:11]).encode())
    store.pipe("/in/b.jsonl.gz", gzip.compress("".join(lines[11:20]).encode()))
    with store.open("/in/c.parquet", "wb") as file:
        pq.write_table(pa.Table.from_pylist(ROWS[20:]), file)
    yield store
    store.store.clear()


def test_a_folder_elsewhere_is_scored_to_a_file_elsewhere(memory: Any) -> None:
    score_files("memory://in", "memory://out/o.jsonl", METRICS, on=Here(), shard_rows=7)
    found = [json.loads(line) for line in memory.cat("/out/o.jsonl").splitlines()]
    assert found == expected(ROWS, METRICS)
    assert len(list(Path("o.jsonl.parts").glob("part-*"))) == 6
    kept = {path.name[:5] for path in Path("o.jsonl.parts").iterdir()}
    assert kept == {"part-", "manif", ".lock"}


def test_an_upload_that_failed_is_all_that_is_done_again(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = "memory://out/o.jsonl"
    with monkeypatch.context() as broken:
        broken.setattr(type(memory), "put_file", _fail)
        with pytest.raises(OSError, match="the line is dead"):
            score_files("memory://in", out, METRICS, on=Here(), shard_rows=7)
    score_files("memory://in", out, METRICS, on=_fail, resume=True, shard_rows=7)  # type: ignore[arg-type]  # no worker is needed
    assert len(memory.cat("/out/o.jsonl").splitlines()) == 60


def _fail(*_: Any, **__: Any) -> None:
    raise OSError("the line is dead")


def test_file_addresses_are_paths(tmp_path: Path) -> None:
    given = write_jsonl(tmp_path / "in.jsonl", ROWS)
    out = tmp_path / "o.jsonl"
    score_files(given.as_uri(), out.as_uri(), METRICS, on=Here(), shard_rows=7)
    assert read_jsonl(out) == expected(ROWS, METRICS)
    assert (tmp_path / "o.jsonl.parts").is_dir()


def test_a_folder_as_output_elsewhere_is_refused(memory: Any) -> None:
    with pytest.raises(
        em.InputError, match="remote output must be one file, got memory://out; use"
    ):
        score_files("memory://in", "memory://out", METRICS, on=Here())


def test_an_output_that_cannot_be_reached_is_refused_first(memory: Any) -> None:
    with pytest.raises(em.InputError, match=r"cannot reach nowhere://o\.jsonl: Protocol not known"):
        score_files("memory://in", "nowhere://o.jsonl", METRICS, on=Here())


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """A web server of this machine that sends whole files only."""
    handler = partial(_Quiet, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_a_server_that_sends_whole_files_only_is_refused(web: str, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "in.jsonl", ROWS)
    with pytest.raises(em.InputError, match=r"in\.jsonl can be read only once; save it to a file"):
        score_files(f"{web}/in.jsonl", str(tmp_path / "o.jsonl"), METRICS, on=Here())
