from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenmatch.errors import InputError
from evenmatch.studies.sentences import load_sentence_pairs, sample_sentence_pairs
from evenmatch.types import Pair

PAIRS = [Pair(f"c{i}", (f"r{i}", "x"), f"s{i}") for i in range(9)]


def test_some_pairs_are_drawn_in_their_order_and_the_same_again() -> None:
    one, two = (sample_sentence_pairs("nine", PAIRS, 5, 3) for _ in range(2))
    assert one == two
    assert len(one) == 5
    assert list(one.candidates) == sorted(one.candidates)
    assert [c[1] for c in one.candidates] == [r[1] for r in one.others]
    assert sample_sentence_pairs("nine", PAIRS, 5, 4) != one


@pytest.mark.parametrize("seed", range(5))
def test_a_negative_has_the_text_of_another_pair(seed: int) -> None:
    sentences = sample_sentence_pairs("nine", PAIRS, 9, 0)
    negatives = sentences.make_negatives(seed)
    assert negatives.candidates == sentences.candidates
    assert sorted(negatives.others) == sorted(sentences.others)
    assert all(a != b for a, b in zip(negatives.others, sentences.others, strict=True))
    assert negatives.digest != sentences.digest


def test_texts_seen_before_and_empty_ones_are_left_out() -> None:
    pairs = [*PAIRS[:3], Pair("c0", ("other",)), Pair("other", ("r1",)), Pair("", ("e",))]
    assert len(sample_sentence_pairs("few", pairs, 10, 0)) == 3


def test_sources_take_the_place_of_references() -> None:
    assert sample_sentence_pairs("nine", PAIRS, 2, 0, sources=True).others[0].startswith("s")
    with pytest.raises(InputError, match="pair 1 of none has no source; add one"):
        sample_sentence_pairs("none", [Pair("a", ("b",))], 2, 0, sources=True)


def test_one_pair_has_no_negative() -> None:
    with pytest.raises(InputError, match="one has 1 distinct pairs; negatives need at least 2"):
        sample_sentence_pairs("one", PAIRS[:1], 5, 0)


def test_the_sample_serves_where_no_translations_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENMATCH_DATA", str(tmp_path))
    assert (len(load_sentence_pairs("", 100, 0)), load_sentence_pairs("", 100, 0).name) == (
        12,
        "the sample",
    )


def test_a_file_of_pairs_is_read(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    rows = [{"candidate": p.candidate, "references": list(p.references)} for p in PAIRS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert load_sentence_pairs(str(path), 100, 0).others == tuple(p.references[0] for p in PAIRS)


def test_translations_come_from_every_language(data: Path) -> None:
    found = load_sentence_pairs("", 70, 0)
    assert (found.name, len(found)) == ("wmt17-da", 70)
    assert len(set(found.candidates)) == 70
