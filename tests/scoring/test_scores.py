from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import evenmatch as em

LSA = "align(vectors=hashed, alignment=lsa)"
CANDIDATES, REFERENCES = ["a b", "", "c d e"], ["a b c", "x", "e d"]
SCORES = em.score(CANDIDATES, REFERENCES, LSA)


def test_scores_are_a_sequence_of_their_segments() -> None:
    assert len(SCORES) == 3
    assert list(SCORES) == list(SCORES.segments)
    assert SCORES[0] == SCORES.segments[0]
    assert SCORES[-1] == SCORES.segments[-1]
    assert SCORES[1:] == SCORES.segments[1:]


def test_numbers_are_arrays_in_input_order() -> None:
    assert isinstance(SCORES.values, np.ndarray)
    assert SCORES.values.tolist() == [s.value for s in SCORES.segments]
    precisions, recalls = SCORES.precisions, SCORES.recalls
    assert precisions is not None
    assert recalls is not None
    assert precisions.tolist() == [s.precision for s in SCORES.segments]
    assert recalls.tolist() == [s.recall for s in SCORES.segments]


def test_a_metric_without_precision_has_none() -> None:
    scores = em.score(CANDIDATES, REFERENCES, "chrf")
    assert scores.precisions is None
    assert scores.recalls is None


def test_flagged_are_indexes_of_rows() -> None:
    assert SCORES.flagged == [1]


def test_printed_scores_show_a_summary_and_no_segments() -> None:
    assert str(SCORES).splitlines() == [
        "mean       0.5333",
        "precision  0.5556",
        "recall     0.5556",
        "segments   3",
        "flagged    1 (1 empty_candidate)",
        f"signature  {SCORES.signature}",
    ]


def test_scores_in_a_dictionary_take_a_line_each() -> None:
    assert repr(SCORES) == (
        "<Scores: mean 0.5333, precision 0.5556, recall 0.5556, segments 3, "
        f"flagged 1 (1 empty_candidate), signature {SCORES.signature}>"
    )


def test_a_corpus_score_is_shown() -> None:
    scores = em.score(["a b c d e"], ["a b c d f"], "bleu")
    assert f"corpus     {scores.corpus:.4f}" in str(scores)


def test_a_notebook_shows_a_table() -> None:
    html = em.Scores(SCORES.segments, "<x>")._repr_html_()
    assert html.startswith("<table>")
    assert "0.5333" in html
    assert "&lt;x&gt;" in html


def test_no_segments_are_no_error() -> None:
    scores = em.Scores((), "nothing")
    assert len(scores) == 0
    assert scores.values.tolist() == []
    assert "segments   0" in str(scores)
    assert math.isnan(scores.mean)  # the mean of nothing is no score


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_frame_has_a_row_per_segment(library: str) -> None:
    frame = SCORES.to_frame(library)
    assert type(frame).__module__.startswith(library)
    assert list(frame.columns) == ["value", "precision", "recall", "flags"]
    assert frame["value"].to_list() == SCORES.values.tolist()
    assert frame["flags"].to_list() == [[], ["empty_candidate"], []]


def test_polars_frames_of_any_scores_can_be_stacked() -> None:
    clean = em.score(["a"], ["a"], LSA)
    stacked = pl.concat([SCORES.to_frame("polars"), clean.to_frame("polars")])
    assert stacked["flags"].to_list() == [[], ["empty_candidate"], [], []]


def test_a_frame_is_of_the_library_that_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "polars")
    assert isinstance(em.score(["a"], ["a"], "chrf").to_frame(), pd.DataFrame)


def test_other_frames_are_refused() -> None:
    with pytest.raises(em.InputError, match="library must be 'polars' or 'pandas', got 'arrow'"):
        SCORES.to_frame("arrow")


def test_scaled_scores_say_so_in_their_signature() -> None:
    scores = em.score(["a b c d e"], ["a b c d f"], "bleu")
    scaled = scores.scaled(100)
    assert scores.corpus is not None
    assert scaled.corpus == scores.corpus * 100
    assert scaled.values.tolist() == (scores.values * 100).tolist()
    assert scaled.signature == f"{scores.signature} · scale 100"
    assert scores.scaled(1) is scores


@pytest.mark.parametrize("series", [pl.Series, pd.Series])
def test_columns_of_frames_are_lists_of_texts(series: Any) -> None:
    assert em.score(series(CANDIDATES), series(REFERENCES), LSA) == SCORES


@pytest.mark.parametrize("series", [pl.Series, pd.Series])
def test_columns_may_hold_lists_of_references(series: Any) -> None:
    nested = [[text, "other"] for text in REFERENCES]
    expected = em.score(CANDIDATES, nested, LSA)
    assert em.score(series(CANDIDATES), series(nested), LSA) == expected


def test_a_pandas_column_is_read_by_position_and_not_by_index() -> None:
    frame = pd.DataFrame({"c": CANDIDATES, "r": REFERENCES}, index=[5, 3, 1])
    assert em.score(frame["c"], frame["r"], LSA) == SCORES


def test_a_missing_text_of_a_column_is_named_by_its_row() -> None:
    with pytest.raises(em.InputError, match="the candidate of row 1 must be a string, got None"):
        em.score(pl.Series(["a", None]), pl.Series(["a", "b"]), LSA)


def test_systems_may_be_columns() -> None:
    systems = {"a": pl.Series(CANDIDATES), "b": pl.Series(REFERENCES)}
    found = em.compare(systems, pl.Series(REFERENCES), LSA, resamples=20, trials=20)
    lists = {"a": CANDIDATES, "b": REFERENCES}
    assert found.rows == em.compare(lists, REFERENCES, LSA, resamples=20, trials=20).rows
