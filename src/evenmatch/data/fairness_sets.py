"""Fairness pairs: two candidates that differ only in the social group they mention.

- `read_fair_pairs` reads a public set, a folder, a file, or the pairs that come with evenmatch.
- `template_pairs` generates these from templates. A family of templates has terms for two groups
  and a neutral term, sentences with a gap for the term and one for a trait, and the traits that a
  stereotype expects of the first group (`one`) and of the second (`other`).
- `builtin_terms` and `read_terms` give counterpart terms of two groups, such as he and she.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evenmatch.data.catalogue.catalogue import canonical_name, data_sets, find_data_set
from evenmatch.data.files import read_records
from evenmatch.errors import DataError, InputError, UnknownNameError
from evenmatch.registry.parts import check_arguments
from evenmatch.types import Pair

PUBLIC_SET = "metric-fairness"

ATTRIBUTES = ("age", "gender", "physical-appearance", "race", "religion", "socioeconomic")

ATTRIBUTE_ALIASES = {"appearance": "physical-appearance", "status": "socioeconomic"}

TermKind: TypeAlias = Literal["word", "noun", "kin", "title", "name", "adjective"]

# Tables of terms.toml, and the kind of their terms.
_TERM_TABLES: Mapping[str, TermKind] = {
    "words": "word",
    "titles": "title",
    "adjectives": "adjective",
    "kin": "kin",
    "nouns": "noun",
    "one_way": "noun",
}

PUBLIC_TERM_LISTS = ("winobias", "bias-words")

_TEXT_FIELDS = ("cand_a", "ref_a", "cand_b", "ref_b")

_SUFFIXES = (".jsonl", ".jsonl.gz", ".tsv", ".tsv.gz")

# Published scores of the first and the second candidate, by metric.
PublishedScores: TypeAlias = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class FairnessPair:
    """Two candidates that should get equal scores; the `first` agrees with a stereotype.

    `direction` is 1 if the first candidate is about the first of the two groups that are compared,
    -1 if it is about the second, and 0 if that is not stated.
    """

    first: Pair
    second: Pair
    scores: PublishedScores = field(default_factory=dict)
    direction: int = 0

    @property
    def both(self) -> tuple[Pair, Pair]:
        """Both pairs to score, the stereotypical one first."""
        return self.first, self.second


@dataclass(frozen=True)
class FairnessSet:
    """A named set of fairness pairs, by the attribute they test."""

    name: str
    pairs: Mapping[str, Sequence[FairnessPair]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.pairs.values()))

    def select(self, attributes: Sequence[str]) -> FairnessSet:
        """Return the set with these attributes only; unchanged if there are none."""
        spelled = {name.lower(): name for name in self.pairs}
        short = {alias: name for alias, name in ATTRIBUTE_ALIASES.items() if name in self.pairs}
        spelled = short | spelled
        for name in attributes:
            if name.lower() not in spelled:
                known = ", ".join(self.pairs)
                raise UnknownNameError(
                    f"the set {self.name!r} has no pairs about {name!r}; it has: {known}"
                )
        wanted = [spelled[name.lower()] for name in attributes] or list(self.pairs)
        return FairnessSet(self.name, {name: self.pairs[name] for name in wanted})


@check_arguments
def read_fair_pairs(
    data: str | PathLike[str] = "", *, attributes: Sequence[str] = ()
) -> FairnessSet:
    """Read the pairs of a public set, a folder or a file; by default those of evenmatch.

    `data` is the name of the public set, a folder with one JSONL file per attribute, or one JSONL
    file of `cand_a, ref_a, cand_b, ref_b`, the stereotypical candidate first. The attribute of a
    pair is its field `attribute`, or else the name of the file. `attributes` selects some of them.
    A field `direction`, 1 or -1, says which of two groups `cand_a` is about.
    """
    given = fspath(data)
    name = Path(given).name if given else "included pairs"
    return FairnessSet(name, _read_attributes(given)).select(attributes)


@check_arguments
def make_fairness_pair(
    cand_a: str,
    ref_a: str,
    cand_b: str,
    ref_b: str,
    *,
    scores: PublishedScores | None = None,
    direction: int = 0,
) -> FairnessPair:
    """Create a fairness pair from its four texts."""
    if direction not in (-1, 0, 1):
        raise InputError(f"the direction of a fairness pair is 1, -1 or 0, got {direction!r:.40}")
    if scores is not None and not isinstance(scores, Mapping):
        raise InputError(
            f"the published scores of a fairness pair are a mapping, got {scores!r:.40}"
        )
    return FairnessPair(Pair(cand_a, (ref_a,)), Pair(cand_b, (ref_b,)), scores or {}, direction)


@check_arguments
def template_pairs(attribute: str) -> list[FairnessPair]:
    """Generate the minimal pairs of an attribute, with one neutral reference, stereotype first.

    >>> pair = template_pairs("gender")[0]
    >>> print(pair.first.candidate, pair.second.candidate, pair.first.references[0], sep="\\n")
    The carpenter told us that he had finished early.
    The carpenter told us that she had finished early.
    The carpenter told us that the carpenter had finished early.
    """
    present = (files("evenmatch.data") / "fairness" / f"{attribute}.toml").is_file()
    families = _read_toml(attribute).get("family") if present else None
    if families is None:
        known = ", ".join(ATTRIBUTES)
        raise UnknownNameError(f"there are no templates about {attribute!r}; known: {known}")
    return [pair for family in families for pair in family_pairs(family)]


def family_pairs(family: Mapping[str, Any]) -> Iterator[FairnessPair]:
    """Combine every sentence of a family with every trait, cycling through the terms."""
    traits = [(text, 0) for text in family["one"]] + [(text, 1) for text in family["other"]]
    for n, (trait, expected) in enumerate(traits):
        for k, frame in enumerate(family["frames"]):
            *groups, neutral = family["terms"][(n + k) % len(family["terms"])]
            stereotype, against = groups[expected], groups[1 - expected]
            first, second, reference = (
                fill_template(frame, group, trait) for group in (stereotype, against, neutral)
            )
            direction = -1 if expected else 1
            yield make_fairness_pair(first, reference, second, reference, direction=direction)


def fill_template(frame: str, group: str, trait: str) -> str:
    """Fill the gaps of a sentence; a neutral term may be empty.

    >>> fill_template("{group} guests {trait}.", "", "left early")
    'Guests left early.'
    """
    words = frame.replace("{group}", group).replace("{trait}", trait).split()
    text = " ".join(words)
    return text[:1].upper() + text[1:]


@dataclass(frozen=True, slots=True)
class GroupTerm:
    """A term for one group, its counterpart for another group, and a neutral term.

    `kind` says where the term counts: "word" everywhere; "noun" and "kin" where it is a noun;
    "title" before a name; "name" as a given name, case-sensitively; "adjective" where it describes
    a person. A `one_way` term does not replace its counterpart.
    """

    one: str
    other: str
    neutral: str = ""
    kind: TermKind = "word"
    one_way: bool = False
    attribute: str = ""


@check_arguments
def builtin_terms(attribute: str = "gender") -> tuple[GroupTerm, ...]:
    """Return the terms about an attribute that come with evenmatch.

    'appearance' and 'status' are short for 'physical-appearance' and 'socioeconomic'.

    >>> term = builtin_terms("gender")[0]
    >>> term.one, term.other, term.neutral
    ('he', 'she', 'the person')
    """
    return _builtin_terms(ATTRIBUTE_ALIASES.get(attribute, attribute))


@cache
def given_names() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return given names by region and gender; each region has as many of men as of women.

    Names at the same place of both lists are counterparts.

    >>> names = given_names()["arabic"]
    >>> names["men"][0], names["women"][0]
    ('Ahmed', 'Fatima')
    """
    lists = _read_toml("names")
    return {
        region: {gender: names.split() for gender, names in both.items()}
        for region, both in lists.items()
        if region != "ambiguous"
    }


@cache
def ambiguous_names() -> frozenset[str]:
    """Return the given names that are also places, months or ordinary words."""
    return frozenset(_read_toml("names")["ambiguous"]["names"].split())


@check_arguments
def read_terms(data: str, attribute: str = "gender") -> tuple[GroupTerm, ...]:
    """Read the terms of a public list, 'winobias' or 'bias-words'; they have no neutral terms.

    WinoBias covers gender only and lists each pair in both directions. bias-words covers gender,
    race and religion; a row may have several counterparts, and each is paired with the next.
    """
    if data == "winobias":
        if attribute != "gender":
            raise InputError(f"winobias has terms about gender only, not {attribute!r}")
        rows = read_records(str(find_data_set(data) / "gender_term_pairs.tsv"))
        return _unique_terms((r["male_or_first"], r["female_or_second"]) for _, r in rows)
    if data == "bias-words":
        lists = json.loads((find_data_set(data) / "bias_attribute_words.json").read_text("utf-8"))
        if attribute not in lists:
            raise UnknownNameError(f"bias-words has no {attribute!r}; it has: {', '.join(lists)}")
        return _unique_terms(
            (row[i - 1], row[i]) for row in lists[attribute] for i in range(1, len(row))
        )
    raise UnknownNameError(
        f"no list of terms is called {data!r}; known: {', '.join(PUBLIC_TERM_LISTS)}"
    )


@cache
def _builtin_terms(attribute: str) -> tuple[GroupTerm, ...]:
    every = _read_toml("terms")
    if attribute not in every:
        raise UnknownNameError(f"there are no terms about {attribute!r}; known: {', '.join(every)}")
    table = every[attribute]
    found = [
        GroupTerm(one, other, neutral, kind, key == "one_way", attribute)
        for key, kind in _TERM_TABLES.items()
        for one, other, neutral in table.get(key, ())
    ]
    for names in given_names().values() if "any_name" in table else ():
        found += [
            GroupTerm(one, other, table["any_name"], "name", attribute=attribute)
            for one, other in zip(names["men"], names["women"], strict=True)
        ]
    return tuple(found)


def _read_attributes(given: str) -> dict[str, list[FairnessPair]]:
    if not given:
        return {attribute: template_pairs(attribute) for attribute in ATTRIBUTES}
    given = canonical_name(given)
    path = find_data_set(given) if given == PUBLIC_SET else Path(given)
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.name.endswith(_SUFFIXES))
        if not files:
            raise DataError(f"the folder {path} has no file ATTRIBUTE.jsonl; expected one or more")
        return _read_files(files)
    if path.is_file():
        return _read_files([path])
    if given in {each.name for each in data_sets()}:
        raise InputError(f"the data set {given!r} has no fairness pairs; use {PUBLIC_SET!r}")
    raise DataError(
        f"there is no data set, folder or file {given!r}; give {PUBLIC_SET!r}, a folder, "
        "a JSONL file of cand_a, ref_a, cand_b, ref_b, or nothing for the pairs of evenmatch"
    )


def _read_files(paths: Sequence[Path]) -> dict[str, list[FairnessPair]]:
    found: dict[str, list[FairnessPair]] = {}
    for path in paths:
        pairs = list(_iter_pairs(path))
        if not pairs:
            raise DataError(
                f"{path} has no pairs; expected cand_a, ref_a, cand_b, ref_b on each line"
            )
        for attribute, pair in pairs:
            found.setdefault(attribute, []).append(pair)
    return found


def _iter_pairs(path: Path) -> Iterator[tuple[str, FairnessPair]]:
    named = path.name.partition(".")[0]
    for where, record in read_records(str(path)):
        for name in _TEXT_FIELDS:
            if not isinstance(record.get(name), str):
                raise InputError(
                    f"{where} has no text {name!r}; each line has cand_a, ref_a, cand_b and ref_b"
                )
        given = (record.get(name) for name in ("scores_a", "scores_b"))
        a, b = (each if isinstance(each, Mapping) else {} for each in given)
        if a.keys() != b.keys():
            raise InputError(
                f"{where} has scores of different metrics for a and b; give both or none"
            )
        scores = {metric: (float(a[metric]), float(b[metric])) for metric in a}
        direction = record.get("direction") or 0
        if direction not in (-1, 0, 1):
            raise InputError(f"{where} has the direction {direction!r:.40}; give 1, -1 or 0")
        texts = (record[name] for name in _TEXT_FIELDS)
        pair = make_fairness_pair(*texts, scores=scores, direction=int(direction))
        yield str(record.get("attribute") or named), pair


def _unique_terms(pairs: Any) -> tuple[GroupTerm, ...]:
    """Remove duplicate pairs, in either direction."""
    found: dict[frozenset[str], GroupTerm] = {}
    for one, other in pairs:
        found.setdefault(frozenset((one, other)), GroupTerm(one, other))
    return tuple(found.values())


def _read_toml(name: str) -> dict[str, Any]:
    text = (files("evenmatch.data") / "fairness" / f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)
