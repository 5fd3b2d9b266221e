"""Mentions of social groups in a text: which words are about a person of a group.

A `Lexicon` finds its terms in a text; `sentences.py` decides if a word is used as the term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from evenmatch.data.fairness_sets import GroupTerm
from evenmatch.errors import InputError
from evenmatch.fairness.sentences import TaggedSentence
from evenmatch.fairness.tagging import (
    TOKEN,
    Token,
    check_text,
    sense_lists,
    tokenize,
)
from evenmatch.types import Parse

_LONGEST_TERM = 3  # words
_LEXICONS: dict[int, Lexicon] = {}  # of tuples of terms, by identity


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch of text about a group: the term, which of its two sides, and how it is used."""

    start: int
    end: int
    term: GroupTerm
    side: int  # 0 for `term.one`, 1 for `term.other`
    use: str = ""  # "possessive" and "object" for her and his; "predicate" for adjectives
    starts_sentence: bool = False


class Lexicon:
    """The terms of two groups, ready to be found in texts."""

    def __init__(self, terms: Sequence[GroupTerm]) -> None:
        if not isinstance(terms, Sequence) or not all(isinstance(t, GroupTerm) for t in terms):
            raise InputError(
                f"expected a list of GroupTerm, such as builtin_terms(), got {terms!r:.60}"
            )
        self.terms = terms
        self.table: dict[str, list[tuple[GroupTerm, int]]] = {}
        for term in terms:
            for side, word in enumerate((term.one, term.other)[: 1 if term.one_way else 2]):
                self.table.setdefault(word.lower(), []).append((term, side))
        self._first_words = {phrase.split()[0] for phrase in self.table if phrase.strip()}
        self._idioms = _idioms(frozenset(term.attribute for term in terms))

    def find(self, text: str, parse: Parse | None = None) -> list[Mention]:
        """Find the mentions of both groups in a text, from left to right."""
        tokens = tokenize(text, parse)
        sentence = TaggedSentence(text, tokens)
        found: list[Mention] = []
        at = 0
        while at < len(tokens):
            idiom = self._idiom_length(tokens, at)
            if idiom:
                at += idiom
                continue
            for length in range(min(_LONGEST_TERM, len(tokens) - at), 0, -1):
                candidates = self.table.get(sentence.phrase(at, length), ())
                mention = _first_mention(sentence, at, length, candidates)
                if mention is not None:
                    found.append(mention)
                    break
            else:
                length = 1
                found += _hyphenated(sentence, at, self.table)
            at += length
        return found

    def may_occur(self, text: str) -> bool:
        """Whether a word of some term occurs at all; quick, and without regard to its sense."""
        check_text(text)
        return any(
            not self._first_words.isdisjoint((token[0].lower(), *token[0].lower().split("-")))
            for token in TOKEN.finditer(text)
        )

    def direction(self, first: str, second: str) -> int:
        """Return 1 if what only the first text says is about the first group, -1 if the second.

        0 if neither is clear. Senses are not checked: the texts are known to differ in a group.

        >>> from evenmatch.data.fairness_sets import builtin_terms
        >>> make_lexicon(builtin_terms()).direction("The nurse said he left.", "She said so.")
        1
        """
        phrases = [_phrases(text) for text in (first, second)]
        own = (phrases[0] - phrases[1], phrases[1] - phrases[0])
        one, other = (
            {side for phrase in some for _, side in self.table.get(phrase, ())} for some in own
        )
        if one | other and one <= {0} and other <= {1}:
            return 1
        return -1 if one | other and one <= {1} and other <= {0} else 0

    def _idiom_length(self, tokens: Sequence[Token], at: int) -> int:
        """Return the number of tokens of the fixed phrase that begins here."""
        for phrase in self._idioms.get(tokens[at].low, ()):
            if [token.low for token in tokens[at : at + len(phrase)]] == phrase:
                return len(phrase)
        return 0


def make_lexicon(terms: Sequence[GroupTerm]) -> Lexicon:
    """Return the lexicon of some terms; that of a tuple is built once."""
    known = _LEXICONS.get(id(terms))
    if known is None or known.terms is not terms:
        known = Lexicon(terms)
        if isinstance(terms, tuple):
            _LEXICONS[id(terms)] = known
    return known


def has_no_counterpart(text: str, attribute: str, mentions: Sequence[Mention]) -> bool:
    """Whether a text says what is said of one group only, or names a person by an unswapped title.

    The first is "pregnant", the second "Prince Harry and his brother".
    """
    impossible, titles = (
        sense_lists()[name].get(attribute, "").split() for name in ("impossible", "unswappable")
    )
    swapped = {mention.start for mention in mentions}
    sentence = TaggedSentence(text, tokenize(text))
    return any(
        token.low in impossible
        or (
            token.text in titles
            and token.start not in swapped
            and (sentence.is_capital(at) or sentence.is_capital(at + 1))
        )
        for at, token in enumerate(sentence.tokens)
    )


def _phrases(text: str) -> set[str]:
    check_text(text)
    words = [match[0].lower() for match in TOKEN.finditer(text)]
    lengths = range(1, _LONGEST_TERM + 1)
    return {" ".join(words[i : i + n]) for n in lengths for i in range(len(words))}


@cache
def _idioms(attributes: frozenset[str]) -> Mapping[str, list[list[str]]]:
    """Fixed phrases in which no word is a term, by their first word."""
    found: dict[str, list[list[str]]] = {}
    for attribute, phrases in sense_lists()["idioms"].items():
        if attribute in attributes or "" in attributes:
            for phrase in map(str.split, phrases):
                found.setdefault(phrase[0], []).append(phrase)
    return found


def _first_mention(
    sentence: TaggedSentence, at: int, length: int, candidates: Sequence[tuple[GroupTerm, int]]
) -> Mention | None:
    """Return the first reading of a phrase as a term that its use allows."""
    for term, side in candidates:
        use = sentence.use(at, length, term)
        if use is not None:
            token, last = sentence.tokens[at], sentence.tokens[at + length - 1]
            start = sentence.starts_sentence(at)
            return Mention(token.start, last.end, term, side, use, start)
    return None


def _hyphenated(
    sentence: TaggedSentence, at: int, table: Mapping[str, Sequence[tuple[GroupTerm, int]]]
) -> list[Mention]:
    """Find terms in "father-son" (all parts are terms) and "ex-wife" (a prefix and a term)."""
    token = sentence.tokens[at]
    parts = token.text.split("-")
    if len(parts) < 2:
        return []
    found, offset = [], token.start
    for n, part in enumerate(parts):
        known = [c for c in table.get(part.lower(), ()) if c[0].kind in ("noun", "kin", "name")]
        if known:
            start = sentence.starts_sentence(at) and not n
            found.append(Mention(offset, offset + len(part), *known[0], "", start))
        elif part.lower() not in sentence.lists["prefixes"]:
            return []
        offset += len(part) + 1
    return found
