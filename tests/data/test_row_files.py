from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evenmatch.data.pairs import read_everyday_sample
from evenmatch.data.scores import ScoredPair, ScoreLayout, format_tsv_line, score_writer
from evenmatch.errors import DataError, MissingExtraError
from evenmatch.types import Score

ROWS = [
    ScoredPair(0, {"m": Score(0.5, None, 1.0)}, {}),
    ScoredPair(1, {"m": Score(math.inf, math.nan, None)}, {}),
]


def test_numbers_that_are_absent_are_null_or_empty(tmp_path: Path) -> None:
    for name in ("x.jsonl", "x.tsv", "x.parquet"):
        with score_writer(str(tmp_path / name)) as write:
            write(ROWS[:1])
    record = json.loads((tmp_path / "x.jsonl").read_text())
    assert record == {"row": 0, "metric": "m", "value": 0.5, "precision": None, "recall": 1.0} | {
        "flags": []
    }
    assert (tmp_path / "x.tsv").read_text().splitlines()[1] == "0\tm\t0.5\t\t1.0\t"
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == [record]


def test_jsonl_is_valid_json_whatever_the_score(tmp_path: Path) -> None:
    with score_writer(str(tmp_path / "x.jsonl")) as write:
        write(ROWS)
    lines = (tmp_path / "x.jsonl").read_text().splitlines()
    assert [json.loads(line)["value"] for line in lines] == [0.5, None]


def test_rows_written_in_chunks_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with score_writer(str(path)) as write:
        for index in range(5):
            write([ScoredPair(index, {"m": Score(index / 4)}, {})])
    assert pq.read_table(path)["value"].to_pylist() == [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet"])
def test_nothing_appears_when_the_work_fails(tmp_path: Path, name: str) -> None:
    def interrupted() -> None:
        with score_writer(str(tmp_path / name)) as write:
            write(ROWS)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "target.jsonl").write_text("old")
    (tmp_path / "link.jsonl").symlink_to("target.jsonl")
    with score_writer(str(tmp_path / "link.jsonl")) as write:
        write(ROWS)
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len((tmp_path / "target.jsonl").read_text().splitlines()) == 2


def test_a_cell_cannot_break_a_tsv_line() -> None:
    assert format_tsv_line(["a\tb\nc", "d"]) == "a b c\td\n"


RECORDS = [
    ScoredPair(0, {"a": Score(0.5), "b": Score(1.0, flags=frozenset({"no_match"}))}, {"id": 7}),
    ScoredPair(1, {"a": Score(0.25), "b": Score(0.0)}, {"id": 8}),
]


def test_a_wide_table_has_a_column_per_metric(tmp_path: Path) -> None:
    for name in ("x.tsv", "x.csv", "x.parquet", "x.jsonl"):
        with score_writer(str(tmp_path / name), ScoreLayout("wide")) as write:
            write(RECORDS[:1])
            write(RECORDS[1:])
    lines = ["row,id,a,b,flags", "0,7,0.5,1.0,no_match", "1,8,0.25,0.0,"]
    assert (tmp_path / "x.csv").read_text().splitlines() == lines
    assert (tmp_path / "x.tsv").read_text().splitlines() == [s.replace(",", "\t") for s in lines]
    records = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert records[0] == {"row": 0, "id": 7, "a": 0.5, "b": 1.0, "flags": ["no_match"]}
    assert [json.loads(s) for s in (tmp_path / "x.jsonl").read_text().splitlines()] == records


def test_a_field_that_has_the_name_of_a_column_is_renamed(tmp_path: Path) -> None:
    pair = ScoredPair(0, {"bleu": Score(0.5)}, {"value": "mine", "bleu": 3})
    for style, names in (
        ("long", "row,input.value,bleu,metric,value,precision,recall,flags"),
        ("wide", "row,input.value,input.bleu,bleu,flags"),
    ):
        layout = ScoreLayout("wide" if style == "wide" else "long")
        with score_writer(str(tmp_path / "x.csv"), layout) as write:
            write([pair])
        assert (tmp_path / "x.csv").read_text().splitlines()[0] == names


def test_a_table_has_the_fields_of_its_first_row_and_warns_of_others(tmp_path: Path) -> None:
    other = ScoredPair(2, {"a": Score(0.0), "b": Score(0.0)}, {"id": 9, "note": "x"})
    with (
        score_writer(str(tmp_path / "x.tsv"), ScoreLayout("wide")) as write,
        pytest.warns(UserWarning, match="row 2 has the field 'note', which the first row lacks"),
    ):
        write([*RECORDS, other])
    assert (tmp_path / "x.tsv").read_text().splitlines()[-1] == "2\t9\t0.0\t0.0\t"
    with score_writer(str(tmp_path / "x.jsonl"), ScoreLayout("wide")) as write:
        write([*RECORDS, other])
    assert '"note": "x"' in (tmp_path / "x.jsonl").read_text()


def test_a_field_of_several_types_is_no_parquet_column(tmp_path: Path) -> None:
    rows = [ScoredPair(n, {"a": Score(0.0)}, {"id": own}) for n, own in enumerate((1, "x"))]
    with (
        pytest.raises(DataError, match=r"a field has values of several types .*; write \.jsonl"),
        score_writer(str(tmp_path / "x.parquet")) as write,
    ):
        write(rows)


def test_scaled_rows_are_written_scaled(tmp_path: Path) -> None:
    with score_writer(str(tmp_path / "x.csv"), ScoreLayout("wide", scale=100)) as write:
        write(RECORDS)
    assert (tmp_path / "x.csv").read_text().splitlines()[1] == "0,7,50.0,100.0,no_match"


def test_parquet_without_pyarrow_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with (
        pytest.raises(MissingExtraError, match=r"pip install 'evenmatch\[parquet\]'"),
        score_writer(str(tmp_path / "x.parquet")),
    ):
        pass


def test_the_sample_has_the_same_references_for_every_system() -> None:
    systems = read_everyday_sample()
    references = [[pair.references for pair in pairs] for pairs in systems.values()]
    assert all(own == references[0] for own in references)
    assert {len(several) for several in references[0]} == {2, 3}
