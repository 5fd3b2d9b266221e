"""How many phrases a system predicts, and how many are overlong or repeat a word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evenmatch.data.documents import Document
from evenmatch.training.keyphrases.sequences import tokenize_text
from evenmatch.units.keyphrases import get_stemmer

OVERLONG = 8  # words; hardly any gold phrase has more


@dataclass(frozen=True, slots=True)
class PhraseCounts:
    """Numbers of phrases, and signs of degenerate ones.

    `overlong` is the share of phrases with more than eight words, `repeated` the share of words
    that repeat an earlier word of their phrase, and `repeated_absent` that in absent phrases.
    """

    present: float  # per document
    absent: float
    words: float  # per phrase
    overlong: float
    repeated: float
    repeated_absent: float = 0.0


def count_phrases(
    predictions: Iterable[Sequence[str]],
    present: float,
    absent: float,
    texts: Sequence[Document] = (),
) -> PhraseCounts:
    """Describe predicted phrases; the numbers of present and absent ones are given.

    Absent phrases are told from others by the texts.

    >>> count_phrases([["a b a", "c"], []], 1, 0)
    PhraseCounts(present=1, absent=0, words=2.0, overlong=0.0, repeated=0.25, repeated_absent=0.0)
    """
    predictions = list(predictions)
    phrases = [phrase.split() for each in predictions for phrase in each]
    lengths = [len(words) for words in phrases] or [0]
    outside = [
        phrase.split()
        for text, each in zip(texts, predictions, strict=False)
        for phrase in each
        if not _occurs(phrase, text)
    ]
    return PhraseCounts(
        present,
        absent,
        float(np.mean(lengths)),
        float(np.mean([length > OVERLONG for length in lengths])),
        _repeated_share(phrases),
        _repeated_share(outside),
    )


def _repeated_share(phrases: Sequence[Sequence[str]]) -> float:
    """Return the share of words that repeat an earlier word of their phrase."""
    repeated = sum(len(words) - len(set(words)) for words in phrases)
    return repeated / max(1, sum(map(len, phrases)))


def _occurs(phrase: str, text: Document) -> bool:
    """Return whether the stems of a phrase occur consecutively in a text."""
    return f" {_stem(phrase)} " in f" {_stem(text.text)} "


@lru_cache(maxsize=1 << 14)
def _stem(text: str) -> str:
    return " ".join(map(get_stemmer().stem, tokenize_text(text)))
