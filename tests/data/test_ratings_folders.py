from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.errors import DataError, InputError

TEXTS = [
    {"sid": 1, "src": "eins", "ref": "one", "out": {"A": "one", "B": "one", "C": "on"}},
    {"sid": 2, "src": "zwei", "ref": None, "out": {"A": "two", "B": "too", "C": "to"}},
]
SCORES = "lp\tsystem\tz\nde-en\tB\t0.5\nde-en\tA\t0.25\nde-en\tD\t-1\n"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def put_json(path: Path, records: Sequence[Any]) -> None:
    put(path, "".join(json.dumps(record) + "\n" for record in records))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path / "own" / "system_scores.tsv", SCORES)
    put_json(tmp_path / "own" / "de-en.jsonl.gz", TEXTS)
    return tmp_path / "own"


def read(folder: Path) -> RatedSet:
    [rated] = read_ratings(folder)
    return rated


def test_systems_come_as_scored_then_as_outputs_name_them(folder: Path) -> None:
    rated = read(folder)
    assert (rated.name, rated.subset) == ("own", "de-en")
    assert rated.systems == ("B", "A", "D", "C")
    np.testing.assert_array_equal(rated.system_ratings, [0.5, 0.25, -1, np.nan])
    assert rated.candidates[2] == (None, None)
    assert rated.sources == ("eins", "zwei")


def test_a_segment_without_reference_cannot_be_scored(folder: Path) -> None:
    rated = read(folder)
    assert rated.references == (("one",), ())
    systems, segments = rated.cells()
    assert [rated.systems[s] for s in systems] == ["B", "A", "C"]
    assert set(segments.tolist()) == {0}


def test_scores_of_cells_have_the_shape_of_the_ratings(folder: Path) -> None:
    put(folder / "de-en.seg.tsv.gz", "sid\tsystem\tz\n1\tC\t0.1\n2\tA\t0.2\n")
    rated = read(folder)
    cells = rated.cells(rated=True)
    assert [pair.candidate for pair in rated.pairs(cells)] == ["on"]
    np.testing.assert_array_equal(
        rated.to_matrix([7.0], cells), [[np.nan] * 2] * 3 + [[7.0, np.nan]]
    )
    np.testing.assert_array_equal(rated.ratings[1], [np.nan, 0.2])


def test_pairs_of_an_unknown_output_are_refused(folder: Path) -> None:
    nowhere = (np.array([2]), np.array([0]))
    with pytest.raises(InputError, match="system D has no output for segment 1; use the cells"):
        read(folder).pairs(nowhere)


def test_one_judgement_of_two_equal_outputs_is_one_point(folder: Path) -> None:
    put(folder / "de-en.seg.tsv.gz", "sid\tsystem\tz\n1\tD+A+B\t0.3\n2\tD+E\t0.4\n")
    rated = read(folder)
    assert np.count_nonzero(~np.isnan(rated.ratings)) == 2
    assert rated.ratings[rated.systems.index("A"), 0] == 0.3
    assert rated.ratings[rated.systems.index("D"), 1] == 0.4


def test_a_system_of_which_the_name_has_a_plus_stays_itself(folder: Path) -> None:
    put_json(folder / "de-en.jsonl.gz", [{**TEXTS[0], "out": {"A": "x", "A+": "y"}}])
    put(folder / "de-en.seg.tsv.gz", "sid\tsystem\tz\n1\tA+\t0.3\n")
    rated = read(folder)
    assert rated.ratings[rated.systems.index("A+"), 0] == 0.3


def test_ranks_are_numbers_of_segments_and_systems(folder: Path) -> None:
    put(folder / "de-en.rr.tsv.gz", "sid\tbetter\tworse\n2\tA\tC\n")
    rated = read(folder)
    assert rated.ranks is not None
    assert (rated.segments[rated.ranks.segments[0]], rated.ranks.better[0]) == ("2", 1)
    assert rated.ranks.worse.tolist() == [3]


def test_human_references_outliers_and_published_scores_are_read(folder: Path) -> None:
    head, *rows = SCORES.splitlines()
    flags = ["\t0\t1", "\t1\t0", "\t0\t0"]
    marked = [row + flag for row, flag in zip(rows, flags, strict=True)]
    put(folder / "system_scores.tsv", "\n".join([head + "\toutlier\thuman", *marked]) + "\n")
    put(folder / "de-en.seg.tsv.gz", "sid\tsystem\tz\n1\tHuman-A.0\t0.3\n")
    put(
        folder / "metric_system_scores.tsv.gz",
        "metric\tlp\ttestset\tref\tsystem\tscore\n"
        "BLEU\tde-en\tnewstest2020\tnewstest2020\tA\t30.5\n"
        "BLEU\tde-en\tnewstest2020\tnewstestB2020\tA\t31\n"
        "BLEU\tde-en\ttestsuites2020\ttestsuites2020\tA\t32\n"
        "BLEU\tfi-en\tnewstest2020\tnewstest2020\tB\t33\n",
    )
    rated = read(folder)
    assert rated.humans == {"B", "Human-A.0"}
    assert rated.outliers == {"A"}
    np.testing.assert_array_equal(
        rated.published["BLEU"], [30.5 if s == "A" else np.nan for s in rated.systems]
    )


def test_ratings_without_texts_say_which_segments_there_are(folder: Path) -> None:
    (folder / "de-en.jsonl.gz").unlink()
    put(folder / "de-en.seg.tsv.gz", "sid\tsystem\tz\n5\tA\t0.3\n9\tB\t0.4\n")
    rated = read(folder)
    assert (rated.segments, rated.references) == (("5", "9"), ((), ()))
    assert not len(rated.cells()[0])


def test_missing_system_scores_are_means_over_segments(tmp_path: Path) -> None:
    records = [
        {"system": s, "segment": n, "candidate": "", "references": "", "rating": r}
        for s, n, r in [("A", 1, 1), ("A", 2, 4), ("B", 1, 2), ("B", 2, None), ("C", 1, None)]
    ]
    put_json(tmp_path / "t.jsonl", records)
    np.testing.assert_array_equal(read(tmp_path / "t.jsonl").by_system, [2.5, 2, np.nan])


def test_system_scores_are_never_mixed_with_means(folder: Path) -> None:
    put(folder / "de-en.seg.tsv.gz", "sid\tsystem\tz\n1\tC\t0.1\n")
    np.testing.assert_array_equal(read(folder).by_system, [0.5, 0.25, -1, np.nan])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "system_scores.tsv",
            "lp\tsystem\tz\n",
            r"system_scores\.tsv has no rows; expected lp",
        ),
        ("system_scores.tsv", "lp\tz\nde-en\t1\n", r"system_scores\.tsv line 2 has no 'system'"),
        ("de-en.seg.tsv.gz", "sid\tsystem\tz\n7\tA\t1\n", r"line 2 rates segment 7, which is not"),
        ("de-en.rr.tsv.gz", "sid\tbetter\tworse\n1\tA\tD\n", r"line 2 ranks outputs that are not"),
        ("de-en.jsonl.gz", '{"sid": 1, "ref": "x", "out": []}\n', r"the out of .* must be an obj"),
        ("de-en.jsonl.gz", '{"sid": 1, "out": {}}\n', r"de-en\.jsonl\.gz line 1 has no 'ref'"),
        ("de-en.jsonl.gz", '{"sid": 1,', r"de-en\.jsonl\.gz line 1 is not JSON"),
    ],
)
def test_a_bad_line_of_a_folder_is_named(folder: Path, name: str, text: str, words: str) -> None:
    put(folder / name, text)
    with pytest.raises((InputError, DataError), match=words):
        read_ratings(folder)


def test_a_folder_of_something_else_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no system_scores\.tsv; expected it together with"):
        read_ratings(tmp_path)


def test_segments_of_unnamed_systems_are_of_one(tmp_path: Path) -> None:
    record = {"src": "s", "ref": "r", "out": "o", "z": 0.5}
    put_json(tmp_path / "wmt1516-daseg" / "wmt15.cs-en.jsonl.gz", [record, record])
    [rated] = read_ratings(tmp_path / "wmt1516-daseg")
    assert (rated.subset, rated.systems) == ("wmt15.cs-en", ("unnamed",))
    np.testing.assert_array_equal(rated.ratings, [[0.5, 0.5]])


def test_summaries_have_a_set_per_criterion(tmp_path: Path) -> None:
    outputs = {
        "A": {"text": "a", "human": {"fluency": 1, "relevance": 2}},
        "B": {"text": "b", "human": {"fluency": 3, "relevance": 4}},
    }
    record = {"id": "d", "src": "long", "refs": ["r1", "r2"], "out": outputs}
    put_json(tmp_path / "summ-summeval" / "data.jsonl.gz", [record])
    fluency, relevance = read_ratings(tmp_path / "summ-summeval")
    assert (fluency.subset, fluency.criterion, relevance.subset) == ("fluency",) * 2 + (
        "relevance",
    )
    assert fluency.references == (("r1", "r2"),)
    np.testing.assert_array_equal(relevance.ratings, [[2], [4]])


def test_data_to_text_has_a_set_per_domain_and_criterion(tmp_path: Path) -> None:
    record = {"id": "0", "src": "inform()", "out": "o", "human": {"quality": 5.0}, "refs": ["r"]}
    put_json(tmp_path / "d2t-human" / "bagel.jsonl.gz", [record])
    [rated] = read_ratings(tmp_path / "d2t-human")
    assert (rated.subset, rated.sources) == ("bagel/quality", ("inform()",))
    assert rated.ratings.tolist() == [[5.0]]


def test_webnlg_is_standardised_over_n_as_its_organisers_did(tmp_path: Path) -> None:
    folder = tmp_path / "webnlg2020-human"
    record = {"id": 3, "triples": ["a | b | c", "d | e | f"], "refs": ["r"], "out": {"A": "x"}}
    put_json(folder / "instances.jsonl.gz", [record, {**record, "id": 4}])
    criteria = ["Correctness", "DataCoverage", "Fluency", "Relevance", "TextStructure"]
    rows = [["3", "A", "w1", *"12345"], ["4", "A", "w1", *"32325"]]
    rows += [["4", "WebNLG-2020-reference", "w2", *"99999"]]
    lines = ["\t".join(each) for each in (["id", "system", "rater", *criteria], *rows)]
    put(folder / "ratings.tsv.gz", "\n".join(lines) + "\n")
    found = read_ratings(folder)
    assert [rated.subset for rated in found] == criteria
    np.testing.assert_array_equal(found[0].ratings, [[-1, 1], [np.nan, np.nan]])
    assert np.isnan(found[4].ratings).all()
    assert found[0].humans == {"WebNLG-2020-reference"}
    assert found[0].sources[0] == "a | b | c\nd | e | f"


def test_mqm_ratings_have_the_texts_of_the_same_year(tmp_path: Path) -> None:
    put_json(tmp_path / "wmt20-da" / "de-en.jsonl.gz", TEXTS)
    rows = "sid\tsystem\tmqm\n1\tA\t-1.5\n2\tA\t0\n1\tHuman-A.0\t-25\n"
    put(tmp_path / "wmt20-mqm" / "de-en.tsv.gz", rows)
    rated = read(tmp_path / "wmt20-mqm")
    assert rated.systems == ("A", "Human-A.0")
    assert rated.humans == {"Human-A.0"}
    np.testing.assert_array_equal(rated.ratings, [[-1.5, 0], [-25, np.nan]])
    assert rated.references == (("one",), ())


def test_mqm_ratings_without_their_texts_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "wmt20-mqm" / "de-en.tsv.gz", "sid\tsystem\tmqm\n1\tA\t-1.5\n")
    with pytest.raises(DataError, match=r"the texts of .* are not in .*wmt20-da"):
        read(tmp_path / "wmt20-mqm")
