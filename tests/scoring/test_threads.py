"""Windows made ahead of their use, without a change in what comes out."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import evenmatch as em
from evenmatch.scoring import windows
from evenmatch.scoring.threads import one_ahead


def test_items_come_in_order_whether_made_ahead_or_in_turn() -> None:
    for aside in (lambda: True, lambda: False):
        assert list(one_ahead(iter(range(5)), aside)) == [0, 1, 2, 3, 4]
        assert list(one_ahead([], aside)) == []


def test_the_next_item_is_made_while_one_is_in_use() -> None:
    second = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        second.set()
        yield 2

    for item in one_ahead(items(), lambda: True):
        if item == 1:
            assert second.wait(10)


def test_in_turn_nothing_is_made_before_it_is_asked_for() -> None:
    made = []

    def items() -> Iterator[int]:
        for i in range(3):
            made.append(i)
            yield i

    for item in one_ahead(items(), lambda: False):
        assert made == list(range(item + 1))


def test_trouble_in_making_an_item_reaches_who_asked_for_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    found = []
    with pytest.raises(ValueError, match="no more"):
        found += one_ahead(items(), lambda: True)


def test_many_windows_score_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = [f"the cat sat on mat number {i}" for i in range(30)]
    references = [f"a cat was sitting on mat {i % 7}" for i in range(30)]
    metrics = ["bertscore", "f_cont", "lisa_auction"]
    whole = em.score(candidates, references, metrics, threads=2)
    monkeypatch.setattr(windows, "MOST_TEXTS", 8)
    for threads in (1, 2):
        assert em.score(candidates, references, metrics, threads=threads) == whole
