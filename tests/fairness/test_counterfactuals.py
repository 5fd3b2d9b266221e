from __future__ import annotations

from pathlib import Path

import pytest

from evenmatch.data.fairness_sets import builtin_terms, read_terms
from evenmatch.errors import DataError, InputError, UnknownNameError
from evenmatch.fairness.counterfactuals import (
    counterfactuals,
    gendered_cases,
    neutralise,
    swap_groups,
)
from evenmatch.types import Pair


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("He left.", "She left."),
        ("SHE LEFT", "HE LEFT"),
        ("I saw her.", "I saw him."),
        ("I saw her in town.", "I saw him in town."),
        ("I saw her dog.", "I saw his dog."),
        ("Her old dog barked.", "His old dog barked."),
        ("his dog", "her dog"),
        ("The dog is his.", "The dog is hers."),
        ("The dog is hers, not mine.", "The dog is his, not mine."),
        ("He's late; the man's coat is here.", "She's late; the woman's coat is here."),
        ("He hurt himself.", "She hurt herself."),
        ("a boy and two women", "a girl and two men"),
        ("John met Joan.", "Joan met John."),
        ("The chairman spoke.", "The chairwoman spoke."),
        ("theme, shed, mankind", "theme, shed, mankind"),
    ],
)
def test_a_text_is_told_of_the_other_group(text: str, wanted: str) -> None:
    assert swap_groups(text) == wanted


@pytest.mark.parametrize("text", ["He saw her dog.", "The waiter met two girls.", "I told him."])
def test_swapping_twice_gives_the_text_again(text: str) -> None:
    assert swap_groups(swap_groups(text)) == text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("She lost her keys.", "The person lost the person's keys."),
        ("I know her.", "I know the person."),
        ("An actress sang.", "A performer sang."),
        ("Paula slept.", "Someone slept."),
    ],
)
def test_a_text_is_told_of_nobody(text: str, wanted: str) -> None:
    assert neutralise(text) == wanted


def test_adjectives_of_a_group_are_left_out_and_no_gap_stays() -> None:
    assert neutralise("The poor man left.", builtin_terms("socioeconomic")) == "The man left."
    assert swap_groups("The poor man left.", builtin_terms("socioeconomic")) == "The rich man left."


def test_only_sentences_about_a_group_have_counterfactuals() -> None:
    found = counterfactuals(["He left.", "It rained.", "He left."])
    assert [each.original for each in found] == ["He left."]
    assert (found[0].swapped, found[0].neutral) == ("She left.", "The person left.")


@pytest.mark.model("en_core_web_sm")
def test_a_parser_tells_object_from_possessive() -> None:
    from evenmatch.units.parsers.spacy import Spacy

    texts = ["They made her happy.", "They watered her flowers."]
    found = counterfactuals(texts, parser=Spacy())
    assert [each.swapped for each in found] == [
        "They made him happy.",
        "They watered his flowers.",
    ]


def test_cases_speak_of_one_group_on_both_sides() -> None:
    pairs = [
        Pair("A man runs.", ("The man is running.",)),
        Pair("A man runs.", ("The woman is running.",)),
        Pair("A man meets a woman.", ("A man meets a woman.",)),
        Pair("A dog runs.", ("A dog runs.",)),
    ]
    ((right, wrong),) = gendered_cases(pairs)
    assert (right, wrong.candidate) == (pairs[0], "A woman runs.")


@pytest.mark.parametrize("attribute", ["age", "gender", "race", "religion"])
def test_no_term_answers_itself(attribute: str) -> None:
    for term in builtin_terms(attribute):
        assert term.one.lower() != term.other.lower()


def test_public_lists_are_read(data: Path) -> None:
    words = read_terms("winobias")
    assert ("actor", "actress") in {(t.one, t.other) for t in words}
    assert len({frozenset((t.one, t.other)) for t in words}) == len(words)
    assert len(read_terms("bias-words", "religion")) >= 6


def test_lists_that_are_not_there_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownNameError, match="there are no terms about 'height'; known: gender"):
        builtin_terms("height")
    with pytest.raises(UnknownNameError, match="no list of terms is called 'mine'"):
        read_terms("mine")
    with pytest.raises(InputError, match="winobias has terms about gender only, not 'age'"):
        read_terms("winobias", "age")
    monkeypatch.setenv("EVENMATCH_DATA", str(tmp_path))
    with pytest.raises(DataError, match="'bias-words' is not in"):
        read_terms("bias-words")
