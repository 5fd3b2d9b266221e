"""constituents: the phrases of a phrase tree as units (Chousa & Hirao)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.types import Parse, Parser, Units
from evenmatch.units.parses import parse_all
from evenmatch.units.phrase_trees import PhraseTrees
from evenmatch.units.pieces_of_trees import Piece, all_nodes, as_units, shortened, within
from evenmatch.units.subtrees import Weight
from evenmatch.units.trees import is_leaf


@register("splitter", "constituents")
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
    weight: Weight = "uniform"
    most_words: int = 1000

    def __post_init__(self) -> None:
        check_settings(self)
        if self.most_words < 1:
            raise InputError(f"most_words must be at least 1, got {self.most_words}")

    def __call__(self, text: str) -> Units:
        """The constituents of one text."""
        return self.cut([text])[0]

    def cut(self, texts: Sequence[str]) -> list[Units]:
        """The constituents of each text; the parser sees the new ones together."""
        parses = parse_all(self.parser, [shortened(text, self.most_words) for text in texts])
        return [self._cut(t, p) for t, p in zip(texts, parses, strict=True)]

    def _cut(self, text: str, parse: Parse) -> Units:
        return as_units(text, parse, self.pieces(parse), self.weight, self.most_words)

    def pieces(self, parse: Parse) -> list[Piece]:
        """The constituents of a parse's trees, in the order of their units."""
        if not parse.phrases and parse.trees:
            raise InputError(
                "constituents are phrases, and this parser gives dependencies; "
                "put phrase_trees(base=...) around it, or use subtrees"
            )
        return within(self._every(parse), self.most_words)

    def _every(self, parse: Parse) -> Iterator[Piece]:
        for at, node in enumerate(all_nodes(parse)):
            if self.words or not is_leaf(node):
                word = parse.words[node.head]
                head = word.lower() if self.lower else word
                yield node.words, node.label if self.label == "phrase" else head, at
