"""Porter's stemmer as nltk has it: published scores of words and phrases rest on this one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from evenmatch.errors import MissingExtraError

_STEMS_KEPT = 1 << 17


class Stemmer:
    """Porter's stemmer, remembering the words it has seen; a stem is in lower case."""

    def __init__(self) -> None:
        try:
            from nltk.stem.porter import PorterStemmer
        except ImportError:
            raise MissingExtraError(
                "this metric needs nltk; install it with: pip install 'evenmatch[ngram]'"
            ) from None
        self.stem: Callable[[str], str] = lru_cache(_STEMS_KEPT)(PorterStemmer().stem)


@cache
def stemmer() -> Stemmer:
    """The one stemmer of this process."""
    return Stemmer()
