"""No training text, occupation, name or sentence frame of debiasing is in a set to audit on."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evenmatch.data.fairness_sets import ATTRIBUTES, family_pairs, read_fair_pairs, template_pairs
from evenmatch.data.pairs import TRAINING_SPLITS, read_sentence_pairs
from evenmatch.fairness.training_data import (
    build_debias_data,
    held_out,
    mentions_held_out,
    pronoun_contrasts,
    training_families,
)
from evenmatch.types import Pair

JUDGED = [f"wmt17-da/{pair}-en" for pair in ("cs", "de", "fi", "lv", "ru", "tr", "zh")]
JUDGED += ["wmt20-da/zh-en"]


def plain(text: str) -> str:
    return text.strip().rstrip(".").lower()


def templates() -> set[str]:
    return {
        plain(text)
        for attribute in (*ATTRIBUTES, "selection")
        for family in training_families(attribute)
        for pair in family_pairs(family)
        for text in (pair.first.candidate, pair.second.candidate)
    }


@pytest.fixture(scope="module")
def trained(data: Path) -> set[str]:
    """Every sentence of the sets that are trained on, and every sentence of our own templates."""
    assert data.is_dir()
    pairs = [pair for name in TRAINING_SPLITS for pair in read_sentence_pairs(name)]
    sentences = {plain(text) for pair in pairs for text in (pair.candidate, *pair.references)}
    assert len(sentences) > 10_000
    return sentences | templates()


def translations(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield from (text for text in (record["ref"], *record["out"].values()) if text)


def audited(name: str) -> set[str]:
    return {
        plain(text)
        for pairs in read_fair_pairs(name).pairs.values()
        for pair in pairs
        for side in pair.both
        for text in (side.candidate, *side.references)
    }


@pytest.mark.parametrize("name", ["", "metric-fairness"])
def test_no_trained_sentence_is_audited(name: str, trained: set[str]) -> None:
    assert len(audited(name)) > 500
    assert not audited(name) & trained


@pytest.mark.parametrize("name", JUDGED)
def test_no_trained_sentence_is_one_that_people_rated(
    name: str, data: Path, trained: set[str]
) -> None:
    rated = {plain(text) for text in translations(data / f"{name}.jsonl.gz")}
    assert len(rated) > 10_000
    assert not rated & trained


def test_no_sentence_of_our_templates_is_one_of_our_pairs() -> None:
    """The same without any data set."""
    assert not audited("") & templates()


def records(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def public_texts(data: Path) -> set[str]:
    """Every text of WinoBias, of CrowS-Pairs, of Metric-Fairness and of our own audits."""
    found = audited("") | audited("metric-fairness")
    for record in records(data / "winobias" / "winobias.jsonl.gz"):
        found |= {plain(record[side].replace("[", "").replace("]", "")) for side in ("pro", "anti")}
    for record in records(data / "crows-pairs" / "crows_pairs.jsonl.gz"):
        found |= {plain(record[side]) for side in ("sent_more", "sent_less")}
    return found | held_out_texts()


def held_out_texts() -> set[str]:
    """Every text of the held-out nouns, names and pronouns."""
    families = [*held_out()["nouns"], *held_out()["names"], *held_out()["more"]]
    found = {plain(p.first.candidate) for family in families for p in family_pairs(family)}
    contrasts = (*pronoun_contrasts("noun"), *pronoun_contrasts("name"))
    return found | {plain(text) for each in contrasts for text in astuple(each)}


def occupations(*attributes: str) -> set[str]:
    """The occupations of the built-in sentences to train on, or to choose settings by."""
    return {
        trait
        for attribute in attributes
        for family in training_families(attribute)
        if "{trait}" in family["terms"][0][2]
        for trait in (*family["one"], *family["other"])
    }


@cache
def masking(words: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(sorted(words, key=len, reverse=True))})s?\b")


def frame(text: str) -> str:
    """A sentence without occupations, pronouns and determiners."""
    jobs = occupations("gender", "selection") | set(held_out()["occupations"])
    pronouns = "he she him her his hers himself herself someone the a".split()
    return " ".join(masking(frozenset({*jobs, *pronouns})).sub(" ", text).split())


def test_no_occupation_to_train_on_is_in_a_text_to_audit_on(data: Path) -> None:
    jobs = occupations("gender", "selection")
    assert len(jobs) > 150
    assert not masking(frozenset(jobs)).findall(" | ".join(public_texts(data)))


def test_no_occupation_to_train_on_is_in_our_own_audits() -> None:
    """The same without any data set."""
    jobs = occupations("gender", "selection")
    assert not masking(frozenset(jobs)).findall(" | ".join(audited("") | held_out_texts()))


def test_no_sentence_frame_to_train_on_is_one_to_audit_on(data: Path) -> None:
    trained, judged = set(map(frame, templates())), set(map(frame, public_texts(data)))
    assert len(trained) > 100
    assert len(judged) > 1500
    assert not trained & judged


def group_words(attribute: str) -> set[str]:
    """The words of the lists, any two of which are compared."""
    return {
        word.lower()
        for family in training_families(attribute)
        if "words" in family
        for word in family["words"]
    }


@pytest.mark.parametrize("attribute", [a for a in ATTRIBUTES if a != "gender"])
def test_no_group_word_of_our_lists_is_in_the_public_set(attribute: str, data: Path) -> None:
    assert data.is_dir()
    pairs = read_fair_pairs("metric-fairness", attributes=[attribute]).pairs[attribute]
    text = " | ".join(
        t for p in pairs for side in p.both for t in (side.candidate, *side.references)
    )
    assert len(group_words(attribute)) >= 80
    assert not masking(frozenset(group_words(attribute))).findall(text.lower())


def test_no_stereotype_to_train_on_is_in_a_text_to_audit_on(data: Path) -> None:
    told = " | ".join(public_texts(data))
    traits = {
        trait
        for attribute in ATTRIBUTES
        for family in training_families(attribute)
        if family["other"]
        for trait in (*family["one"], *family["other"])
    }
    assert len(traits) > 150
    assert not masking(frozenset(trait.lower() for trait in traits)).findall(told)


def test_no_held_out_noun_or_name_is_one_to_train_on() -> None:
    held = {
        word.lower()
        for kind in ("nouns", "names", "more")
        for family in held_out()[kind]
        if family.get("held_out")
        for term in family["terms"]
        for word in term[:2]
    }
    trained = {
        word.lower()
        for family in training_families("gender")
        for term in family["terms"]
        for word in term[:2]
    }
    assert len(held) > 200
    assert len(trained) > 500
    assert not held & trained


def test_all_occupations_of_winobias_and_of_our_audits_are_held_out(data: Path) -> None:
    for sex in ("male", "female"):
        lines = (data / "winobias" / f"{sex}_occupations.txt").read_text("utf-8").split("\n")
        assert not [job for job in filter(None, lines) if not mentions_held_out(job)]
    for pair in template_pairs("gender"):
        assert mentions_held_out(pair.first.candidate)


def test_what_is_held_out_is_in_no_training_text(data: Path) -> None:
    pairs = [pair for name in TRAINING_SPLITS for pair in read_sentence_pairs(name)[:80]]
    pairs += [Pair("The nurse lost her keys.", ("Melissa lost her keys.",))]
    texts = build_debias_data(pairs, ["gender", "race"]).texts
    assert len(texts) > 2000
    assert not [text for text in texts if mentions_held_out(text)]


def test_the_selection_set_shares_no_occupation_name_or_frame_with_training() -> None:
    assert not occupations("gender") & occupations("selection")
    trained, chosen = (
        {frame(plain(p.first.candidate)) for f in training_families(some) for p in family_pairs(f)}
        for some in ("gender", "selection")
    )
    assert not trained & chosen
    trained, chosen = (
        {
            word
            for family in training_families(some)
            for term in family["terms"]
            if term[2] == "someone"
            for word in term[:2]
        }
        for some in ("gender", "selection")
    )
    assert len(trained) > 200
    assert len(chosen) == 16
    assert not trained & chosen
    assert not trained & {
        word for f in held_out()["names"] for term in f["terms"] for word in term[:2]
    }
