"""No default training text of debiasing occurs in a set that it is audited on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenmatch.data.fairness_sets import read_fair_pairs, template_pairs
from evenmatch.data.pairs import TRAINING_SPLITS, read_sentence_pairs

JUDGED = [f"wmt17-da/{pair}-en" for pair in ("cs", "de", "fi", "lv", "ru", "tr", "zh")]
JUDGED += ["wmt20-da/zh-en"]


def plain(text: str) -> str:
    return text.strip().rstrip(".").lower()


def templates() -> set[str]:
    return {
        plain(t) for p in template_pairs("lessons") for t in (p.first.candidate, p.second.candidate)
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
