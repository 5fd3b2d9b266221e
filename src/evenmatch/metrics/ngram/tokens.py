"""Tokenizers and library imports that the n-gram metrics share, and metrics of length or chance.

The usual tokenizers fail on some scripts: rouge-score drops all letters but a to z, so two equal
Chinese sentences have nothing in common, and split at spaces a Chinese sentence is one word. The
tokenizer setting 'auto' uses the splitter `words` for such text: words of any script, characters
where a script has no spaces, and single symbols.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import math
import re
import unicodedata
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Literal, Protocol

from evenmatch.errors import needs_extra
from evenmatch.registry import CallContext, make_signature, register
from evenmatch.scoring.engine import EngineMetric, ReadyMetric, score_each_pair
from evenmatch.scoring.reducers import empty_side_flags
from evenmatch.types import Pair, Score
from evenmatch.units.text import Words

Tokenize = Callable[[str], list[str]]
WordTokenizer = Literal["auto", "whitespace", "words"]

_LATIN = re.compile("[A-Za-z0-9\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")


def choose_tokenizer(
    tokenizer: str, default: Tokenize, multilingual: Tokenize, *texts: str
) -> Tokenize:
    """The tokenizer for the texts of one pair: `multilingual` for 'words', else `default`.

    'auto' chooses by the script of all texts together.
    """
    if tokenizer == "auto":
        return default if mostly_latin(*texts) else multilingual
    return multilingual if tokenizer == "words" else default


def mostly_latin(*texts: str) -> bool:
    """Whether words in Latin letters and digits outnumber other words and symbols.

    >>> mostly_latin("the word 猫 means cat"), mostly_latin("我爱 Python"), mostly_latin("😀")
    (True, False, False)
    """
    if all(text.isascii() for text in texts):
        return any(_LATIN.search(text) for text in texts)
    latin = other = 0
    for text in texts:
        for word in Words()(text).words:
            if _LATIN.match(word):
                latin += 1
            elif not word.isascii() and unicodedata.category(word[0])[0] in "LNS":
                other += 1
    return latin > other


def split_words(text: str) -> list[str]:
    """Split a text into words of any script and single symbols; case is kept."""
    return list(Words()(text).words)


def tokenize_texts(tokenizer: WordTokenizer, *texts: str) -> list[list[str]]:
    """Tokenize the texts of one pair.

    'whitespace' splits at spaces and 'words' splits into words of any script. 'auto' is
    'whitespace', unless most words are symbols or in a script other than Latin.

    >>> tokenize_texts("auto", "Tom's cat.", "His cat."), tokenize_texts("auto", "猫です。", "猫")
    ([["Tom's", 'cat.'], ['His', 'cat.']], [['猫', 'で', 'す', '。'], ['猫']])
    """
    tokenize = choose_tokenizer(tokenizer, str.split, split_words, *texts)
    return [tokenize(text) for text in texts]


@register("metric", "reference_length")
@dataclass(frozen=True)
class ReferenceLength(EngineMetric):
    """Logarithm of 1 + the number of words of the longest reference.

    It does not depend on the candidate. In a blend it corrects for the effect of length on the
    other parts: long texts have more chances to match.
    """

    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def open(self, context: CallContext) -> ReadyMetric:
        """Nothing to load."""

        def score(pair: Pair) -> Score:
            words = max(len(reference.split()) for reference in pair.references)
            return Score(math.log1p(words), flags=empty_side_flags(pair))

        return score_each_pair(score)


@register("metric", "sentinel_length")
@dataclass(frozen=True)
class SentinelLength(EngineMetric):
    """Minus the number of characters of the candidate: a sentinel, which reads no content.

    A metric that agrees with ratings no better than this may measure length only (Perrella et al.
    2024). Professional raters count errors, and long outputs have more of them.
    """

    bounds: ClassVar[tuple[float, float]] = (-math.inf, 0.0)

    def open(self, context: CallContext) -> ReadyMetric:
        """Nothing to load."""
        return score_each_pair(
            lambda pair: Score(-float(len(pair.candidate.strip())), flags=empty_side_flags(pair))
        )


@register("metric", "sentinel_random")
@dataclass(frozen=True)
class SentinelRandom(EngineMetric):
    """A random number from 0 to 1 for each pair of texts, always the same: a sentinel of chance."""

    seed: int = 0
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def open(self, context: CallContext) -> ReadyMetric:
        """Nothing to load."""

        def draw(candidate: str, reference: str) -> float:
            text = f"{self.seed}\0{candidate}\0{reference}".encode("utf-8", "surrogatepass")
            return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") / 2**64

        def score(pair: Pair) -> Score:
            best = max(draw(pair.candidate, reference) for reference in pair.references)
            return Score(best, flags=empty_side_flags(pair))

        return score_each_pair(score)


class LibraryMetric(Protocol):
    """A metric that a library computes; its signature has the version of the library."""

    library: ClassVar[str]

    def resolve(self, context: CallContext) -> tuple[Any, tuple[str, ...]]:
        """Return the metric with the version of its library."""
        return self, (library_version(self.library),)

    @property
    def signature(self) -> str:
        """The metric's spec, with the library's version."""
        return make_signature(self)


def import_library(module: str, *, package: str) -> ModuleType:
    """Import a module of an n-gram library; raise MissingExtraError if it is not installed."""
    with _needs_library(package):
        return importlib.import_module(module)


def library_version(package: str) -> str:
    """A library's name and version, as signatures show them."""
    with _needs_library(package):
        return f"{package} {importlib.metadata.version(package)}"


def _needs_library(package: str) -> AbstractContextManager[None]:
    return needs_extra(
        f"this metric needs {package}; install it with: pip install 'evenmatch[ngram]'"
    )
