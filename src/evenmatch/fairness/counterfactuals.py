"""Counterfactual sentences: mentions of one group swapped for another, or made neutral.

Words are replaced by a list of terms; case, possessive and a preceding article are adjusted. "her"
becomes "him" or "his" and "his" becomes "her" or "hers" by part of speech: by a parser's tags where
one is given, else by the next word, because a possessive precedes its noun.

The second half measures the penalty for a wrong gender. Where the reference says "he", a candidate
that says "she" is wrong, and a debiased metric must still score it lower.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np

from evenmatch.data.fairness_sets import GroupTerm, builtin_terms
from evenmatch.errors import InputError
from evenmatch.protocols import Metric, Parser
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.metric import score_metrics
from evenmatch.types import Pair, Run

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LETTERS = re.compile(r"[^\W\d_]+")
_POSSESSIVE_TAG = "PRP$"

# Words that follow an object pronoun ("saw her in town") and never begin a noun phrase after a
# possessive.
_AFTER_OBJECT = frozenset(
    "a an the this that these those to of in on at by for from with without into onto over under "
    "about after before behind beside between through during until against along around as and or "
    "but nor so if when while because since although though than who whom which whose what where "
    "why how is was are were be been am has have had do does did will would can could may might "
    "must shall should not never always again away back down up out off too very then there here "
    "now yesterday today tomorrow he she it they we you i him them us me his hers their our your "
    "my its some any each every no all both".split()
)


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A sentence, the same about the other group, and the same about no group."""

    original: str
    swapped: str
    neutral: str


@check_arguments
def counterfactuals(
    sentences: Iterable[str],
    attribute: str = "gender",
    *,
    terms: Sequence[GroupTerm] = (),
    parser: Parser | None = None,
) -> list[Counterfactual]:
    """Swap and neutralise each distinct sentence that mentions a group; leave out the others.

    >>> counterfactuals(["She lost her keys.", "It rained."])[0].swapped
    'He lost his keys.'
    """
    if parser is not None and not callable(parser):
        raise InputError(f"expected a parser, such as em.Spacy(), got {parser!r:.60}")
    words = terms or builtin_terms(attribute)
    texts = list(dict.fromkeys(sentences))
    if not all(isinstance(text, str) for text in texts):
        raise InputError("the sentences must be strings")
    possessives: list[frozenset[int] | None] = [None] * len(texts)
    if parser is not None:
        tagged = (zip(parse.spans, parse.tags, strict=True) for parse in parser(texts))
        possessives = [
            frozenset(start for (start, _), tag in tokens if tag == _POSSESSIVE_TAG)
            for tokens in tagged
        ]
    found = (
        Counterfactual(text, swap_groups(text, words, starts), neutralise(text, words, starts))
        for text, starts in zip(texts, possessives, strict=True)
    )
    return [each for each in found if each.swapped != each.original]


def swap_groups(
    text: str, terms: Sequence[GroupTerm] = (), possessives: frozenset[int] | None = None
) -> str:
    """Replace the mentions of each group by the other group.

    `possessives` are the offsets of "her" and "his" that a tagger marks as possessive; without
    them the next word decides.

    >>> swap_groups("HIS sister's dog saw him, and the book is his.")
    "HER brother's dog saw her, and the book is hers."
    """
    table = _make_table((t, t.other, t.one) for t in terms or builtin_terms())
    pronouns = {"her": ("him", "his"), "his": ("hers", "her")}
    known = {word: forms for word, forms in pronouns.items() if word in table}
    return _replace_words(text, table, known, possessives)


def neutralise(
    text: str, terms: Sequence[GroupTerm] = (), possessives: frozenset[int] | None = None
) -> str:
    """Replace the mentions of both groups by neutral terms.

    >>> neutralise("The girl lost her keys.")
    "The child lost the person's keys."
    """
    table = _make_table((t, t.neutral, t.neutral) for t in terms or builtin_terms())
    pronouns = {}
    if "her" in table:
        owned = table.get("his", table["her"])
        pronouns = {"her": (table["her"], owned), "his": (owned, owned)}
    return re.sub(r"\s{2,}", " ", _replace_words(text, table, pronouns, possessives)).strip()


# A reference that mentions a group, with a right and with a wrong candidate.
GenderCase: TypeAlias = tuple[Pair, Pair]


def gendered_cases(pairs: Sequence[Pair]) -> list[GenderCase]:
    """Select pairs whose two sides mention the same single group, and swap their candidates."""
    words, found = builtin_terms(), []
    for pair in pairs:
        groups = mentioned_groups(pair.candidate, words)
        if len(groups) == 1 and groups == mentioned_groups(pair.references[0], words):
            found.append((pair, Pair(swap_groups(pair.candidate, words), pair.references)))
    return found


def mentioned_groups(text: str, terms: Sequence[GroupTerm]) -> frozenset[int]:
    """Which of the two groups a text mentions: 0, 1, both or none.

    >>> sorted(mentioned_groups("He met a woman.", builtin_terms()))
    [0, 1]
    """
    words = set(_LETTERS.findall(text))
    lowered = {word.lower() for word in words}
    return frozenset(
        side
        for term in terms
        for side, word in enumerate((term.one, term.other))
        if (word in words if term.name else word.lower() in lowered)
    )


def wrong_gender_penalties(
    metrics: Sequence[Metric], cases: Sequence[GenderCase], run: Run
) -> list[float]:
    """Mean score of right candidates minus that of wrong candidates, for each metric."""
    if not cases:
        raise InputError("no pair mentions one group on both sides; give pairs that do")
    results = score_metrics(metrics, list(chain.from_iterable(cases)), run)
    all_values = [np.array([s.value for s in scores.segments]) for scores in results]
    return [float((values[::2] - values[1::2]).mean()) for values in all_values]


def match_case(word: str, like: str) -> str:
    """Give a word the case of another; a lower-case `like` leaves it unchanged.

    >>> match_case("she", "HE"), match_case("she", "He")
    ('SHE', 'She')
    >>> match_case("Joan", "John"), match_case("European", "african")
    ('Joan', 'European')
    """
    if len(like) > 1 and like.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


def _make_table(terms: Iterable[tuple[GroupTerm, str, str]]) -> dict[str, str]:
    """Return what replaces both words of each term; the first term with a word counts."""
    table: dict[str, str] = {}
    for term, for_one, for_other in terms:
        for word, new in ((term.one, for_one), (term.other, for_other)):
            table.setdefault(word if term.name else word.lower(), new)
    return table


def _replace_words(
    text: str,
    table: Mapping[str, str],
    pronouns: Mapping[str, tuple[str, str]],
    possessives: frozenset[int] | None,
) -> str:
    """Replace the words in the table; `pronouns` have one form as an object, one as possessive."""
    parts, end, words = [], 0, list(_WORD.finditer(text))
    for n, match in enumerate(words):
        if possessives is None:
            following = words[n + 1] if n + 1 < len(words) else None
            owns = (
                following is not None
                and not text[match.end() : following.start()].strip()
                and following[0].lower() not in _AFTER_OBJECT
            )
        else:
            owns = match.start() in possessives
        word, low = match[0], match[0].lower()
        new = pronouns[low][owns] if low in pronouns else table.get(word, table.get(low))
        if new is None:
            continue
        before = text[end : match.start()]
        shown = match_case(new, word)
        parts.append(_with_article(before, word, shown) + shown)
        end = match.end()
    return "".join(parts) + text[end:]


def _with_article(before: str, old: str, new: str) -> str:
    """Adjust the article at the end of `before` to the new word: an actress, a performer."""
    sounds = [word[:1].lower() in "aeiou" for word in (old, new)]
    if not new or sounds[0] == sounds[1]:
        return before
    wanted = "an" if sounds[1] else "a"
    return re.sub(r"\b[Aa]n?(\s+)$", lambda m: match_case(wanted, m[0][:1]) + m[1], before)
