"""TER's edits and edit distances are sacrebleu's, also where its beam cuts paths off."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import evenmatch as em
from evenmatch.metrics.ngram.edit_rate import _EditDistance, _iter_beams, count_edits

library: Any = pytest.importorskip("sacrebleu.metrics.lib_ter")


def random_words(count: int, most: int, seed: int) -> Iterator[tuple[list[str], list[str]]]:
    """Pairs of unrelated words, and of words with phrases moved or dropped; few are distinct."""
    rng = random.Random(seed)
    for _ in range(count):
        kinds, length = rng.choice([1, 2, 5, 20, 100]), rng.choice([3, 8, 20, most])
        candidate, reference = (
            [str(rng.randrange(kinds)) for _ in range(rng.randrange(size))]
            for size in (length, rng.choice([length, 4 * length]))
        )
        if rng.random() < 0.5:
            reference = list(candidate)
            for _ in range(rng.randrange(4)):
                start = rng.randrange(len(reference) + 1)
                phrase = reference[start : start + rng.randrange(1, 40)]
                del reference[start : start + len(phrase)]
                if rng.random() < 0.8:
                    place = rng.randrange(len(reference) + 1)
                    reference[place:place] = phrase
        yield candidate, reference


@pytest.mark.parametrize("seed", range(4))
def test_edits_are_sacrebleus(seed: int) -> None:
    for candidate, reference in random_words(60, 40, seed):
        wanted, _ = library.translation_edit_rate(candidate, reference)
        assert count_edits(candidate, reference) == wanted


@pytest.mark.parametrize("seed", range(4))
def test_distances_and_traces_are_sacrebleus(seed: int) -> None:
    rng = random.Random(seed)
    for candidate, reference in random_words(300, 150, seed):
        beams = list(_iter_beams(len(candidate), len(reference)))
        ours, theirs = (
            _EditDistance(candidate, reference, beams),
            library.BeamEditDistance(reference),
        )
        assert ours(candidate) == theirs(candidate)
        other = rng.sample(candidate, len(candidate))
        assert ours(other)[0] == theirs(other)[0]


def test_a_very_long_reference_widens_the_beam() -> None:
    for candidate, length in ((["a"], 90), (["b", "a"], 300), ([], 70)):
        reference = ["x"] * length + ["a"]
        wanted, _ = library.translation_edit_rate(candidate, reference)
        assert count_edits(candidate, reference) == wanted


def test_references_are_processed_as_often_as_by_sacrebleu() -> None:
    from sacrebleu.metrics.ter import TER

    candidate, reference = "he said &amp;quot;no&amp;quot; twice", "he said &amp;quot;no&amp;quot;"
    wanted = TER(normalized=True).sentence_score(candidate, [reference]).score / 100
    found = em.score([candidate], [reference], "ter(normalized=True)")
    assert found.segments[0].value == wanted
