from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenmatch.errors import InputError
from evenmatch.studies.sentences import (
    ADVERSARIAL,
    join_sentence_pairs,
    load_sentence_pairs,
    sample_sentence_pairs,
)
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
    found = sample_sentence_pairs("nine", PAIRS, 2, 0, sources=True)
    assert (found.candidates[0][0], found.others[0][0]) == ("c", "s")
    human = sample_sentence_pairs("nine", PAIRS, 2, 0, sources=True, human=True)
    assert (human.candidates[0][0], human.others) == ("r", found.others)
    with pytest.raises(InputError, match="pair 1 of none has no source; add one"):
        sample_sentence_pairs("none", [Pair("a", ("b",))], 2, 0, sources=True)


def test_negatives_stay_in_their_group_and_do_not_depend_on_others() -> None:
    parts = {
        "a": sample_sentence_pairs("nine", PAIRS[:5], 9, 0),
        "b": sample_sentence_pairs("nine", PAIRS[5:], 9, 0),
    }
    joined = join_sentence_pairs("both", parts)
    assert joined.groups == ("a",) * 5 + ("b",) * 4
    assert {name: own.tolist() for name, own in joined.members.items()} == {
        "a": [0, 1, 2, 3, 4],
        "b": [5, 6, 7, 8],
    }
    alone = [part.make_negatives(3).others for part in parts.values()]
    assert joined.make_negatives(3).others == alone[0] + alone[1]


def test_a_hard_negative_is_the_text_of_the_pair_with_the_same_rare_words() -> None:
    texts = ["the red cat sat", "the green dog ran", "the red cat ran", "a bird", "the the the"]
    pairs = [Pair(text, (f"r{i}",)) for i, text in enumerate(texts)]
    found = sample_sentence_pairs("five", pairs, 5, 0, hard=True)
    assert found.hard[0] == "r2"
    assert found.hard[2] == "r0"
    assert found.hard[1] == "r2"
    assert found.make_hard_negatives().others == found.hard
    assert all(a != b for a, b in zip(found.hard, found.others, strict=True))


def test_an_unknown_language_is_refused(data: Path) -> None:
    with pytest.raises(InputError, match="there are no sources in 'xx'; known: cs, de"):
        load_sentence_pairs("", 5, 0, sources=True, languages=["xx"])


def test_sources_come_by_language(data: Path) -> None:
    found = load_sentence_pairs("", 4, 0, sources=True, languages=["de", "et"], hard=True)
    assert (found.name, found.groups) == ("wmt17-da and wmt18-da", ("de",) * 4 + ("et",) * 4)
    alone = load_sentence_pairs("", 4, 0, sources=True, languages=["et"])
    assert found.others[4:] == alone.others


def test_adversarial_texts_are_hard_negatives_by_kind_of_error(data: Path) -> None:
    found = load_sentence_pairs(ADVERSARIAL, 24, 0)
    assert len(found) == len(found.hard) == 24
    assert len(set(found.groups)) == 12
    assert load_sentence_pairs(ADVERSARIAL, 24, 0, sources=True).others != found.others


def test_long_texts_are_left_out() -> None:
    pairs = [Pair("a b c", (f"r{i}",)) for i in range(3)] + PAIRS[:2] + [Pair("x", ("y y y",))]
    assert sample_sentence_pairs("five", pairs, 9, 0, max_words=2).candidates == ("c0", "c1")


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
