"""Tokens to count: the cut a metric is known by, or ours for text that cut was not made for.

rouge-score drops every letter but a to z, so that two equal Chinese sentences have nothing in
common; and between spaces a Chinese sentence is one word. Such text takes the `words` splitter's
cut: words of any script, characters where a script has no spaces, and symbols one by one.

reference_length: no judgement of a candidate, but of use beside some.

The libraries that compute n-gram metrics: imported late, named with their version.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar, Literal

from evenmatch.errors import MissingExtraError
from evenmatch.registry import make_signature, register
from evenmatch.scoring.inputs import check_pairs
from evenmatch.scoring.reducers import empty_side_flags
from evenmatch.types import Pair, Score, Scores
from evenmatch.units.text import Words

Tokenize = Callable[[str], list[str]]


WordTokenizer = Literal["auto", "whitespace", "words"]


_LATIN = re.compile("[A-Za-z0-9\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")


def choose_tokenizer(tokenizer: str, usual: Tokenize, ours: Tokenize, *texts: str) -> Tokenize:
    """The cut a tokenizer setting asks for; 'auto' looks at the texts of one pair together."""
    if tokenizer == "auto":
        return usual if mostly_latin(*texts) else ours
    return ours if tokenizer == "words" else usual


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
    """Words of any script and single symbols, in their case."""
    return list(Words()(text).words)


def tokenize_texts(tokenizer: WordTokenizer, *texts: str) -> list[list[str]]:
    """The texts of one pair, cut between spaces or into words.

    'auto' cuts between spaces, unless most words are in a script other than Latin or symbols;
    'whitespace' and 'words' do the one or the other always.

    >>> tokenize_texts("auto", "Tom's cat.", "His cat."), tokenize_texts("auto", "猫です。", "猫")
    ([["Tom's", 'cat.'], ['His', 'cat.']], [['猫', 'で', 'す', '。'], ['猫']])
    """
    cut = choose_tokenizer(tokenizer, str.split, split_words, *texts)
    return [cut(text) for text in texts]


@register("metric", "reference_length")
@dataclass(frozen=True)
class ReferenceLength:
    """The logarithm of 1 + the reference's words, the longest reference's where there are several.

    It says nothing of a candidate. In a blend it takes out what other parts owe to length alone:
    long texts have more chances to match.
    """

    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """One length a pair, in order."""
        check_pairs(pairs)
        return Scores(tuple(self._score(pair) for pair in pairs), self.signature)

    def _score(self, pair: Pair) -> Score:
        most = max(len(reference.split()) for reference in pair.references)
        return Score(math.log1p(most), flags=empty_side_flags(pair))

    @property
    def signature(self) -> str:
        """The recipe."""
        return make_signature(self)


def import_library(module: str, *, package: str) -> ModuleType:
    """A module of an n-gram library."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise _missing_library(package) from None


def library_version(package: str) -> str:
    """A library with its version, as signatures show it."""
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        raise _missing_library(package) from None


def _missing_library(package: str) -> MissingExtraError:
    return MissingExtraError(
        f"this metric needs {package}; install it with: pip install 'evenmatch[ngram]'"
    )
