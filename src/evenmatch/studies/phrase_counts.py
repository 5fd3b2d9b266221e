"""How many phrases a system predicts, and how many are overlong or repeat a word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evenmatch.data.documents import Document
from evenmatch.stats.panel import Floats
from evenmatch.training.keyphrases.sequences import doubles_word, tokenize_text
from evenmatch.units.keyphrases import get_stemmer

OVERLONG = 8  # words; hardly any gold phrase has more


@dataclass(frozen=True, slots=True)
class PhraseCounts:
    """Numbers of phrases, and signs of degenerate ones.

    `overlong` is the share of phrases with more than eight words, and `repeated` the share of words
    that repeat an earlier word of their phrase.
    """

    present: float  # per document
    absent: float
    words: float  # per phrase
    overlong: float
    repeated: float


def count_phrases(
    predictions: Iterable[Sequence[str]], present: float, absent: float
) -> PhraseCounts:
    """Describe predicted phrases; the numbers of present and absent ones are given.

    >>> count_phrases([["a b a", "c"], []], 1, 0)
    PhraseCounts(present=1, absent=0, words=2.0, overlong=0.0, repeated=0.25)
    """
    phrases = [phrase for each in predictions for phrase in each]
    lengths = [len(phrase.split()) for phrase in phrases] or [0]
    repeated, words = _count_repeated(phrases)
    return PhraseCounts(
        present,
        absent,
        float(np.mean(lengths)),
        float(np.mean([length > OVERLONG for length in lengths])),
        repeated / max(1, words),
    )


def count_repeated_words(predictions: Sequence[Sequence[str]], texts: Sequence[Document]) -> Floats:
    """Return what the absent phrases of each document repeat: (documents, 4).

    The columns are the number of words that repeat an earlier word of their phrase, and that of
    all words; then both without the phrases that `doubles_word` finds.
    """
    rows = []
    for text, each in zip(texts, predictions, strict=True):
        absent = [phrase for phrase in each if not _occurs(phrase, text)]
        rest = [phrase for phrase in absent if not doubles_word(phrase.split())]
        rows.append([*_count_repeated(absent), *_count_repeated(rest)])
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


def _count_repeated(phrases: Iterable[str]) -> tuple[int, int]:
    words = [phrase.split() for phrase in phrases]
    return sum(len(each) - len(set(each)) for each in words), sum(map(len, words))


def _occurs(phrase: str, text: Document) -> bool:
    """Return whether the stems of a phrase occur consecutively in a text."""
    return f" {_stem(phrase)} " in f" {_stem(text.text)} "


@lru_cache(maxsize=1 << 14)
def _stem(text: str) -> str:
    return " ".join(map(get_stemmer().stem, tokenize_text(text)))
