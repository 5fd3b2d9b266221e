"""The expression tree of a reward: metrics, form terms and numbers, combined and clipped.

Leaves score texts: `MetricTerm`, `LengthTerm` and `RepetitionTerm`. All other terms compute with
the values of the leaves.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evenmatch.errors import InputError
from evenmatch.protocols import Metric
from evenmatch.types import Pair, Run
from evenmatch.units.text import Words

OPERATORS: Mapping[str, Callable[..., float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "clip": lambda value, low, high: min(max(value, low), high),
}


@dataclass(frozen=True)
class MetricTerm:
    """A metric and its run settings."""

    metric: Metric
    run: Run = Run()


@dataclass(frozen=True)
class LengthTerm:
    """How close a text's length in words is to that of the reference closest in length."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= 1 <= self.high:
            raise InputError(
                f"length_term needs 0 < low <= 1 <= high, got low={self.low} and high={self.high}"
            )

    def rate(self, pair: Pair) -> float | None:
        """Return a value between 0 and 1, or None if either side has no words."""
        words = len(lowercase_words(pair.candidate))
        wanted = [n for n in (len(lowercase_words(r)) for r in pair.references) if n]
        if not (words and wanted):
            return None
        return max(min(1.0, words / (self.low * n), self.high * n / words) for n in wanted)


@dataclass(frozen=True)
class RepetitionTerm:
    """How little a text repeats itself: the share of its word n-grams that are new."""

    size: int

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            raise InputError(f"repetition_term needs a size of at least 1 word, got {self.size!r}")

    def rate(self, pair: Pair) -> float | None:
        """Return a value between 0 and 1, or None for a text without words."""
        words = lowercase_words(pair.candidate)
        return 1 - repeated_share(words, self.size) if words else None


@dataclass(frozen=True)
class CombinedTerm:
    """Terms combined by an operator; 'clip' takes a term, its lower and its upper bound."""

    operator: str
    terms: tuple[RewardTerm, ...]


# The terms that score texts, and all terms; a number is a constant.
LeafTerm: TypeAlias = MetricTerm | LengthTerm | RepetitionTerm
RewardTerm: TypeAlias = LeafTerm | CombinedTerm | float


def term_value(
    term: RewardTerm, leaf_values: Mapping[LeafTerm, Sequence[float | None]], row: int
) -> float:
    """Return the value of an expression in a row; a leaf without a value there counts as 0."""
    if isinstance(term, CombinedTerm):
        values = (term_value(each, leaf_values, row) for each in term.terms)
        return float(OPERATORS[term.operator](*values))
    return term if isinstance(term, float) else leaf_values[term][row] or 0.0


def leaf_terms(term: RewardTerm) -> list[LeafTerm]:
    """Return the distinct leaves of an expression."""
    if isinstance(term, CombinedTerm):
        return list(dict.fromkeys(leaf for each in term.terms for leaf in leaf_terms(each)))
    return [] if isinstance(term, float) else [term]


def term_expression(term: RewardTerm) -> str:
    """Return an expression as it is written in signatures."""
    match term:
        case MetricTerm(metric=metric):
            return f"reward({metric.signature.split(' · ')[0]})"
        case LengthTerm(low=low, high=high):
            return f"length_term(low={low!r}, high={high!r})"
        case RepetitionTerm(size=size):
            return f"repetition_term(size={size})"
        case CombinedTerm(operator="clip", terms=terms):
            return f"clip({', '.join(map(term_expression, terms))})"
        case CombinedTerm(operator=name, terms=terms):
            return f"({f' {name} '.join(map(term_expression, terms))})"
    return repr(term)


def repeated_share(words: Sequence[str], size: int = 2) -> float:
    """Return the share of n-grams of `size` words that occurred earlier in the text, else 0.

    >>> repeated_share("the cat and the cat".split())
    0.25
    """
    ngrams = [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
    return 1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0


def lowercase_words(text: str) -> tuple[str, ...]:
    """Split a text into lower-case words; punctuation marks are words too."""
    return tuple(word.lower() for word in Words()(text).words)
