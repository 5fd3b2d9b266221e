from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from evenmatch.data.fairness_sets import ATTRIBUTES, builtin_terms, given_names, read_terms
from evenmatch.errors import DataError, InputError, UnknownNameError
from evenmatch.fairness import mentions
from evenmatch.fairness.counterfactuals import (
    counterfactuals,
    gendered_cases,
    neutralise,
    swap_groups,
    wrong_gender_penalties,
)
from evenmatch.scoring.metric import as_metric
from evenmatch.types import Pair, Run

CASES = Path(__file__).parent / "counterfactual_cases.jsonl"


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
    found = counterfactuals(["He left.", "It rained.", "He left."], parser=None)
    assert [each.original for each in found] == ["He left."]
    assert (found[0].swapped, found[0].neutral) == ("She left.", "The person left.")


def hand_checked() -> list[dict[str, str | None]]:
    return [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]


def wrong_counterfactuals(parser: Literal["auto"] | None) -> set[str | None]:
    """Texts of the hand-checked set whose counterfactual is not the expected one."""
    wrong = set()
    for attribute in ATTRIBUTES:
        wanted = {c["text"]: c["swapped"] for c in hand_checked() if c["attribute"] == attribute}
        found = counterfactuals([str(text) for text in wanted], attribute, parser=parser)
        swapped = {each.original: each.swapped for each in found}
        wrong |= {text for text in wanted if swapped.get(str(text)) != wanted[text]}
    return wrong


def test_the_hand_checked_set_covers_every_attribute() -> None:
    attributes = Counter(case["attribute"] for case in hand_checked())
    assert set(attributes) == set(ATTRIBUTES)
    assert attributes.total() >= 300
    assert min(attributes.values()) >= 30


@pytest.mark.model("en_core_web_sm")
def test_with_a_tagger_every_hand_checked_sentence_is_right() -> None:
    assert wrong_counterfactuals("auto") == set()


def test_by_rules_all_but_three_hand_checked_sentences_are_right() -> None:
    assert wrong_counterfactuals(None) == {
        "A millionaire playboy bought the club.",
        "My cousin goes to church on Sundays.",
        "A pretty girl smiled at him.",
    }


def test_cases_speak_of_one_group_on_both_sides() -> None:
    pairs = [
        Pair("A man runs.", ("The man is running.",)),
        Pair("A man runs.", ("The woman is running.",)),
        Pair("A man meets a woman.", ("A man meets a woman.",)),
        Pair("A dog runs.", ("A dog runs.",)),
    ]
    ((right, wrong),) = gendered_cases(pairs, parser=None)
    assert (right, wrong.candidate) == (pairs[0], "A woman runs.")


def test_given_names_are_hundreds_and_balanced() -> None:
    names = given_names()
    assert sum(len(n) for both in names.values() for n in both.values()) >= 500
    assert all(len(both["men"]) == len(both["women"]) >= 30 for both in names.values())
    every = [name for both in names.values() for each in both.values() for name in each]
    assert len(every) == len(set(every))


@pytest.mark.parametrize(
    ("short", "long"), [("status", "socioeconomic"), ("appearance", "physical-appearance")]
)
def test_attributes_have_short_names(short: str, long: str) -> None:
    assert builtin_terms(short) == builtin_terms(long)


@pytest.mark.parametrize(
    ("text", "attribute", "wanted"),
    [
        ("An old car passed an old man.", "age", "An old car passed a man."),
        ("Old people sleep.", "age", "People sleep."),
        ("She is old.", "age", "She is old or young."),
        ("A fat, happy man sang.", "appearance", "A happy man sang."),
        ("A happy and fat man sang.", "appearance", "A happy man sang."),
        ("An unemployed uncle called.", "status", "An uncle called."),
        ("The boys' shoes were wet.", "gender", "The children's shoes were wet."),
        ("Robert Miller signed.", "gender", "R. Miller signed."),
        (
            "A woman waved at her uncle Robert.",
            "gender",
            "A person waved at the person's relative.",
        ),
        ("Muslim families left.", "religion", "Families left."),
    ],
)
def test_a_neutral_sentence_is_well_formed(text: str, attribute: str, wanted: str) -> None:
    assert neutralise(text, builtin_terms(attribute)) == wanted


@pytest.mark.parametrize("attribute", ATTRIBUTES)
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


def test_a_wrong_gender_costs_as_much_by_a_metric_of_errors() -> None:
    reference = ("She slept all day.",)
    case = (Pair("She slept all day.", reference), Pair("He slept all day.", reference))
    bleu, ter = wrong_gender_penalties([as_metric("bleu"), as_metric("ter")], [case], Run())
    assert bleu > 0
    assert ter == pytest.approx(0.25)  # one word of four


def test_lexicons_of_given_terms_are_not_kept() -> None:
    counterfactuals(["She left."], terms=list(builtin_terms()[:3]), parser=None)
    before = len(mentions._LEXICONS)
    for _ in range(3):
        counterfactuals(["She left."], terms=list(builtin_terms()[:3]), parser=None)
    assert len(mentions._LEXICONS) == before
