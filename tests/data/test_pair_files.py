from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenmatch.data.pairs import LineAlignedFiles, open_pair_file, pair_from_record
from evenmatch.errors import DataError, InputError
from evenmatch.types import Pair

PAIRS = [Pair("a", ("b", "c")), Pair("", ("",)), Pair('"quoted\\', ("\u2028", "é"), "from here")]


def written(folder: Path, suffix: str) -> str:
    records = [
        {"candidate": p.candidate, "references": list(p.references), "source": p.source}
        for p in PAIRS
    ]
    path = folder / f"pairs{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path, row_group_size=2)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return str(path)


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".ndjson", ".JSONL", ".parquet"])
def test_a_file_gives_its_pairs_as_often_as_asked(tmp_path: Path, suffix: str) -> None:
    file = open_pair_file(written(tmp_path, suffix))
    assert list(file) == PAIRS
    assert list(file) == PAIRS
    assert (file.rereadable, file.total) == (True, 3)


def test_a_parquet_file_may_have_one_reference_and_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": [7], "prediction": ["a"], "reference": ["b"]}), path)
    assert list(open_pair_file(str(path))) == [Pair("a", ("b",))]


def test_a_null_in_a_parquet_file_is_refused_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"candidate": ["a", None], "reference": ["b", "c"]}), path)
    with pytest.raises(InputError, match=r"candidate of .*x\.parquet row 2 must be a string"):
        list(open_pair_file(str(path)))


def test_a_damaged_parquet_file_is_refused_by_name(tmp_path: Path) -> None:
    path = Path(written(tmp_path, ".parquet"))
    content = bytearray(path.read_bytes())
    content[4:200] = b"\0" * 196
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"cannot read .*pairs\.parquet as Parquet"):
        list(open_pair_file(str(path)))


def test_a_tsv_file_takes_quotes_as_text_and_every_reference_column(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text(
        "id\treference\tprediction\treference_2\tsource\n"
        '1\t"open\t\'tis\tclosed"\tfrom\n'
        "2\tonly\tcandidate\t\t\n"
    )
    first, second = open_pair_file(str(path))
    assert first == Pair("'tis", ('"open', 'closed"'), "from")
    assert second == Pair("candidate", ("only", ""), "")
    assert open_pair_file(str(path)).total == 2


def test_lines_pair_up_in_the_order_of_the_files(tmp_path: Path) -> None:
    for name, text in (("c", "1\n2"), ("r", "a\r\nb\r\n"), ("q", "A\nB\n"), ("s", "x\ny\n")):
        (tmp_path / name).write_bytes(text.encode())
    c, r, q, s = (str(tmp_path / name) for name in "crqs")
    files = LineAlignedFiles(c, (r, q), s)
    assert list(files) == [Pair("1", ("a", "A"), "x"), Pair("2", ("b", "B"), "y")]
    assert (files.rereadable, files.total) == (True, 2)
    assert list(LineAlignedFiles(c, (r,))) == [Pair("1", ("a",)), Pair("2", ("b",))]


def test_a_pipe_can_be_read_only_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    assert (open_pair_file(str(pipe)).rereadable, open_pair_file(str(pipe)).total) == (False, 0)
    lines = LineAlignedFiles(str(pipe), (str(pipe),))
    assert (lines.rereadable, lines.total) == (False, 0)


def test_the_field_candidate_goes_before_prediction() -> None:
    record = {"candidate": "a", "prediction": "b", "references": ["c"], "reference": "d"}
    assert pair_from_record(record, "here") == Pair("a", ("c",))


def test_a_long_value_that_is_no_text_is_named_by_its_type() -> None:
    with pytest.raises(InputError, match="the source of here must be a string, got a list"):
        pair_from_record({"candidate": "a", "reference": "b", "source": ["x"] * 50}, "here")
