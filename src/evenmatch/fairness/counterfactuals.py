"""Counterfactual sentences: mentions of one group swapped for another, or made neutral.

`mentions.py` decides which words mention a group, and whether "her" becomes "him" or "his". This
module replaces them: case, possessives and a preceding article are adjusted, and an adjective is
left out of the neutral sentence, or becomes "old or young" where it cannot be.

The second half measures the penalty for a wrong gender. Where the reference says "he", a candidate
that says "she" is wrong, and a debiased metric must still score it lower.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np

from evenmatch.data.fairness_sets import ATTRIBUTE_ALIASES, GroupTerm, builtin_terms
from evenmatch.errors import DataError, InputError, MissingExtraError
from evenmatch.fairness.mentions import Lexicon, Mention, has_no_counterpart, make_lexicon
from evenmatch.protocols import Metric, Parser
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.metric import score_metrics
from evenmatch.types import Pair, Parse, Run
from evenmatch.units.parsers.spacy import Spacy, load_pipeline
from evenmatch.units.text import replace_surrogates

# Counterparts of "her" and "his" by use.
_PRONOUNS = {
    ("her", "possessive"): "his",
    ("her", "object"): "him",
    ("his", "possessive"): "her",
    ("his", "object"): "hers",
}
# Attributes whose groups have no opposites: any two of them may be exchanged.
_UNORDERED = ("race", "religion")

_JOINT = re.compile(r"\s*(?:,\s*and\b|,|and\b|or\b|&)\s*")
_JOINT_BEFORE = re.compile(r"(?:,\s*and|,|\s+and|\s+or|\s*&)\s*$")

TaggerChoice: TypeAlias = Parser | Literal["auto"] | None


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
    parser: TaggerChoice = "auto",
) -> list[Counterfactual]:
    """Swap and neutralise each distinct sentence that mentions a group; leave out the others.

    Left out as well is what is said of one group only, such as "she is pregnant". The tags of
    `parser` tell terms from words that look like them; 'auto' is the spaCy pipeline if it is
    installed. Without one (None), word lists and endings decide, with more errors.

    >>> counterfactuals(["She lost her keys.", "It rained."], parser=None)[0].swapped
    'He lost his keys.'
    """
    if isinstance(sentences, str):
        raise InputError("the sentences must be a list of strings, not one string")
    texts = list(dict.fromkeys(sentences))
    if not all(isinstance(text, str) for text in texts):
        raise InputError("the sentences must be strings")
    lexicon = make_lexicon(terms or builtin_terms(attribute))
    attribute = ATTRIBUTE_ALIASES.get(attribute, attribute)
    texts = [text for text in texts if lexicon.may_occur(text)]
    found = []
    for text, parse in zip(texts, tag_texts(texts, parser), strict=True):
        mentions = lexicon.find(text, parse)
        swapped = _replace_mentions(text, mentions, _counterpart)
        if swapped != text and not has_no_counterpart(text, attribute, mentions):
            neutral = _replace_mentions(text, mentions, _neutral_term)
            found.append(Counterfactual(text, swapped, neutral))
    return found


def swap_groups(text: str, terms: Sequence[GroupTerm] = (), parse: Parse | None = None) -> str:
    """Replace the mentions of each group by the other group.

    >>> swap_groups("HIS sister's dog saw him, and the book is his.")
    "HER brother's dog saw her, and the book is hers."
    """
    mentions = _lexicon(terms).find(text, parse)
    return _replace_mentions(text, mentions, _counterpart)


def neutralise(text: str, terms: Sequence[GroupTerm] = (), parse: Parse | None = None) -> str:
    """Replace the mentions of both groups by neutral terms.

    >>> neutralise("The girl lost her keys.")
    "The child lost the person's keys."
    >>> neutralise("An old man met a tall woman.", builtin_terms("age"))
    'A man met a tall woman.'
    """
    mentions = _lexicon(terms).find(text, parse)
    return _replace_mentions(text, mentions, _neutral_term)


def group_versions(text: str, attribute: str, parse: Parse | None = None) -> tuple[str, ...]:
    """Return a text about one group and the same about the other; empty if it mentions no group.

    In each version, all mentions are of one group. Texts that differ in a group only have equal
    versions: a name becomes the first in the list of names, and a religion or an ethnic group, as
    these have no opposites, becomes the first in the list of terms.

    >>> group_versions("The king saw her son.", "gender")
    ('The king saw his son.', 'The queen saw her daughter.')
    >>> group_versions("Some Hindus came.", "religion")
    ('Some Muslim believers came.', 'Some Christian believers came.')
    """
    attribute = ATTRIBUTE_ALIASES.get(attribute, attribute)
    lexicon = make_lexicon(builtin_terms(attribute))
    if not lexicon.may_occur(text):
        return ()
    mentions = lexicon.find(text, parse)
    if not mentions or has_no_counterpart(text, attribute, mentions):
        return ()
    return tuple(_replace_mentions(text, mentions, partial(_term_of_side, side)) for side in (0, 1))


@check_arguments
def tag_texts(texts: Sequence[str], parser: TaggerChoice = "auto") -> Sequence[Parse | None]:
    """Parse texts for their tags; None for each text without a parser.

    'auto' is the spaCy pipeline for English if it is installed.
    """
    if parser != "auto" and parser is not None and not callable(parser):
        raise InputError(f"expected a parser, such as em.Spacy(), got {parser!r:.60}")
    tagger = _default_tagger() if parser == "auto" else parser
    return tagger(texts) if tagger is not None and texts else [None] * len(texts)


# A reference that mentions a group, with a right and with a wrong candidate.
GenderCase: TypeAlias = tuple[Pair, Pair]


@check_arguments
def gendered_cases(pairs: Sequence[Pair], *, parser: TaggerChoice = "auto") -> list[GenderCase]:
    """Select pairs whose two sides mention the same single group, and swap their candidates."""
    lexicon = make_lexicon(builtin_terms())
    both = [(pair, pair.candidate, pair.references[0]) for pair in pairs]
    both = [each for each in both if all(map(lexicon.may_occur, each[1:]))]
    parses = tag_texts([text for _, *texts in both for text in texts], parser)
    found = []
    for (pair, candidate, reference), one, other in zip(
        both, parses[::2], parses[1::2], strict=True
    ):
        mentions = lexicon.find(candidate, one)
        groups = {mention.side for mention in mentions}
        if len(groups) == 1 and groups == {m.side for m in lexicon.find(reference, other)}:
            wrong = _replace_mentions(candidate, mentions, _counterpart)
            found.append((pair, Pair(wrong, pair.references)))
    return found


def mentioned_groups(
    text: str, terms: Sequence[GroupTerm], parse: Parse | None = None
) -> frozenset[int]:
    """Which of the two groups a text mentions: 0, 1, both or none.

    >>> sorted(mentioned_groups("He met a woman.", builtin_terms()))
    [0, 1]
    """
    return frozenset(mention.side for mention in make_lexicon(terms).find(text, parse))


@check_arguments
def wrong_gender_penalties(
    metrics: Sequence[Metric], cases: Sequence[GenderCase], run: Run
) -> list[float]:
    """Mean of how much better right candidates score than wrong ones, for each metric."""
    if not cases:
        raise InputError("no pair mentions one group on both sides; give pairs that do")
    results = score_metrics(metrics, list(chain.from_iterable(cases)), run)
    all_values = [np.array([s.value for s in scores.segments]) for scores in results]
    signs = [1.0 if metric.higher_is_better else -1.0 for metric in metrics]
    return [
        sign * float((values[::2] - values[1::2]).mean())
        for sign, values in zip(signs, all_values, strict=True)
    ]


@check_arguments
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


@check_arguments
def choose_article(word: str) -> str:
    """Return "a" or "an" by the sound that a word begins with.

    >>> [choose_article(word) for word in ("European", "heir", "MRI", "11-year-old", "unemployed")]
    ['a', 'an', 'an', 'an', 'an']
    """
    low = word.lower()
    if word.isupper() and 1 < len(word) <= 4:  # spelled out
        return "an" if low[0] in "aefhilmnorsx" else "a"
    if re.match(r"eu|ew|one\b|once|u(?:ni(?!n)|s[aeiu]|t[ei]|r[aei]|k)|ubiq", low):
        return "a"
    return "an" if re.match(r"[aeiouéá]|hour|honest|honou?r|heir|8|11\b|11-|18", low) else "a"


@cache
def _default_tagger() -> Callable[[Sequence[str]], Sequence[Parse]] | None:
    """Return a tagger if the spaCy pipeline is installed."""
    try:
        load_pipeline(Spacy().pipeline)
    except (DataError, MissingExtraError):
        return None
    return _spacy_tags


def _spacy_tags(texts: Sequence[str]) -> list[Parse]:
    """Tag texts without building trees, in half the time of a parse."""
    nlp = load_pipeline(Spacy().pipeline)
    docs = nlp.pipe(map(replace_surrogates, texts), disable=["parser", "attribute_ruler"])
    return [
        Parse(
            text,
            tuple(token.text for token in doc),
            tuple((token.idx, token.idx + len(token)) for token in doc),
            tuple(token.tag_ for token in doc),
            (),
        )
        for text, doc in zip(texts, docs, strict=True)
    ]


def _lexicon(terms: Sequence[GroupTerm]) -> Lexicon:
    return make_lexicon(builtin_terms() if terms == () else terms)


def _term_of_side(side: int, mention: Mention, old: str) -> str:
    """Return the term for one of the two groups that stands for all of its kind."""
    if mention.side != side and (forced := _PRONOUNS.get((old.lower(), mention.use))):
        return forced
    term = _example(mention.term)
    return term.other if side else term.one


@cache
def _example(given: GroupTerm) -> GroupTerm:
    """Return the term that stands for all that differ in the group only."""
    terms = [term for term in builtin_terms(given.attribute) if term.kind == given.kind]
    if given.kind == "name":
        return terms[0]
    if given.attribute not in _UNORDERED:
        alike = (t for t in terms if t.neutral == given.neutral)
        return next(t for t in alike if given.one == t.one or given.other == t.other)
    first = next(t for t in builtin_terms(given.attribute) if t.kind == "adjective")
    one, other = (f"{word} {given.neutral}".strip() for word in (first.one, first.other))
    return replace(given, one=one, other=other)


def _counterpart(mention: Mention, old: str) -> str:
    term = mention.term
    forced = _PRONOUNS.get((old.lower(), mention.use))
    return forced or (term.one if mention.side else term.other)


def _neutral_term(mention: Mention, old: str) -> str:
    term = mention.term
    if mention.use == "predicate" and not term.neutral:
        return f"{term.one} or {term.other}"
    if (old.lower(), mention.use) == ("her", "object"):
        return term.neutral.removesuffix("'s")
    if (old.lower(), mention.use) == ("her", "possessive"):
        return term.neutral.removesuffix("'s") + "'s" if term.neutral else ""
    if mention.use == "before a name":
        return f"{old[:1]}."
    return "" if mention.use == "after a relative" else term.neutral


def _replace_mentions(
    text: str, mentions: Sequence[Mention], choose: Callable[[Mention, str], str]
) -> str:
    """Replace each mention, with the case of the old word and the right article."""
    made, end = "", 0
    for mention in mentions:
        old = text[mention.start : mention.end]
        made += text[end : mention.start]
        end = mention.end
        new = _with_case(choose(mention, old), old, mention)
        if new:
            made = _with_article(made, old, new) + new
            bare = re.match(r"['’](?!\w)", text[end:])
            quoted = re.search(r"(?:^|[\s(])['‘]\w", text[: mention.start + 1])
            if bare and not quoted and old.endswith("s") and not new.endswith("s"):
                made, end = f"{made}{bare[0]}s", end + 1
        else:
            made, end = _leave_out(made, text, mention, end)
    made += text[end:]
    return made.strip() if made[:1].isspace() and not text[:1].isspace() else made


def _leave_out(made: str, text: str, mention: Mention, end: int) -> tuple[str, int]:
    """Leave an adjective out, with what joined it to another one."""
    joint = _JOINT.match(text, end) if mention.use == "joined after" else None
    end = joint.end() if joint else re.compile(r"\s*").match(text, end).end()  # type: ignore[union-attr]  # matches the empty string
    if mention.use == "joined before":
        made = _JOINT_BEFORE.sub(" ", made)
    following = re.match(r"[\w-]+", text[end:])
    if following is None:
        return made.rstrip(), end
    old = text[mention.start : mention.end]
    made = _with_article(made, old, following[0])
    if mention.starts_sentence and old[:1].isupper():
        return made + text[end].upper(), end + 1
    return made, end


def _with_case(new: str, old: str, mention: Mention) -> str:
    """Give the new word the case of the old one, unless its own case is part of the word."""
    term = mention.term
    if not new or (len(old) > 1 and old.isupper()):
        return match_case(new, old)
    if term.kind == "title" and old.islower():
        return new.lower()
    listed = term.other if mention.side else term.one
    if listed[:1].isupper() or term.one[:1].isupper():
        return match_case(new, old) if mention.starts_sentence else new
    return match_case(new, old)


def _with_article(before: str, old: str, new: str) -> str:
    """Adjust the article at the end of `before` to the new word: an actress, a performer."""
    wanted = choose_article(new)
    if choose_article(old) == wanted:
        return before
    return re.sub(r"\b[Aa]n?(\s+)$", lambda m: match_case(wanted, m[0][:1]) + m[1], before)
