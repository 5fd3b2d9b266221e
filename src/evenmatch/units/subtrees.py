"""subtrees: pieces of a dependency tree as units (Chousa & Hirao)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.types import Parse, Parser, Tree, Units
from evenmatch.units.parser_spacy import Spacy
from evenmatch.units.parses import parse_all
from evenmatch.units.pieces_of_trees import Piece, as_units, shortened, within
from evenmatch.units.trees import nodes

Weight = Literal["uniform", "log_length"]


@register("splitter", "subtrees")
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
    weight: Weight = "uniform"
    most_words: int = 1000

    def __post_init__(self) -> None:
        check_settings(self)
        if not (self.nodes or self.paths or self.descendants):
            raise InputError("subtrees needs one of nodes, paths and descendants")
        if self.most_words < 1:
            raise InputError(f"most_words must be at least 1, got {self.most_words}")

    def __call__(self, text: str) -> Units:
        """The pieces of one text."""
        return self.cut([text])[0]

    def cut(self, texts: Sequence[str]) -> list[Units]:
        """The pieces of each text; the parser sees the new ones together."""
        parses = parse_all(self.parser, [shortened(text, self.most_words) for text in texts])
        return [self._cut(t, p) for t, p in zip(texts, parses, strict=True)]

    def _cut(self, text: str, parse: Parse) -> Units:
        pieces = self.pieces(parse)
        return as_units(text, parse, pieces, self.weight, self.most_words)

    def pieces(self, parse: Parse) -> list[Piece]:
        """The pieces of a parse's trees, in the order of their units."""
        if parse.phrases:
            raise InputError(
                "subtrees are pieces of dependency trees, and this parser gives phrases; "
                "use constituents, or a parser of dependencies"
            )
        found: list[Piece] = []
        for tree in parse.trees:
            # every word is a node, so there are as many nodes before as words
            found += self._of_tree(tree, parse, tree.words[0])
        return within(found, self.most_words)

    def _of_tree(self, tree: Tree, parse: Parse, first: int) -> Iterator[Piece]:
        paths = _paths(tree) if self.paths else {}
        for at, node in sorted(enumerate(nodes(tree), first), key=lambda pair: pair[1].head):
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
    for node in reversed(list(nodes(tree))):
        below = [path for child in node.children for path in down[child.head]]
        down[node.head] = [(node.head, *path) for path in below] or [(node.head,)]
    return {head: [tuple(sorted(path)) for path in own] for head, own in down.items()}
