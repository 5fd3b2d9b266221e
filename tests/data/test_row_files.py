from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evenmatch.data.pairs import read_everyday_sample
from evenmatch.data.scores import ScoreRow, format_tsv_line, score_writer
from evenmatch.errors import MissingExtraError
from evenmatch.types import Score

ROWS = [ScoreRow(0, "m", Score(0.5, None, 1.0)), ScoreRow(1, "m", Score(math.inf, math.nan, None))]


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
            write([ScoreRow(index, "m", Score(index / 4))])
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
