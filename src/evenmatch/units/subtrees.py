"""subtrees: pieces of a dependency tree as units (Chousa & Hirao).

constituents: the phrases of a phrase tree as units (Chousa & Hirao).

Pieces of trees as units: what subtrees and constituents have in common.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias

from evenmatch.errors import InputError
from evenmatch.protocols import Parser
from evenmatch.registry import check_settings, register
from evenmatch.types import NO_FLAGS, Parse, Tree, Units
from evenmatch.units.constituency.converter import PhraseTrees
from evenmatch.units.parsers.cache import parse_cached
from evenmatch.units.parsers.spacy import Spacy
from evenmatch.units.trees import is_leaf, iter_nodes

UnitWeight = Literal["uniform", "log_length"]


@register("units", "subtrees")
@dataclass(frozen=True)
class Subtrees:
    """Pieces of dependency trees: words, paths down to a leaf, words with all below them.

    Each is labelled with its topmost word. Equal sets of words under one top are one unit, unless
    `multiset`. `weight` counts a unit for the logarithm of its number of words (appendix B).
    Sentences are parsed one by one and their pieces put together; only the first `most_words`
    words of a text are looked at, and a longer one is flagged 'truncated'.
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
        check_settings(self)
        if not (self.nodes or self.paths or self.descendants):
            raise InputError("subtrees needs one of nodes, paths and descendants")
        if self.most_words < 1:
            raise InputError(f"most_words must be at least 1, got {self.most_words}")

    def __call__(self, text: str) -> Units:
        """The pieces of one text."""
        return self.split_batch([text])[0]

    def split_batch(self, texts: Sequence[str]) -> list[Units]:
        """The pieces of each text; the parser sees the new ones together."""
        parses = parse_cached(self.parser, [truncate_text(text, self.most_words) for text in texts])
        return [self._split(t, p) for t, p in zip(texts, parses, strict=True)]

    def _split(self, text: str, parse: Parse) -> Units:
        pieces = self.tree_units(parse)
        return make_units(text, parse, pieces, self.weight, self.most_words)

    def tree_units(self, parse: Parse) -> list[TreeUnit]:
        """The pieces of a parse's trees, in the order of their units."""
        if parse.is_constituency:
            raise InputError(
                "subtrees are pieces of dependency trees, and this parser gives phrases; "
                "use constituents, or a parser of dependencies"
            )
        found: list[TreeUnit] = []
        for tree in parse.trees:
            # every word is a node, so there are as many nodes before as words
            found += self._units_of_tree(tree, parse, tree.words[0])
        return drop_beyond(found, self.most_words)

    def _units_of_tree(self, tree: Tree, parse: Parse, first: int) -> Iterator[TreeUnit]:
        paths = _paths(tree) if self.paths else {}
        for at, node in sorted(enumerate(iter_nodes(tree), first), key=lambda pair: pair[1].head):
            groups: list[tuple[int, ...]] = [(node.head,)] if self.nodes else []
            groups += paths.get(node.head, [])
            groups += [node.words] if self.descendants else []
            word = parse.words[node.head]
            label = word.lower() if self.lower else word
            for group in groups if self.multiset else dict.fromkeys(groups):
                yield group, label, at


def _paths(tree: Tree) -> dict[int, list[tuple[int, ...]]]:
    """The paths from each word down to every leaf below it, each in the order of the text."""
    down: dict[int, list[tuple[int, ...]]] = {}
    for node in reversed(list(iter_nodes(tree))):
        below = [path for child in node.children for path in down[child.head]]
        down[node.head] = [(node.head, *path) for path in below] or [(node.head,)]
    return {head: [tuple(sorted(path)) for path in own] for head, own in down.items()}


@register("units", "constituents")
@dataclass(frozen=True)
class Constituents:
    """Every constituent of a phrase tree, words with their tags among them.

    `label` is what a unit is labelled with: the phrase's label (a word's tag), or its head word by
    the rules of Collins. `words=False` leaves single words with their tags out. The other settings
    are those of `subtrees`.
    """

    parser: Parser = PhraseTrees()
    label: Literal["phrase", "head"] = "head"
    words: bool = True
    lower: bool = False
    weight: UnitWeight = "uniform"
    most_words: int = 1000

    def __post_init__(self) -> None:
        check_settings(self)
        if self.most_words < 1:
            raise InputError(f"most_words must be at least 1, got {self.most_words}")

    def __call__(self, text: str) -> Units:
        """The constituents of one text."""
        return self.split_batch([text])[0]

    def split_batch(self, texts: Sequence[str]) -> list[Units]:
        """The constituents of each text; the parser sees the new ones together."""
        parses = parse_cached(self.parser, [truncate_text(text, self.most_words) for text in texts])
        return [self._split(t, p) for t, p in zip(texts, parses, strict=True)]

    def _split(self, text: str, parse: Parse) -> Units:
        return make_units(text, parse, self.tree_units(parse), self.weight, self.most_words)

    def tree_units(self, parse: Parse) -> list[TreeUnit]:
        """The constituents of a parse's trees, in the order of their units."""
        if not parse.is_constituency and parse.trees:
            raise InputError(
                "constituents are phrases, and this parser gives dependencies; "
                "put phrase_trees(base=...) around it, or use subtrees"
            )
        return drop_beyond(self._all_units(parse), self.most_words)

    def _all_units(self, parse: Parse) -> Iterator[TreeUnit]:
        for at, node in enumerate(all_nodes(parse)):
            if self.words or not is_leaf(node):
                word = parse.words[node.head]
                head = word.lower() if self.lower else word
                yield node.words, node.label if self.label == "phrase" else head, at


# The words, the label, and which node of the parse's trees (see `all_nodes`) is on top.
TreeUnit: TypeAlias = tuple[tuple[int, ...], str, int]


_WORD = re.compile(r"\S+")


_TRUNCATED = frozenset({"truncated"})


def truncate_text(text: str, most_words: int) -> str:
    """As much of the text as can hold so many words: a parser cuts no fewer than blanks do."""
    if len(text) <= most_words:
        return text
    last = list(islice(_WORD.finditer(text), most_words))[-1:]
    return text[: last[0].end()] if last else ""


def all_nodes(parse: Parse) -> list[Tree]:
    """The nodes of all trees of a parse, sentence by sentence."""
    return [node for tree in parse.trees for node in iter_nodes(tree)]


def drop_beyond(pieces: Iterable[TreeUnit], most_words: int) -> list[TreeUnit]:
    """The pieces that do not reach beyond so many words."""
    return [piece for piece in pieces if piece[0][-1] < most_words]


def make_units(
    text: str, parse: Parse, pieces: Sequence[TreeUnit], weight: str, most_words: int
) -> Units:
    """The pieces as units of the text."""
    cut_short = len(parse.words) > most_words or len(parse.text.rstrip()) < len(text.rstrip())
    groups = tuple(group for group, _, _ in pieces)
    return Units(
        text,
        parse.words[:most_words],
        parse.spans[:most_words],
        groups,
        tuple(label for _, label, _ in pieces),
        weights=_log_length_weights(groups) if weight == "log_length" else (),
        flags=_TRUNCATED if cut_short else NO_FLAGS,
    )


def _log_length_weights(groups: Sequence[Sequence[int]]) -> tuple[float, ...]:
    """log(words) for each unit (eq. 6); where all are single words, they count alike."""
    weights = tuple(math.log(len(group)) for group in groups)
    return weights if any(weights) else ()
