"""What a text's shape is worth to a trainer: its length, and how little it repeats itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenmatch.errors import InputError
from evenmatch.types import Pair
from evenmatch.units.words import Words


@dataclass(frozen=True)
class Length:
    """How well a text's length in words suits that of the reference it suits best."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= 1 <= self.high:
            raise InputError(
                f"length_term takes low up to 1 and high from 1 on, both above 0, "
                f"got {self.low} and {self.high}"
            )

    def rate(self, pair: Pair) -> float | None:
        """Between 0 and 1; None where either side has no words."""
        words = len(lowered_words(pair.candidate))
        wanted = [n for n in (len(lowered_words(r)) for r in pair.references) if n]
        if not (words and wanted):
            return None
        return max(length_worth(words, n, self.low, self.high) for n in wanted)

    def worth(self, judged: Mapping[Any, Sequence[float]], row: int) -> float:
        return judged[self][row]

    def written(self) -> str:
        return f"length_term(low={self.low!r}, high={self.high!r})"


@dataclass(frozen=True)
class Repetition:
    """How little a text repeats itself: the share of its runs of words that are new."""

    size: int

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            raise InputError(f"repetition_term takes runs of at least 1 word, got {self.size!r}")

    def rate(self, pair: Pair) -> float | None:
        """Between 0 and 1; None for a text without words."""
        words = lowered_words(pair.candidate)
        return 1 - repeated_share(words, self.size) if words else None

    def worth(self, judged: Mapping[Any, Sequence[float]], row: int) -> float:
        return judged[self][row]

    def written(self) -> str:
        return f"repetition_term(size={self.size})"


def repeated_share(words: Sequence[str], size: int = 2) -> float:
    """The share of runs of `size` words that stood in the text before; 0 where there are none.

    >>> repeated_share("the cat and the cat".split())
    0.25
    """
    runs = [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def length_worth(words: int, wanted: int, low: float, high: float) -> float:
    """1 for a length between `low` and `high` times what is wanted, less the further outside.

    >>> [length_worth(n, 10, 0.8, 1.25) for n in (4, 8, 10, 25)]
    [0.5, 1.0, 1.0, 0.5]
    """
    return min(1.0, words / (low * wanted), high * wanted / words)


def lowered_words(text: str) -> tuple[str, ...]:
    """The words of a text, in lower case, punctuation being words as well."""
    return tuple(word.lower() for word in Words()(text).words)
