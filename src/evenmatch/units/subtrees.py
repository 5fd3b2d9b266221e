"""Units from parse trees: subtrees of dependency trees, constituents of phrase trees.

The unit definitions are those of Chousa and Hirao (2025). Both splitters parse a text through the
parse cache, take groups of words from each tree, and label every unit, so that the similarity
`same_label` can compare only units with equal labels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, Protocol, TypeAlias

from evenmatch.errors import InputError
from evenmatch.protocols import Parser
from evenmatch.registry import check_settings, register
from evenmatch.types import NO_FLAGS, Parse, Tree, Units
from evenmatch.units.constituency.converter import PhraseTrees
from evenmatch.units.parsers.cache import parse_cached
from evenmatch.units.parsers.spacy import Spacy
from evenmatch.units.trees import iter_nodes

UnitWeight = Literal["uniform", "log_length"]
_WORD = re.compile(r"\S+")
# The words, the label, and the index of the top node in `all_nodes` of the parse.
TreeUnit: TypeAlias = tuple[tuple[int, ...], str, int]


class TreeSplitter(Protocol):
    """A splitter into units of parse trees; `tree_units` defines them."""

    parser: Parser
    weight: UnitWeight
    most_words: int

    def __post_init__(self) -> None:
        check_settings(self)
        if self.most_words < 1:
            raise InputError(f"most_words must be at least 1, got {self.most_words}")

    def tree_units(self, parse: Parse, /) -> list[TreeUnit]: ...

    def __call__(self, text: str) -> Units:
        """Split one text."""
        return self.split_batch([text])[0]

    def split_batch(self, texts: Sequence[str]) -> list[Units]:
        """Split several texts; those not in the parse cache are parsed as one batch."""
        parses = parse_cached(self.parser, [truncate_text(text, self.most_words) for text in texts])
        return [self._make_units(t, p) for t, p in zip(texts, parses, strict=True)]

    def _make_units(self, text: str, parse: Parse) -> Units:
        units, most_words = self.tree_units(parse), self.most_words
        truncated = len(parse.words) > most_words or len(parse.text.rstrip()) < len(text.rstrip())
        groups = tuple(group for group, _, _ in units)
        return Units(
            text,
            parse.words[:most_words],
            parse.spans[:most_words],
            groups,
            tuple(label for _, label, _ in units),
            weights=_log_length_weights(groups) if self.weight == "log_length" else (),
            flags=frozenset({"truncated"}) if truncated else NO_FLAGS,
        )


@register("units", "subtrees")
@dataclass(frozen=True)
class Subtrees(TreeSplitter):
    """Parts of dependency trees: words, paths down to a leaf, words with all their descendants.

    `nodes`, `paths` and `descendants` select these three kinds. Each unit is labelled with its
    topmost word. Equal sets of words with the same topmost word are one unit, unless `multiset`.
    With `weight` 'log_length', a unit counts by the logarithm of its number of words (appendix B).
    The units of all sentences are joined. Only the first `most_words` words of a text are used,
    and a longer text is flagged 'truncated'.
    """

    parser: Parser = Spacy()
    nodes: bool = True
    paths: bool = True
    descendants: bool = True
    multiset: bool = False
    lower: bool = False
    weight: UnitWeight = "uniform"
    most_words: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.nodes or self.paths or self.descendants):
            raise InputError("subtrees needs at least one of nodes, paths and descendants")

    def tree_units(self, parse: Parse) -> list[TreeUnit]:
        """Return the units of the trees of a parse, in order."""
        if parse.is_constituency:
            raise InputError(
                "subtrees needs dependency trees, and this parser returns phrase trees; "
                "use constituents, or a dependency parser"
            )
        found: list[TreeUnit] = []
        words = [word.lower() for word in parse.words] if self.lower else parse.words
        paths = _paths(all_nodes(parse)) if self.paths else {}
        for at, node in sorted(enumerate(all_nodes(parse)), key=lambda pair: pair[1].head):
            groups: list[tuple[int, ...]] = [(node.head,)] if self.nodes else []
            groups += paths.get(node.head, [])
            groups += [node.words] if self.descendants else []
            unique = groups if self.multiset else dict.fromkeys(groups)
            found += [(group, words[node.head], at) for group in unique]
        return drop_beyond(found, self.most_words)


@register("units", "constituents")
@dataclass(frozen=True)
class Constituents(TreeSplitter):
    """Every constituent of a phrase tree, including single words.

    `label` selects the label of a unit: the phrase label (the tag of a single word), or the head
    word by the rules of Collins. Without `words`, single words are left out. `lower`, `weight` and
    `most_words` are as in `subtrees`.
    """

    parser: Parser = PhraseTrees()
    label: Literal["phrase", "head"] = "head"
    words: bool = True
    lower: bool = False
    weight: UnitWeight = "uniform"
    most_words: int = 1000

    def tree_units(self, parse: Parse) -> list[TreeUnit]:
        """Return the constituents of the trees of a parse, in order."""
        if not parse.is_constituency and parse.trees:
            raise InputError(
                "constituents needs phrase trees, and this parser returns dependency trees; "
                "wrap it in phrase_trees(base=...), or use subtrees"
            )
        words = [word.lower() for word in parse.words] if self.lower else parse.words
        found = [
            (node.words, node.label if self.label == "phrase" else words[node.head], at)
            for at, node in enumerate(all_nodes(parse))
            if self.words or node.children
        ]
        return drop_beyond(found, self.most_words)


def drop_beyond(units: Iterable[TreeUnit], most_words: int) -> list[TreeUnit]:
    """Drop units that contain a word after the first `most_words`."""
    return [unit for unit in units if unit[0][-1] < most_words]


def truncate_text(text: str, most_words: int) -> str:
    """Cut a text after `most_words` words; a parser finds at least as many as spaces separate."""
    if len(text) <= most_words:
        return text
    last = list(islice(_WORD.finditer(text), most_words))[-1:]
    return text[: last[0].end()] if last else ""


def all_nodes(parse: Parse) -> list[Tree]:
    """Return the nodes of all trees of a parse, sentence by sentence."""
    return [node for tree in parse.trees for node in iter_nodes(tree)]


def _paths(nodes: Sequence[Tree]) -> dict[int, list[tuple[int, ...]]]:
    """Return the paths from each word down to every leaf below it, each in text order."""
    down: dict[int, list[tuple[int, ...]]] = {}
    for node in reversed(nodes):
        below = [path for child in node.children for path in down[child.head]]
        down[node.head] = [(node.head, *path) for path in below] or [(node.head,)]
    return {head: [tuple(sorted(path)) for path in paths] for head, paths in down.items()}


def _log_length_weights(groups: Sequence[Sequence[int]]) -> tuple[float, ...]:
    """Return log(number of words) of each unit (eq. 6), or equal weights if all have one word."""
    weights = tuple(math.log(len(group)) for group in groups)
    return weights if any(weights) else ()
