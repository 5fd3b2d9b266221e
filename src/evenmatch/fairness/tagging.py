"""Tokens of a text with part-of-speech tags (Penn Treebank), by a parser or by rules.

`tokenize` takes the tags of a parse. Without a tagger, `rule_tags` derives them from closed word
classes, endings and neighbours. The word lists are in `data/fairness/senses.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from evenmatch.errors import InputError
from evenmatch.registry.parts import check_arguments
from evenmatch.types import Parse

TOKEN = re.compile(
    r"[Mm]a['’]am|[Qq]ur['’]an|[^\W\d_]+(?:-[^\W\d_]+)*|['’](?:s|re|ve|ll|d|m|t)\b|\d[\w.,]*\b|\S",
)
_LETTERS = re.compile(r"[^\W\d_]")
# After these a capital letter does not mark a name.
OPENERS = frozenset(".!?:;\"“‘'(-–—…*•[>|/")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a punctuation mark with its offsets and its part of speech."""

    text: str
    start: int
    end: int
    tag: str

    @property
    def low(self) -> str:
        """The token in lower case."""
        return self.text.lower()

    @property
    def is_word(self) -> bool:
        """Whether it begins with a letter."""
        return bool(_LETTERS.match(self.text))

    @property
    def is_noun(self) -> bool:
        """Whether it is a noun: by its tag, or as a known noun for persons."""
        return self.tag.startswith("NN") or self.low in word_lists()["persons"]


def tokenize(text: str, parse: Parse | None = None) -> list[Token]:
    """Split a text into tokens, tagged by a parse or by rules."""
    check_text(text)
    matches = list(TOKEN.finditer(text))
    if parse is not None and not isinstance(parse, Parse):
        raise InputError(f"expected a parse of the text, got {parse!r:.60}")
    if parse is None:
        tags = rule_tags([m[0] for m in matches])
    else:
        known = {start: tag for (start, _), tag in zip(parse.spans, parse.tags, strict=True)}
        tags = [_tag_of_parts(m, known) for m in matches]
    return [Token(m[0], m.start(), m.end(), tag) for m, tag in zip(matches, tags, strict=True)]


def _tag_of_parts(match: re.Match[str], known: Mapping[int, str]) -> str:
    """Return the tag of a token; of a compound with hyphens that of its last part."""
    last = match.start() + match[0].rfind("-") + 1
    tag = known.get(last, known.get(match.start(), ""))
    return tag if last == match.start() or tag.startswith("NN") else "JJ"


@check_arguments
def rule_tags(words: Sequence[str]) -> list[str]:
    """Tag words by closed classes, endings and the word before.

    >>> rule_tags(["They", "host", "a", "dinner", "."])
    ['PRP', 'VBP', 'DT', 'NN', '.']
    """
    closed, adjectives = _closed_classes(), word_lists()["adjectives"]
    persons = word_lists()["persons"]
    people = persons | word_lists()["communities"]
    tags: list[str] = []
    for at, word in enumerate(words):
        low, before = word.lower(), tags[-1] if tags else ""
        if low in closed:
            tags.append(closed[low])
        elif not _LETTERS.match(word):
            tags.append("CD" if word[0].isdigit() else ".")
        elif at and word[0].isupper() and words[at - 1] not in OPENERS:
            tags.append("NNP")
        elif before in ("MD", "TO", "PRP", "WP") or (before == "RB" and tags[-2:-1] == ["MD"]):
            tags.append(_verb_tag(low))
        elif at and words[at - 1].lower() in people and low not in people:
            tags.append("VBD")
        elif low in persons or low in word_lists()["communities"]:
            tags.append("NNS" if low.endswith("s") or low in ("people", "children") else "NN")
        elif low in adjectives:
            tags.append("JJ")
        else:
            tags.append(_ending_tag(low))
    return tags


@cache
def word_lists() -> Mapping[str, frozenset[str]]:
    """Word lists of `senses.toml`; nouns for persons include their regular plurals."""
    lists = {name: text.split() for name, text in sense_lists().items() if isinstance(text, str)}
    singular = lists["persons"]
    plural = [f"{word[:-1]}ies" for word in singular if re.search("[^aeiou]y$", word)]
    plural += [f"{word}{'es' if re.search('(s|x|ch|sh)$', word) else 's'}" for word in singular]
    return {
        name: frozenset(words) for name, words in {**lists, "persons": singular + plural}.items()
    }


@cache
def sense_lists() -> Mapping[str, Any]:
    """Return the content of `senses.toml`: word lists, fixed phrases and closed word classes."""
    return tomllib.loads((files("evenmatch.data") / "fairness" / "senses.toml").read_text("utf-8"))


def check_text(text: str) -> None:
    """Raise `InputError` unless the text is a string."""
    if not isinstance(text, str):
        raise InputError(f"expected a text, got {text!r:.60}")


@cache
def _closed_classes() -> Mapping[str, str]:
    return {word: tag for tag, words in sense_lists()["closed"].items() for word in words.split()}


def _verb_tag(low: str) -> str:
    tag = _ending_tag(low)
    return tag if tag in ("VBD", "VBG", "RB") else "VBZ" if tag == "NNS" else "VBP"


def _ending_tag(low: str) -> str:
    """Return the likeliest tag of an unknown word by its ending."""
    for ending, tag in (("ing", "VBG"), ("ed", "VBD"), ("ly", "RB"), ("s", "NNS")):
        if low.endswith(ending) and len(low) > len(ending) + 2 and not low.endswith("ss"):
            return tag
    return "NN"
