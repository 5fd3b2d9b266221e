"""Parts that several metrics share run once; where metrics differ, results stay apart."""

from __future__ import annotations

import pytest

import evenmatch as em
from evenmatch.types import Array, Embedded

PAIRS = ["the cat sat", "a dog"], [["the cat sits", "a cat"], ["the dog", "dogs"]]
WEIGHTED = "align(vectors=hashed(mass=norm), alignment=emd)"
RARE = "align(vectors=hashed(weights=idf))"
PLAIN = "align(vectors=hashed, alignment=lsa)"
WIDER = "align(vectors=hashed(dim=64), alignment=lsa)"


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The texts of every similarity that is worked out."""
    seen: list[tuple[str, str]] = []
    compare = em.Cosine.__call__

    def noting(self: em.Cosine, x: Embedded, y: Embedded) -> Array:
        seen.append((x.units.text, y.units.text))
        return compare(self, x, y)

    monkeypatch.setattr(em.Cosine, "__call__", noting)
    return seen


def test_metrics_that_differ_in_weights_alone_share_similarities(
    compared: list[tuple[str, str]],
) -> None:
    em.score(*PAIRS, [PLAIN, WEIGHTED, RARE])
    assert len(compared) == len(set(compared)) == 4


def test_metrics_with_other_vectors_do_not(compared: list[tuple[str, str]]) -> None:
    em.score(*PAIRS, [PLAIN, WIDER])
    assert len(compared) == 8


def test_each_keeps_its_own_weights_and_masses() -> None:
    together = em.score(*PAIRS, [PLAIN, WEIGHTED, RARE, WIDER])
    for metric, scores in together.items():
        assert scores == em.score(*PAIRS, metric)
    assert len({scores.segments for scores in together.values()}) == 4
