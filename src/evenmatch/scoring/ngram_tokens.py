"""Tokens to count: the cut a metric is known by, or ours for text that cut was not made for.

rouge-score drops every letter but a to z, so that two equal Chinese sentences have nothing in
common; and between spaces a Chinese sentence is one word. Such text takes the `words` splitter's
cut: words of any script, characters where a script has no spaces, and symbols one by one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Literal

from evenmatch.units.words import Words

Cut = Callable[[str], list[str]]
Spaced = Literal["auto", "whitespace", "words"]

_LATIN = re.compile("[A-Za-z0-9\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")


def choose(tokenizer: str, usual: Cut, ours: Cut, *texts: str) -> Cut:
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


def words(text: str) -> list[str]:
    """Words of any script and single symbols, in their case."""
    return list(Words()(text).words)


def spaced(tokenizer: Spaced, *texts: str) -> list[list[str]]:
    """The texts of one pair, cut between spaces or into words.

    'auto' cuts between spaces, unless most words are in a script other than Latin or symbols;
    'whitespace' and 'words' do the one or the other always.

    >>> spaced("auto", "Tom's cat.", "His cat."), spaced("auto", "猫です。", "猫")
    ([["Tom's", 'cat.'], ['His', 'cat.']], [['猫', 'で', 'す', '。'], ['猫']])
    """
    cut = choose(tokenizer, str.split, words, *texts)
    return [cut(text) for text in texts]
