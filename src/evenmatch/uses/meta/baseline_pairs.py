"""Random pairings of texts that have nothing to do with each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evenmatch.errors import InputError
from evenmatch.stats.arrays import Indexes


def unrelated_pairs(
    lines: Sequence[str] | Sequence[Sequence[str]], count: int, seed: int
) -> list[tuple[str, str]]:
    """Candidates and references from different lines, at most `count`; all where there are fewer.

    Blank texts are left out, and of a text that comes again only the first counts. The same seed
    gives the same pairs.

    >>> unrelated_pairs(["a", "b"], 10, 0)
    [('a', 'b'), ('b', 'a')]
    """
    if type(count) is not int or count < 1:
        raise InputError(f"pairs must be a whole number, at least 1, got {count!r}")
    texts, groups = _distinct(lines)
    sizes = np.bincount(groups) if groups else np.zeros(1, dtype=int)
    possible = len(texts) ** 2 - int((sizes**2).sum())
    if not possible:
        raise InputError(
            f"a baseline pairs texts of different lines, got {np.count_nonzero(sizes)} lines that "
            "differ; give at least two"
        )
    line_of = np.array(groups, dtype=np.intp)
    chosen = _all(line_of) if possible <= count else _drawn(line_of, count, seed)
    return [(texts[i], texts[j]) for i, j in chosen]


def _distinct(lines: Sequence[str] | Sequence[Sequence[str]]) -> tuple[list[str], list[int]]:
    if isinstance(lines, str):
        raise InputError("texts must be a list of lines, got one string; split it into lines")
    line_of: dict[str, int] = {}
    for number, line in enumerate(lines):
        for text in line if isinstance(line, (list, tuple)) else [line]:
            if not isinstance(text, str):
                raise InputError(f"the text of line {number} must be a string, got {text!r}")
            if text.strip():
                line_of.setdefault(text, number)
    return list(line_of), list(line_of.values())


def _all(line_of: Indexes) -> Iterator[tuple[int, int]]:
    for i, j in np.argwhere(line_of[:, None] != line_of[None]):
        yield int(i), int(j)


def _drawn(line_of: Indexes, count: int, seed: int) -> Iterator[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    left = count
    while left:
        for i, j in rng.integers(len(line_of), size=(left, 2)):
            if line_of[i] != line_of[j]:
                left -= 1
                yield int(i), int(j)
