from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import evenmatch as em
from evenmatch.integrations.frames import score_frame

LSA = "align(vectors=hashed, alignment=lsa)"
ROWS: dict[str, list[Any]] = {
    "candidate": ["the cat sat", "", "rain"],
    "reference": ["the cat sat down", "something", "rain"],
    "other": ["a cat", "", "snow"],
    "kept": [3, 1, 2],
}
SCORES = em.score(ROWS["candidate"], ROWS["reference"], LSA)


def pandas(**columns: Any) -> Any:
    return pd.DataFrame({**ROWS, **columns}, index=["c", "a", "b"])


def polars(**columns: Any) -> Any:
    return pl.DataFrame({**ROWS, **columns})


BOTH = pytest.mark.parametrize("make", [pandas, polars])


@BOTH
def test_scores_are_added_to_their_rows(make: Any) -> None:
    found = score_frame(make(), metric=LSA)
    assert found[LSA].to_list() == [segment.value for segment in SCORES.segments]
    assert found[f"{LSA}_precision"].to_list() == [s.precision for s in SCORES.segments]
    assert found[f"{LSA}_recall"].to_list() == [s.recall for s in SCORES.segments]
    assert list(found.columns) == [*ROWS, LSA, f"{LSA}_precision", f"{LSA}_recall"]


@BOTH
def test_the_frame_given_stays_as_it_is(make: Any) -> None:
    frame = make()
    score_frame(frame, metric=LSA)
    assert list(frame.columns) == list(ROWS)
    assert frame["kept"].to_list() == [3, 1, 2]


def test_the_index_and_kind_of_frame_stay() -> None:
    assert score_frame(pandas(), metric=LSA).index.to_list() == ["c", "a", "b"]
    assert isinstance(score_frame(polars(), metric=LSA), pl.DataFrame)


@BOTH
def test_a_dictionary_says_what_columns_are_called(make: Any) -> None:
    found = score_frame(make(), metric={"mine": LSA, "same": LSA, "overlap": "chrf"})
    new = "mine mine_precision mine_recall same same_precision same_recall overlap".split()
    assert list(found.columns) == [*ROWS, *new]
    assert found["mine"].to_list() == found["same"].to_list()


@BOTH
def test_several_metrics_share_one_call(make: Any) -> None:
    found = score_frame(make(), metric=[LSA, "ter"])
    wanted = em.score(ROWS["candidate"], ROWS["reference"], "ter")
    assert found["ter"].to_list() == [segment.value for segment in wanted.segments]


@BOTH
def test_references_may_be_lists_or_several_columns(make: Any) -> None:
    lists = [list(row) for row in zip(ROWS["reference"], ROWS["other"], strict=True)]
    wanted = [s.value for s in em.score(ROWS["candidate"], lists, LSA).segments]
    by_lists = score_frame(make(reference=lists), metric=LSA)
    by_columns = score_frame(make(), reference=["reference", "other"], metric=LSA)
    assert by_lists[LSA].to_list() == by_columns[LSA].to_list() == wanted


def test_references_may_be_arrays_as_parquet_files_give_them() -> None:
    frame = pandas(reference=[np.array([text], dtype=object) for text in ROWS["reference"]])
    assert score_frame(frame, metric=LSA)[LSA].mean() == pytest.approx(SCORES.mean)


@BOTH
def test_columns_of_any_name_and_sources_will_do(make: Any) -> None:
    frame = make(source=["x", "y", "z"])
    found = score_frame(
        frame, candidate="other", reference="candidate", source="source", metric=LSA, threads=1
    )
    wanted = em.score(ROWS["other"], ROWS["candidate"], LSA)
    assert found[LSA].to_list() == [segment.value for segment in wanted.segments]


@BOTH
def test_a_frame_without_rows_gets_columns_too(make: Any) -> None:
    found = score_frame(make()[:0], metric=LSA)
    assert LSA in found.columns
    assert len(found) == 0


@BOTH
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"candidate": "text"}, "exactly one column 'text'; its columns: 'candidate', 'r"),
        ({"reference": ["other", "none"]}, "the frame must have exactly one column 'none'"),
        ({"metric": {"kept": LSA}}, "the frame already has a column 'kept'; choose another name"),
        ({"metric": []}, "the list of metrics is empty"),
    ],
)
def test_missing_and_existing_columns_are_named(
    make: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(em.InputError, match=message):
        score_frame(make(), **{"metric": LSA, **settings})


@BOTH
def test_a_missing_text_is_refused_with_its_row(make: Any) -> None:
    with pytest.raises(em.InputError, match="the candidate of row 1 must be a string, got "):
        score_frame(make(candidate=["a", None, "b"]), metric=LSA)


@pytest.mark.parametrize("frame", [polars().lazy(), ROWS, None])
def test_what_is_no_frame_is_refused(frame: Any) -> None:
    with pytest.raises(em.InputError, match="expected a polars or pandas DataFrame, got"):
        score_frame(frame, metric=LSA)


def test_a_missing_reference_of_several_columns_is_named() -> None:
    frame = pd.DataFrame({"candidate": ["a", "b"], "r1": ["a", "b"], "r2": ["c", None]})
    with pytest.raises(em.InputError, match="row 1 of the column 'r2' is not a text; if rows have"):
        score_frame(frame, metric="chrf", reference=["r1", "r2"])
