from __future__ import annotations

import gzip
import json
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.distributed.shards import Shard, ShardLoader, parse_shard_pairs, plan_shards
from tests.distributed.conftest import records, write_jsonl


def candidates(shards: list[Shard]) -> list[str]:
    with closing(ShardLoader()) as load:
        return [pair.candidate for s in shards for pair in parse_shard_pairs(load(s), s)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with the same pairs in every supported format, in chunks of uneven size."""
    rows = records(60)
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    write_jsonl(folder / "a.jsonl", rows[:17])
    (folder / "b.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(r) + "\n" for r in rows[17:30]).encode())
    )
    pq.write_table(pa.Table.from_pylist(rows[30:50]), folder / "c.parquet", row_group_size=8)
    write_jsonl(folder / "deep" / "d.jsonl", rows[50:])
    (folder / "notes.txt").write_text("no pairs")
    return folder


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_shards_of_a_folder_hold_every_row_once_and_in_order(corpus: Path, rows: int) -> None:
    shards = plan_shards(str(corpus), rows)
    assert candidates(shards) == [row["candidate"] for row in records(60)]
    assert [s.first for s in shards] == [
        sum(s.rows for s in shards[:n]) for n in range(len(shards))
    ]
    assert max(s.rows for s in shards) <= rows


@given(st.integers(0, 9), st.integers(0, 5), st.integers(1, 4), st.booleans())
def test_blank_lines_at_the_end_are_no_rows(
    tmp_path: Path, count: int, blank: int, rows: int, ended: bool
) -> None:
    path = tmp_path / "x.jsonl"
    lines = [json.dumps({"candidate": str(n), "reference": ""}) for n in range(count)]
    path.write_text("\n".join([*lines, *[" "] * blank]) + ("\n" if ended else ""))
    if count:
        assert candidates(plan_shards(str(path), rows)) == [str(n) for n in range(count)]
    else:
        with pytest.raises(em.InputError, match="the input has no pairs"):
            plan_shards(str(path), rows)


def test_a_blank_line_in_the_middle_keeps_its_place_and_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    good = '{"candidate": "a", "reference": "a"}\n'
    path.write_text(good + "\n\n\n" + good)
    with pytest.raises(em.InputError, match=r"x\.jsonl line 2 is blank; expected JSON"):
        candidates(plan_shards(str(path), 2))


def test_a_shard_says_where_it_lies(corpus: Path) -> None:
    second = plan_shards(str(corpus), 10)[1]
    assert str(second) == f"rows 10 to 16 ({corpus}/a.jsonl lines 11 to 17)"
    assert second.describe_rows(2, 3) == f"row 12 ({corpus}/a.jsonl line 13)"


def test_the_name_of_a_content_does_not_depend_on_how_a_table_is_stored(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(records(10))
    pq.write_table(table, tmp_path / "a.parquet", compression="none", use_dictionary=False)
    pq.write_table(table, tmp_path / "b.parquet", compression="zstd")
    a, b = (plan_shards(str(tmp_path / f"{name}.parquet"), 4) for name in "ab")
    assert [s.content_hash for s in a] == [s.content_hash for s in b]


def test_input_that_changes_under_way_is_noticed(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "x.jsonl", records(4))
    shards = plan_shards(str(path), 2)
    write_jsonl(path, list(reversed(records(4))))
    with pytest.raises(em.DataError, match="changed while it was being scored; start again"):
        candidates(shards)


@pytest.mark.parametrize(
    ("name", "words"),
    [("x.tsv", "cannot split .* into shards"), ("-", "cannot split - into shards")],
)
def test_a_file_that_cannot_be_cut_is_refused(name: str, words: str) -> None:
    with pytest.raises(em.InputError, match=words):
        plan_shards(name, 10)


def test_a_folder_without_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(em.DataError, match=r"contains no \.jsonl or \.parquet file"):
        plan_shards(str(tmp_path), 10)


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "x.jsonl")
    with pytest.raises(em.InputError, match="can be read only once; save it to a file first"):
        plan_shards(str(tmp_path / "x.jsonl"), 10)


def test_a_shard_of_no_rows_is_refused() -> None:
    with pytest.raises(em.InputError, match="shard_rows must be at least 1, got 0"):
        plan_shards("x.jsonl", 0)
