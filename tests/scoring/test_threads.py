"""Many windows and many threads, without a change in what comes out."""

from __future__ import annotations

import pytest

import evenmatch as em
from evenmatch.scoring import windows


def test_many_windows_score_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = [f"the cat sat on mat number {i}" for i in range(30)]
    references = [f"a cat was sitting on mat {i % 7}" for i in range(30)]
    metrics = ["bertscore", "f_cont", "lisa_auction"]
    whole = em.score(candidates, references, metrics, threads=2)
    monkeypatch.setattr(windows, "MOST_TEXTS", 8)
    for threads in (1, 2):
        assert em.score(candidates, references, metrics, threads=threads) == whole
