from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenmatch as em
from evenmatch.data.ratings.reading import as_rated_sets, join_set_names, read_ratings
from evenmatch.errors import DataError, InputError, UnknownNameError

Record: TypeAlias = Mapping[str, Any]
Write: TypeAlias = Callable[[Sequence[Record]], str]


def row(system: str, segment: str, rating: float | None, **more: Any) -> dict[str, Any]:
    texts = {"candidate": f"{system} on {segment}", "references": [f"truth of {segment}"]}
    return {"system": system, "segment": segment, **texts, "rating": rating, **more}


ROWS = [row("A", "1", 0.5), row("A", "2", 0.7), row("B", "2", None), row("B", "1", 0.25)]


@pytest.fixture
def jsonl(tmp_path: Path) -> Write:
    def write(rows: Sequence[Record]) -> str:
        path = tmp_path / "mine.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in rows))
        return str(path)

    return write


def test_a_table_becomes_systems_by_segments(jsonl: Write) -> None:
    [rated] = read_ratings(jsonl(ROWS))
    assert (rated.name, rated.subset) == ("mine", "")
    assert (rated.systems, rated.segments) == (("A", "B"), ("1", "2"))
    assert rated.candidates[1] == ("B on 1", "B on 2")
    assert rated.references == (("truth of 1",), ("truth of 2",))
    np.testing.assert_array_equal(rated.ratings, [[0.5, 0.7], [0.25, np.nan]])
    assert np.isnan(rated.system_ratings).all()
    assert rated.judgements is None


def test_ratings_of_human_references_can_be_excluded(jsonl: Write) -> None:
    [rated] = read_ratings(jsonl(ROWS))
    left = dataclasses.replace(rated, humans=frozenset({"B"})).exclude_humans()
    np.testing.assert_array_equal(left.ratings, [[0.5, 0.7], [np.nan, np.nan]])
    assert left.candidates == rated.candidates


def test_ratings_are_read_or_taken_as_they_are(jsonl: Write) -> None:
    path = jsonl(ROWS)
    given = read_ratings(path)
    assert as_rated_sets(given) == given
    assert join_set_names([*as_rated_sets(path), *given]) == "mine"


def test_jsonl_tsv_and_parquet_say_the_same(jsonl: Write, tmp_path: Path) -> None:
    tsv = ["system\tsegment\tcandidate\treference\treference2\trating"]
    both = [{**each, "references": [*each["references"], '"other"']} for each in ROWS]
    for each in both:
        rating = "" if each["rating"] is None else str(each["rating"])
        tsv.append("\t".join([each["system"], each["segment"], each["candidate"]]))
        tsv[-1] += "\t" + "\t".join([*each["references"], rating])
    (tmp_path / "mine.tsv").write_text("\n".join(tsv) + "\n")
    pq.write_table(pa.Table.from_pylist(both), tmp_path / "mine.parquet")
    paths = [Path(jsonl(both)), tmp_path / "mine.tsv", tmp_path / "mine.parquet"]
    first, *others = [read_ratings(path)[0] for path in paths]
    for other in others:
        assert (other.systems, other.segments) == (first.systems, first.segments)
        assert (other.candidates, other.references) == (first.candidates, first.references)
        np.testing.assert_array_equal(other.ratings, first.ratings)


def test_numbers_may_name_systems_and_segments(jsonl: Write) -> None:
    [rated] = read_ratings(jsonl([{**row("A", "1", 1), "system": 3, "segment": 12}]))
    assert (rated.systems, rated.segments) == (("3",), ("12",))


def test_one_reference_and_a_source_will_do(jsonl: Write) -> None:
    record = {k: v for k, v in row("A", "1", 1, source="quelle").items() if k != "references"}
    [rated] = read_ratings(jsonl([{**record, "reference": "truth"}]))
    assert (rated.references, rated.sources) == ((("truth",),), ("quelle",))


def test_every_subset_is_a_set_of_its_own(jsonl: Write) -> None:
    path = jsonl([row("A", "1", 1, subset="de-en"), row("A", "1", 2, subset="zh-en")])
    assert [rated.subset for rated in read_ratings(path)] == ["de-en", "zh-en"]
    assert [rated.subset for rated in read_ratings(path, subsets=["zh-en"])] == ["zh-en"]


def test_a_subset_that_is_not_there_is_an_error(jsonl: Write) -> None:
    with pytest.raises(UnknownNameError, match=r"has no subset 'fi-en'"):
        read_ratings(jsonl(ROWS), subsets=["fi-en"])


def test_raters_are_standardised_before_they_are_averaged(jsonl: Write) -> None:
    strict = [row("A", "1", 1, rater="x"), row("B", "1", 2, rater="x"), row("C", "1", 3, rater="x")]
    mild = [row("A", "1", 70, rater="y"), row("B", "1", 90, rater="y")]
    [rated] = read_ratings(jsonl([*strict, *mild]))
    half = 0.5**0.5
    np.testing.assert_allclose(rated.ratings[:, 0], [(-1 - half) / 2, half / 2, 1])
    assert rated.judgements is not None
    np.testing.assert_array_equal(rated.judgements.values, [1, 2, 3, 70, 90])
    np.testing.assert_array_equal(rated.judgements.raters, [0, 0, 0, 1, 1])


REFUSED = [
    ([{"segment": "1"}], r"mine\.jsonl line 1 has no 'references'"),
    ([{**ROWS[0], "system": ""}], r"the system of .*mine\.jsonl line 1 must be a name"),
    ([{**ROWS[0], "system": None}], r"the system of .* line 1 must be a name or a number, got N"),
    ([{**ROWS[0], "segment": True}], r"the segment of .* line 1 must be .* got True"),
    ([row("A", "1", 1, candidate=5)], r"the candidate of .* line 1 must be a string, got 5"),
    ([row("A", "1", 1, references=["a", None])], r"the references of .* line 1 must be a string"),
    ([row("A", "1", 1, source=5)], r"the source of .* line 1 must be a string, got 5"),
    (
        [row("A", "1", 1), row("B", "1", 2, references="x")],
        r"line 2 has a different source or ref.*1;",
    ),
    ([*ROWS, row("A", "1", 0.9)], r"line 5 rates the same output as .*line 1; .*'rater'"),
    ([row("A", "1", 1, rater="x"), row("B", "1", 1)], r"line 2 has no rater but others have"),
    ([row("A", "1", 1), row("B", "1", 1, rater="x")], r"line 1 has no rater but others have"),
    (
        [row("A", "1", 1, rater="x"), row("A", "1", 1, rater="y", candidate="z")],
        r"line 2 has a different candidate for the same segment than .*line 1;",
    ),
]


@pytest.mark.parametrize(("rows", "words"), REFUSED)
def test_a_bad_row_is_named_with_its_file(jsonl: Write, rows: Sequence[Record], words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        read_ratings(jsonl(rows))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("rating", ["good", "inf", True, [1]])
def test_a_rating_must_be_a_finite_number(jsonl: Write, rating: Any) -> None:
    with pytest.raises(InputError, match=r"the rating of .*line 1 must be a finite number, got"):
        read_ratings(jsonl([row("A", "1", rating)]))


def test_a_lacking_field_is_named_with_those_there_are(jsonl: Write) -> None:
    with pytest.raises(InputError, match=r"line 1 has no 'rating'; its fields: system, segment, c"):
        read_ratings(jsonl([{k: v for k, v in ROWS[0].items() if k != "rating"}]))


def test_an_empty_table_is_an_error(jsonl: Write) -> None:
    with pytest.raises(DataError, match=r"mine\.jsonl has no rows; expected system, segment"):
        read_ratings(jsonl([]))


def test_a_file_of_unknown_kind_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine.xlsx").write_bytes(b"")
    with pytest.raises(InputError, match=r"unknown file type of .*mine\.xlsx; name it"):
        read_ratings(tmp_path / "mine.xlsx")


def test_nothing_of_that_name_is_an_error_that_lists_sets() -> None:
    with pytest.raises(
        DataError, match=r"there is no data set, folder or file 'wmt21'; .*wmt20-da"
    ):
        read_ratings("wmt21")


def test_a_public_set_without_ratings_is_an_error() -> None:
    with pytest.raises(
        InputError, match=r"the data set 'snli' has no ratings; sets with ratings: d2t"
    ):
        read_ratings("snli")


def test_ratings_are_read_by_the_package_itself(jsonl: Write) -> None:
    [rated] = em.read_ratings(jsonl(ROWS))
    assert isinstance(rated, em.RatedSet)
