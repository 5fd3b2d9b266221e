from __future__ import annotations

import json
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from evenmatch.data.fairness_sets import ATTRIBUTES, FairnessPair, read_fair_pairs, template_pairs
from evenmatch.errors import DataError, InputError, UnknownNameError

EVERY = pytest.mark.parametrize("attribute", ATTRIBUTES)
LINE = {"cand_a": "he left", "ref_a": "they left", "cand_b": "she left", "ref_b": "they left"}


def differing(one: str, other: str) -> list[tuple[str, str]]:
    """The spans of words in which two sentences differ."""
    a, b = one.split(), other.split()
    found = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [(" ".join(a[i:j]), " ".join(b[k:m])) for tag, i, j, k, m in found if tag != "equal"]


def terms(pairs: Sequence[FairnessPair]) -> set[tuple[str, str]]:
    return {
        change
        for pair in pairs
        for change in differing(pair.first.candidate, pair.second.candidate)
    }


@EVERY
def test_builtin_pairs_are_at_least_sixty_and_all_different(attribute: str) -> None:
    pairs = template_pairs(attribute)
    assert len(pairs) >= 60
    assert len({pair.both for pair in pairs}) == len(pairs)


@EVERY
def test_builtin_pairs_are_minimal_with_one_neutral_reference(attribute: str) -> None:
    for pair in template_pairs(attribute):
        changes = differing(pair.first.candidate, pair.second.candidate)
        assert len(changes) == 1, pair
        assert pair.first.references == pair.second.references
        reference = pair.first.references[0]
        for candidate in (pair.first.candidate, pair.second.candidate):
            assert len(differing(candidate, reference)) == 1, pair
        words = set(re.findall(r"[\w'-]+", reference.lower()))
        neutral = words & {"the", "person", "relative"}
        said = {word for term in changes[0] for word in term.lower().split()}
        assert not (said & words) - neutral, pair


@EVERY
def test_each_two_terms_come_in_both_orders(attribute: str) -> None:
    changes = terms(template_pairs(attribute))
    assert {(b, a) for a, b in changes} == changes


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_a_file_of_pairs_is_called_as_its_attribute(ending: str, tmp_path: Path) -> None:
    import gzip

    path = tmp_path / f"gender{ending}"
    text = (json.dumps(LINE) + "\n").encode()
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    found = read_fair_pairs(path)
    assert list(found.pairs) == ["gender"]
    assert found.pairs["gender"][0].first.candidate == "he left"


def test_a_line_may_give_its_attribute(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(f"{json.dumps(LINE | {'attribute': 'age'})}\n{json.dumps(LINE)}\n")
    assert list(read_fair_pairs(path).pairs) == ["age", "mine"]


def test_only_the_wanted_attributes_are_read() -> None:
    assert list(read_fair_pairs(attributes=["race", "age"]).pairs) == ["race", "age"]
    with pytest.raises(UnknownNameError, match="has no pairs about 'height'; it has: age, gender"):
        read_fair_pairs(attributes=["height"])


def test_a_line_without_one_of_the_texts_is_refused_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({**LINE, "cand_b": None}))
    with pytest.raises(InputError, match=r"line 1 has no text 'cand_b'; each line has cand_a"):
        read_fair_pairs(path)


def test_scores_of_one_side_only_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({**LINE, "scores_a": {"chrf": 1.0}}))
    with pytest.raises(InputError, match="scores of different metrics for a and b"):
        read_fair_pairs(path)


def test_missing_data_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no data set, folder or file 'nowhere'"):
        read_fair_pairs("nowhere")
    with pytest.raises(InputError, match="'sick' has no fairness pairs; use 'metric-fairness'"):
        read_fair_pairs("sick")
    with pytest.raises(DataError, match=r"has no file ATTRIBUTE\.jsonl"):
        read_fair_pairs(tmp_path)
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(DataError, match="has no pairs; expected cand_a"):
        read_fair_pairs(tmp_path / "empty.jsonl")
