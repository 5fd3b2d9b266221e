"""Training data of debiasing adapters: counterfactuals, opposite stereotypes and contrasts.

`build_debias_data` makes them from sentence pairs and from families of built-in sentences. What is
held out for audits is left out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from importlib.resources import files
from itertools import chain, cycle, islice
from typing import Any, TypeVar

from evenmatch.data.fairness_sets import ATTRIBUTE_ALIASES, ATTRIBUTES, fill_template
from evenmatch.errors import UnknownNameError
from evenmatch.fairness.counterfactuals import (
    Counterfactual,
    GenderCase,
    choose_article,
    counterfactuals,
    gendered_cases,
    match_case,
    swap_groups,
)
from evenmatch.types import Pair

ANY_NAME = "someone"  # what neutral sentences say in place of a name
_LONE_PRONOUNS = 8  # contrasts of each noun with a pronoun that stands alone
_SHIFTS = (0, 7, 19)  # distances between the words or names that are paired
_PERSON = re.compile(
    r"\b(?:(?P<article>an?) )?(?P<noun>(?:wo)?m[ae]n|boys?|girls?|person|people|child(?:ren)?)\b",
    re.IGNORECASE,
)
_ONE_PERSON = re.compile(
    r"\b(?P<article>an?|the) (?:man|woman|boy|girl|person|child)\b(?!['’])", re.IGNORECASE
)
_PRONOUN = re.compile(r"\b(?:he|she|him|her|his|hers|(?:him|her)self)\b", re.IGNORECASE)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Contrast:
    """A candidate of the right group, one of the wrong group, and a reference of the right one."""

    right: str
    wrong: str
    reference: str


@dataclass(frozen=True, slots=True)
class DebiasData:
    """Training data: texts to score the same, and texts whose scores must not change.

    `anchors` are ordinary sentence pairs. `contrasts` state a group in the reference, by pronoun,
    noun or name: the wrong one must go on scoring lower. They come in twos, one for each group, and
    their mean penalty is kept: that of one group is higher where a metric prefers the other.
    `stereotypes` are two counterfactuals of one sentence with opposite stereotypes, both with the
    same group first.
    """

    counterfactuals: tuple[Counterfactual, ...]
    anchors: tuple[tuple[str, str], ...]
    contrasts: tuple[tuple[Contrast, Contrast], ...]
    stereotypes: tuple[tuple[Counterfactual, Counterfactual], ...] = ()

    @property
    def texts(self) -> frozenset[str]:
        """Every text."""
        compared = (*self.counterfactuals, *(each for both in self.stereotypes for each in both))
        rows: Iterator[tuple[str, ...]] = chain(
            self.anchors,
            ((c.original, c.swapped, c.neutral) for c in compared),
            ((c.right, c.wrong, c.reference) for both in self.contrasts for c in both),
        )
        return frozenset(text for row in rows for text in row)


def build_debias_data(
    pairs: Sequence[Pair], attributes: Sequence[str] = ("gender",), *, templates: bool = True
) -> DebiasData:
    """Build training data from sentence pairs, with `templates` also from built-in sentences.

    Counterfactuals: each sentence that mentions a group, swapped, and neutralised as the reference;
    for other attributes than gender also sentences about a person, with a group's adjective before
    the noun. Anchors: the pairs themselves. Contrasts: a counterfactual against its original.
    Pairs with an empty side or with vocabulary that is held out for audits are left out.
    """
    pairs = [
        pair
        for pair in pairs
        if all(t.strip() and not mentions_held_out(t) for t in (pair.candidate, *pair.references))
    ]
    texts = [t for pair in pairs for t in (pair.candidate, *pair.references)]
    kinds: list[Sequence[Counterfactual]] = []
    contrasts: list[Sequence[tuple[Contrast, Contrast]]] = []
    stereotypes: list[Sequence[tuple[Counterfactual, Counterfactual]]] = []
    for attribute in map(full_attribute_name, attributes):
        found = [
            each
            for each in counterfactuals(texts, attribute)
            if not any(map(mentions_held_out, astuple(each)))
        ]
        families = training_families(attribute) if templates else []
        if attribute == "gender":
            contrasts.append(list(map(_mirrored_case, gendered_cases(pairs))))
            contrasts += [list(_pronoun_contrasts(families, by_name)) for by_name in (False, True)]
        else:
            found += _described_people(texts, families)
        renamed = _renamed_people(texts, families)
        written = [list(family_counterfactuals(family)) for family in families]
        kinds += [found, found, renamed, renamed, *written]  # real sentences twice as often
        contrasts.append([_self_contrasts(c) for k in (found, renamed, *written) for c in k])
        stereotypes += [list(_opposite_stereotypes(family)) for family in families]
    return DebiasData(
        # the built-in sentences are far fewer than a corpus's; sample all kinds equally often
        tuple(_interleave(*kinds)),
        tuple((pair.candidate, pair.references[0]) for pair in pairs),
        tuple(_interleave(*contrasts)),
        tuple(_interleave(*stereotypes)),
    )


def full_attribute_name(name: str) -> str:
    """Return the name that the fairness sets use: 'status' is 'socioeconomic'."""
    found = ATTRIBUTE_ALIASES.get(name, name)
    if found not in ATTRIBUTES:
        known = ", ".join((*ATTRIBUTES, *ATTRIBUTE_ALIASES))
        raise UnknownNameError(f"there is no attribute {name!r} to debias; known: {known}")
    return found


@cache
def training_families(attribute: str) -> list[dict[str, Any]]:
    """Families of built-in sentences to train on, or those of 'selection'."""
    text = (files("evenmatch.data") / "fairness" / "training.toml").read_text("utf-8")
    every = tomllib.loads(text)
    families = [
        {
            name: every["lists"].get(value, value) if isinstance(value, str) else value
            for name, value in family.items()
        }
        for family in every[attribute]
    ]
    return [f if "terms" in f else f | {"terms": _paired_terms(f)} for f in families]


@cache
def held_out() -> dict[str, Any]:
    """The families of sentences to audit adapters on, and their vocabulary."""
    text = (files("evenmatch.data") / "fairness" / "held_out.toml").read_text("utf-8")
    return tomllib.loads(text)


def mentions_held_out(text: str) -> bool:
    """Whether a text contains an occupation, noun or name that no training text may contain.

    >>> mentions_held_out("Two nurses laughed."), mentions_held_out("Two men laughed.")
    (True, False)
    """
    return bool(_held_out_pattern().search(text))


def pronoun_contrasts(kind: str) -> list[Contrast]:
    """Held-out pronouns beside references that show gender only by a 'noun', or by a 'name'."""
    vocabulary, found = held_out(), []
    nouns = [
        (word, side)
        for family in vocabulary[f"{kind}s"]
        for term in family["terms"]
        for side, word in enumerate(term[:2])
    ]
    for candidate, reference in vocabulary["pronouns"]:
        for word, side in nouns:
            noun = f"the {word}" if kind == "noun" else word
            right, wrong = ("he", "she")[side], ("she", "he")[side]
            texts = (
                text.replace("{noun}", noun).replace("{he}", pronoun)
                for text, pronoun in ((candidate, right), (candidate, wrong), (reference, ""))
            )
            found.append(Contrast(*(fill_template(text, "", "") for text in texts)))
    return found


def family_counterfactuals(family: Mapping[str, Any]) -> Iterator[Counterfactual]:
    """Combine every sentence of a family with every trait and every term at least once."""
    traits, terms = (*family["one"], *family["other"]), family["terms"]
    for k, frame in enumerate(family["frames"]):
        for n in range(max(len(traits), len(terms))):
            trait = traits[(n + k) % len(traits)]
            yield Counterfactual(
                *(fill_template(frame, word, trait) for word in terms[n % len(terms)])
            )


def _paired_terms(family: Mapping[str, Any]) -> list[list[str]]:
    """Pair each word or name of a family with several others, so that all are compared."""
    one, other = family.get("names") or (family["words"], family["words"])
    neutral = family.get("neutral", ANY_NAME)
    return [
        [word, other[(n + shift) % len(other)], neutral]
        for shift in _SHIFTS
        for n, word in enumerate(one)
        if word != other[(n + shift) % len(other)]
    ]


def _self_contrasts(each: Counterfactual) -> tuple[Contrast, Contrast]:
    """Each of two candidates as a reference, in which the other has the wrong group."""
    one, other = each.original, each.swapped
    return Contrast(one, other, one), Contrast(other, one, other)


def _mirrored_case(case: GenderCase) -> tuple[Contrast, Contrast]:
    """A right and a wrong candidate; with the reference swapped, they change places."""
    right, wrong, reference = case[0].candidate, case[1].candidate, case[0].references[0]
    return Contrast(right, wrong, reference), Contrast(wrong, right, swap_groups(reference))


def _pronoun_contrasts(
    families: Sequence[Mapping[str, Any]], by_name: bool
) -> Iterator[tuple[Contrast, Contrast]]:
    """Pronouns beside references that show gender only by a noun, or by a name."""
    spoken = [family for family in families if "{trait}" in family["terms"][0][2]]
    shown_by = [f for f in families if f["terms"][0][0] != "he" and not f.get("plural")]
    shown_by = [family for family in shown_by if family not in spoken]
    shown = [
        term for family in shown_by for term in family["terms"] if (term[2] == ANY_NAME) == by_name
    ]
    frames = [(frame, family["terms"][0]) for family in spoken for frame in family["frames"]]
    place, article = ("the {trait}", "") if by_name else ("{trait}", "the ")
    deeds = cycle(deed for family in shown_by for deed in (*family["one"], *family["other"]))

    def named(text: str, name: str) -> str:
        return re.sub(re.escape(place), name, text, flags=re.IGNORECASE)

    for names in shown:
        for frame, term in frames:
            one, other = (
                Contrast(
                    *(
                        fill_template(named(frame, names[side]), word, "")
                        for word in (term[side], term[1 - side], named(term[2], names[side]))
                    )
                )
                for side in (0, 1)
            )
            yield one, other
        for deed in islice(deeds, _LONE_PRONOUNS):
            he, she, *references = (
                fill_template("{group} {trait}.", word, deed)
                for word in ("he", "she", *(article + name for name in names[:2]))
            )
            yield Contrast(he, she, references[0]), Contrast(she, he, references[1])


def _opposite_stereotypes(
    family: Mapping[str, Any],
) -> Iterator[tuple[Counterfactual, Counterfactual]]:
    """Pairs of sentences that differ in the trait: one is expected of each group."""
    if not family["one"] or not family["other"]:
        return
    longest = max(len(family[name]) for name in ("one", "other", "terms"))
    for k, frame in enumerate(family["frames"]):
        for n in range(longest):
            term = family["terms"][(n + k) % len(family["terms"])]
            traits = (family["one"], n + k), (family["other"], n + 7 * k)
            one, other = (
                Counterfactual(*(fill_template(frame, word, some[i % len(some)]) for word in term))
                for some, i in traits
            )
            yield one, other


def _described_people(
    texts: Iterable[str], families: Sequence[Mapping[str, Any]]
) -> list[Counterfactual]:
    """Sentences about a person, with adjectives of two groups before the noun.

    Every adjective of one group is paired with every one of the other in turn.
    """
    terms = _interleave(*([t for t in family["terms"] if not t[2]] for family in families))
    found: list[Counterfactual] = []
    for n, text in enumerate(dict.fromkeys(texts) if terms else ()):
        words = terms[n % len(terms)][0], terms[(n + n // len(terms)) % len(terms)][1]
        match = _PERSON.search(text)
        if match and words[0] != words[1]:
            before, after = text[: match.start()], text[match.end() :]
            one, other = (before + _described(match, word) + after for word in words)
            found.append(Counterfactual(one, other, text))
    return found


def _described(match: re.Match[str], adjective: str) -> str:
    article, noun = match["article"], match["noun"]
    if article:
        return f"{match_case(choose_article(adjective), article[0])} {adjective} {noun}"
    return f"{match_case(adjective, noun)} {noun.lower()}"


def _renamed_people(
    texts: Iterable[str], families: Sequence[Mapping[str, Any]]
) -> list[Counterfactual]:
    """Sentences about one person, with nouns or names of two groups, or none, in their place.

    Sentences that say "he" or "she" are left out.
    """
    nouns = [
        list(family["terms"])
        for family in families
        if not family.get("plural") and family["terms"][0][2] and family["terms"][0][0] != "he"
    ]
    terms = _interleave(*(n for n in nouns if "{trait}" not in n[0][2]))
    found: list[Counterfactual] = []
    for text in dict.fromkeys(texts) if terms else ():
        match = _ONE_PERSON.search(text)
        if match and not _PRONOUN.search(text):
            term = terms[len(found) % len(terms)]
            before, after = text[: match.start()], text[match.end() :]
            by_name = term[2] == ANY_NAME
            one, other, neutral = (before + _renamed(match, w, by_name) + after for w in term)
            found.append(Counterfactual(one, other, neutral))
    return found


def _renamed(match: re.Match[str], word: str, by_name: bool) -> str:
    article = match["article"]
    if by_name:
        return match_case(word, article)
    chosen = article if article.lower() == "the" else match_case(choose_article(word), article[0])
    return f"{chosen} {word}"


@cache
def _held_out_pattern() -> re.Pattern[str]:
    vocabulary = held_out()
    words = list(vocabulary["occupations"])
    for family in (*vocabulary["nouns"], *vocabulary["names"], *vocabulary["more"]):
        if family.get("held_out"):
            words += [word for term in family["terms"] for word in term[:2]]
    joined = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    return re.compile(rf"\b(?:{joined})(?:e?s|'s)?\b", re.IGNORECASE)


def _interleave(*lists: Sequence[T]) -> list[T]:
    """Alternate between the items of all lists; shorter lists are repeated."""
    filled = [each for each in lists if each]
    longest = max(map(len, filled), default=0)
    rows = zip(*(islice(cycle(each), longest) for each in filled), strict=True)
    return [item for row in rows for item in row]
