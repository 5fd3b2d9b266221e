"""What adapters are trained on: counterfactuals, opposite stereotypes and contrasts."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from evenmatch.errors import UnknownNameError
from evenmatch.fairness.counterfactuals import Counterfactual
from evenmatch.fairness.training_data import (
    Contrast,
    DebiasData,
    build_debias_data,
    family_counterfactuals,
    full_attribute_name,
    pronoun_contrasts,
    training_families,
)
from evenmatch.types import Pair

PAIRS = [Pair("A man is cooking rice.", ("Women wash rice.",)), Pair("It rains.", ("Rain.",))]


@pytest.fixture(scope="module")
def gender() -> DebiasData:
    return build_debias_data(PAIRS)


def test_opposite_stereotypes_differ_in_the_trait_alone(gender: DebiasData) -> None:
    told = {
        "The visitor thanked the {} because {} had been patient.".format(*words)
        for words in (("roofer", "he"), ("roofer", "she"), ("gymnast", "he"), ("gymnast", "she"))
    }
    found = {
        text
        for both in gender.stereotypes
        for text in (both[0].original, both[0].swapped, both[1].original, both[1].swapped)
    }
    assert told <= found
    for one, other in gender.stereotypes:
        changed = set(one.original.split()) ^ set(one.swapped.split())
        assert changed == set(other.original.split()) ^ set(other.swapped.split())


@pytest.mark.parametrize(
    ("right", "wrong", "reference"),
    [
        (
            "The mother left before anybody could thank her",
            "The mother left before anybody could thank him",
            "The mother left before anybody could thank the mother",
        ),
        (
            "The pupil followed Kevin to his boat",
            "The pupil followed Kevin to her boat",
            "The pupil followed Kevin to Kevin's boat",
        ),
    ],
)
def test_a_pronoun_contradicts_a_noun_or_a_name(
    right: str, wrong: str, reference: str, gender: DebiasData
) -> None:
    assert Contrast(right, wrong, reference) in set(chain(*gender.contrasts))


def test_a_pronoun_stands_for_a_noun_of_its_gender(gender: DebiasData) -> None:
    by_noun = [c for c in chain(*gender.contrasts) if c.right.startswith(("He ", "She "))]
    lone = {(c.right.split()[0], c.reference.split()[1]) for c in by_noun if "The " in c.reference}
    assert {("She", "mother"), ("He", "father")} <= lone
    assert not {("He", "mother"), ("She", "father")} & lone


def test_a_contrast_of_one_gender_comes_with_one_of_the_other(gender: DebiasData) -> None:
    women = {other.reference for one, other in gender.contrasts if "Kevin" in one.reference}
    assert women
    assert all(re.search(r"\b(?:Karen|Janet|Alice)\b", text) for text in women)
    assert all(one.right != other.right for one, other in gender.contrasts)


def test_every_term_and_every_trait_of_a_family_is_used() -> None:
    for family in training_families("gender"):
        texts = " | ".join(c.original + c.swapped for c in family_counterfactuals(family)).lower()
        assert all(word.lower() in texts for term in family["terms"] for word in term[:2])
        assert all(trait.lower() in texts for trait in (*family["one"], *family["other"]))


def test_people_are_described_by_the_groups_of_other_attributes() -> None:
    found = build_debias_data(PAIRS, ["age"])
    assert (
        Counterfactual(
            "An old man is cooking rice.", "A young man is cooking rice.", PAIRS[0].candidate
        )
        in found.counterfactuals
    )
    begins = [c for c in found.counterfactuals if c.neutral == "Women wash rice."]
    assert begins
    assert all(c.original.endswith(" women wash rice.") for c in begins)


def test_people_are_renamed_by_nouns_and_names_of_both_genders() -> None:
    pairs = [Pair(f"A man is eating fruit {n}.", ("A man walks his dog.",)) for n in range(12)]
    found = [c for c in build_debias_data(pairs).counterfactuals if "fruit" in c.neutral]
    assert {c.neutral.partition(" is ")[0] for c in found} >= {"A person", "Someone"}
    assert not any("a man" in c.original.lower() and "dog" in c.neutral for c in found)
    assert any(c.original.split()[0] in ("Kevin", "Brian", "Scott") for c in found)


def test_any_two_words_of_a_list_are_compared() -> None:
    family = next(f for f in training_families("religion") if "words" in f)
    pairs = {tuple(term[:2]) for term in family["terms"]}
    assert len(pairs) == 2 * len(family["words"])
    assert all(one != other for one, other in pairs)


def test_several_attributes_share_one_set_of_data(gender: DebiasData) -> None:
    both = build_debias_data(PAIRS, ["gender", "status"])
    assert both.anchors == gender.anchors
    assert gender.texts < both.texts
    assert any("poor man" in text for text in both.texts)


def test_pronouns_beside_held_out_nouns_and_names_are_of_both_genders() -> None:
    for kind in ("noun", "name"):
        found = pronoun_contrasts(kind)
        assert len(found) == len(set(found)) > 100
        she = sum(" she " in f" {c.right.lower()} " for c in found)
        assert 2 * she == len(found)


def test_an_attribute_has_a_short_name() -> None:
    assert full_attribute_name("status") == "socioeconomic"
    with pytest.raises(UnknownNameError, match="there is no attribute 'height' to debias; known"):
        full_attribute_name("height")
