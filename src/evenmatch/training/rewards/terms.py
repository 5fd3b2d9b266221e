"""What a text's shape is worth to a trainer: its length, and how little it repeats itself.

The expression a reward is: metrics, shapes and numbers, joined by operators and clipped.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from evenmatch.errors import InputError
from evenmatch.protocols import Metric
from evenmatch.types import Pair, Run
from evenmatch.units.text import Words


@dataclass(frozen=True)
class LengthTerm:
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
        words = len(lowercase_words(pair.candidate))
        wanted = [n for n in (len(lowercase_words(r)) for r in pair.references) if n]
        if not (words and wanted):
            return None
        return max(length_reward(words, n, self.low, self.high) for n in wanted)

    def value_at(self, judged: Mapping[Any, Sequence[float]], row: int) -> float:
        return judged[self][row]

    def to_expression(self) -> str:
        return f"length_term(low={self.low!r}, high={self.high!r})"


@dataclass(frozen=True)
class RepetitionTerm:
    """How little a text repeats itself: the share of its runs of words that are new."""

    size: int

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            raise InputError(f"repetition_term takes runs of at least 1 word, got {self.size!r}")

    def rate(self, pair: Pair) -> float | None:
        """Between 0 and 1; None for a text without words."""
        words = lowercase_words(pair.candidate)
        return 1 - repeated_share(words, self.size) if words else None

    def value_at(self, judged: Mapping[Any, Sequence[float]], row: int) -> float:
        return judged[self][row]

    def to_expression(self) -> str:
        return f"repetition_term(size={self.size})"


def repeated_share(words: Sequence[str], size: int = 2) -> float:
    """The share of runs of `size` words that stood in the text before; 0 where there are none.

    >>> repeated_share("the cat and the cat".split())
    0.25
    """
    runs = [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def length_reward(words: int, wanted: int, low: float, high: float) -> float:
    """1 for a length between `low` and `high` times what is wanted, less the further outside.

    >>> [length_reward(n, 10, 0.8, 1.25) for n in (4, 8, 10, 25)]
    [0.5, 1.0, 1.0, 0.5]
    """
    return min(1.0, words / (low * wanted), high * wanted / words)


def lowercase_words(text: str) -> tuple[str, ...]:
    """The words of a text, in lower case, punctuation being words as well."""
    return tuple(word.lower() for word in Words()(text).words)


OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


class RewardTerm(Protocol):
    """A part of the expression: worth a number in each row, once its leaves were asked."""

    def value_at(self, judged: Mapping[LeafTerm, Sequence[float]], row: int, /) -> float: ...
    def to_expression(self) -> str: ...


@dataclass(frozen=True)
class MetricTerm:
    """A metric, and how its work is carried out."""

    metric: Metric
    run: Run = Run()

    def value_at(self, judged: Mapping[LeafTerm, Sequence[float]], row: int) -> float:
        return judged[self][row]

    def to_expression(self) -> str:
        return f"reward({self.metric.signature.split(' · ')[0]})"


@dataclass(frozen=True)
class ConstantTerm:
    """A number that stands for itself."""

    number: float

    def value_at(self, judged: Mapping[LeafTerm, Sequence[float]], row: int) -> float:
        return self.number

    def to_expression(self) -> str:
        return repr(self.number)


@dataclass(frozen=True)
class BinaryTerm:
    """Two terms and the operator between them."""

    operator: str
    left: RewardTerm
    right: RewardTerm

    def value_at(self, judged: Mapping[LeafTerm, Sequence[float]], row: int) -> float:
        join = OPERATORS[self.operator]
        return float(join(self.left.value_at(judged, row), self.right.value_at(judged, row)))

    def to_expression(self) -> str:
        return f"({self.left.to_expression()} {self.operator} {self.right.to_expression()})"


@dataclass(frozen=True)
class ClippedTerm:
    """A term that never leaves a range."""

    term: RewardTerm
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError(f"cannot clip to {self.low}..{self.high}; the lower bound comes first")

    def value_at(self, judged: Mapping[LeafTerm, Sequence[float]], row: int) -> float:
        return min(max(self.term.value_at(judged, row), self.low), self.high)

    def to_expression(self) -> str:
        return f"clip({self.term.to_expression()}, {self.low!r}, {self.high!r})"


# What looks at texts; everything else works on the numbers these give.
LeafTerm: TypeAlias = MetricTerm | LengthTerm | RepetitionTerm


def leaf_terms(term: RewardTerm) -> list[LeafTerm]:
    """The metrics and shapes of an expression, each once."""
    match term:
        case MetricTerm() | LengthTerm() | RepetitionTerm():
            return [term]
        case BinaryTerm(left=left, right=right):
            return list(dict.fromkeys([*leaf_terms(left), *leaf_terms(right)]))
        case ClippedTerm(term=inner):
            return leaf_terms(inner)
    return []
