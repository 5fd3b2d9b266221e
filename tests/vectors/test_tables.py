"""idf: counted once, frozen, named by content."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.errors import DataError, InputError
from evenmatch.vectors import weighting

HASHED = "align(vectors=hashed(weights=idf))"


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6))
def test_idf_is_the_logarithm_of_documents_over_documents_with_the_key(
    documents: list[list[int]],
) -> None:
    table = weighting.count_documents(np.array(d, dtype=np.int64) for d in documents)
    for key in range(12):
        df = sum(key in document for document in documents)
        wanted = math.log((len(documents) + 1) / (df + 1))
        assert table.idf(np.array([key]))[0] == pytest.approx(wanted)


@given(st.lists(st.lists(st.integers(0, 2**62), max_size=6), max_size=6))
def test_a_table_comes_back_from_its_name(documents: list[list[int]]) -> None:
    table = weighting.count_documents(np.array(d, dtype=np.int64) for d in documents)
    again = weighting.load_idf_table(weighting.store_idf_table(table))
    assert again.to_json() == table.to_json()


def test_the_order_of_the_references_is_no_part_of_the_table() -> None:
    texts = ["a b", "b c", "c c c"]
    signatures = {em.score(order, order, HASHED).signature for order in (texts, texts[::-1])}
    assert len(signatures) == 1


def test_idf_is_counted_from_all_references_and_frozen_in_the_signature() -> None:
    candidates, references = ["the cat", "the dog"], [["the cat", "a cat"], ["the dog"]]
    scores = em.score(candidates, references, HASHED)
    assert "weights=idf(table='sha256:" in scores.signature
    frozen = scores.signature.split(" · ")[0]
    assert em.score(candidates[:1], references[:1], frozen).segments[0] == scores.segments[0]
    assert em.score(candidates[:1], references[:1], HASHED).segments[0] != scores.segments[0]


def test_a_table_of_ones_own_is_a_file_of_counts(tmp_path: Path) -> None:
    name = em.score(["the cat"], ["the cat sat"], HASHED).signature.split("'")[1]
    file = tmp_path / "counts.json"
    file.write_text(weighting.load_idf_table(name).to_json())
    scores = em.score(["x"], ["x"], f"align(vectors=hashed(weights=idf(table={str(file)!r})))")
    assert str(file) not in scores.signature
    assert name in scores.signature


def test_a_table_file_that_changes_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "counts.json"
    for documents in (3, 30):
        file.write_text(json.dumps({"documents": documents, "counts": []}))
        assert weighting.load_idf_table(str(file)).documents == documents


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not an idf table"),
        ("[]", "is not an idf table"),
        (b"\xff\xff", "is not an idf table"),
    ],
)
def test_a_file_that_is_no_table_is_refused(
    tmp_path: Path, content: str | bytes, words: str
) -> None:
    file = tmp_path / "counts.json"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=words):
        weighting.load_idf_table(str(file))


def test_a_table_that_is_nowhere_is_refused() -> None:
    for name in ("/nowhere.json", "sha256:0123456789abcdef"):
        with pytest.raises(DataError, match="is not on this machine; count it again with idf=True"):
            weighting.load_idf_table(name)
    with pytest.raises(InputError, match="idf has no table yet"):
        em.Idf()(np.array([1]), np.zeros((1, 2)))


def test_a_stored_table_that_was_tampered_with_is_not_used_and_stored_again(
    empty_cache: Path,
) -> None:
    table = weighting.count_documents([np.array([1, 2])])
    name = weighting.store_idf_table(table)
    (stored,) = (empty_cache / "idf").glob("*.data")
    stored.write_bytes(stored.read_bytes().replace(b"1", b"2"))
    with pytest.raises(DataError, match="is not on this machine; count it again with idf=True"):
        weighting.load_idf_table(name)
    assert weighting.store_idf_table(table) == name
    assert weighting.load_idf_table(name).documents == 1


def test_stored_tables_are_bounded(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighting, "MAX_STORE_BYTES", 20_000)
    for n in range(40):
        weighting.store_idf_table(weighting.count_documents([np.arange(n, n + 100)]))
    assert 0 < weighting.idf_store().usage()[1] <= 20_000


def test_tables_that_must_not_be_saved_stay_in_memory(empty_cache: Path) -> None:
    with weighting.without_saving_idf():
        names = [
            weighting.store_idf_table(weighting.count_documents([np.array([n])]))
            for n in range(100)
        ]
    assert not empty_cache.exists()
    assert weighting.load_idf_table(names[-1]).documents == 1
    assert len(weighting._unsaved_tables) <= 64


@pytest.mark.parametrize(
    "content",
    [
        '{"documents": 1e400, "counts": []}',
        '{"documents": 3, "counts": [[1, 99999999999999999999999999]]}',
        '{"documents": 3, "counts": [[1, 4]]}',
        '{"documents": -3, "counts": []}',
        '{"documents": 3, "counts": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "[" * 100_000,
    ],
)
def test_a_table_with_impossible_numbers_or_deep_nesting_is_refused(
    tmp_path: Path, content: str
) -> None:
    file = tmp_path / "idf.json"
    file.write_text(content)
    with pytest.raises(DataError, match="is not an idf table"):
        weighting.load_idf_table(str(file))


def test_idf_may_be_the_mass_as_well() -> None:
    scores = em.score(
        ["the cat", "the dog"],
        ["the cat", "the bird"],
        "align(vectors=hashed(weights=idf, mass=idf), alignment=emd)",
    )
    assert scores.signature.count("sha256:") == 2
    assert scores.segments[0].value == pytest.approx(1.0)


def test_where_every_word_is_in_every_reference_none_of_them_counts() -> None:
    (score,) = em.score(["the cat"], ["the cat"], HASHED).segments
    assert score.value == 0
    assert score.flags == {"no_match"}
