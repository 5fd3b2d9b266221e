"""Structure alignment by name: subtrees or phrases aligned, not words (Chousa & Hirao)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from evenmatch.alignment.assign import Greedy
from evenmatch.registry import register
from evenmatch.scoring.metric import AlignMetric
from evenmatch.similarity.cosine import Cosine, SameLabel
from evenmatch.types import Parser, Similarity, Solver
from evenmatch.units.constituents import Constituents
from evenmatch.units.parser_spacy import Spacy
from evenmatch.units.phrase_trees import PhraseTrees
from evenmatch.units.subtrees import Subtrees, Weight
from evenmatch.vectors.layers import Layer
from evenmatch.vectors.pretrained import Long
from evenmatch.vectors.transformer import Transformer

Maker = Callable[..., AlignMetric]


def _of_dependencies(name: str, similarity: Similarity, about: str) -> Maker:
    """A metric over pieces of dependency trees, which names differ only by their filter."""

    def make(
        model: str = "minilm",
        layer: Layer = "auto",
        parser: Parser = Spacy(),
        multiset: bool = False,
        lower: bool = False,
        weight: Weight = "uniform",
        most_words: int = 1000,
        alignment: Solver = Greedy(),
        long: Long = "truncate",
        trust_remote_code: bool = False,
    ) -> AlignMetric:
        units = Subtrees(
            parser, multiset=multiset, lower=lower, weight=weight, most_words=most_words
        )
        vectors = Transformer(model, layer, long=long, trust_remote_code=trust_remote_code)
        return AlignMetric(units, vectors, similarity, alignment)

    return _named(make, name, about)


def _of_phrases(
    name: str, similarity: Similarity, label: Literal["phrase", "head"], about: str
) -> Maker:
    """A metric over phrases, which names differ only by their filter."""

    def make(
        model: str = "minilm",
        layer: Layer = "auto",
        parser: Parser = PhraseTrees(),
        lower: bool = False,
        weight: Weight = "uniform",
        most_words: int = 1000,
        alignment: Solver = Greedy(),
        long: Long = "truncate",
        trust_remote_code: bool = False,
    ) -> AlignMetric:
        units = Constituents(parser, label, lower=lower, weight=weight, most_words=most_words)
        vectors = Transformer(model, layer, long=long, trust_remote_code=trust_remote_code)
        return AlignMetric(units, vectors, similarity, alignment)

    return _named(make, name, about)


def _named(make: Maker, name: str, about: str) -> Maker:
    make.__name__ = make.__qualname__ = name
    make.__doc__ = about
    return register("metric", name)(make)


struct_dep = _of_dependencies(
    "struct_dep",
    Cosine(),
    """Pieces of dependency trees, each with its most similar partner (Chousa & Hirao).

    `parser`, `multiset`, `lower`, `weight` and `most_words` are those of `subtrees`; `alignment`
    may be any solver, such as lsa or emd.
    """,
)
struct_dep_head = _of_dependencies(
    "struct_dep_head",
    SameLabel(),
    "As struct_dep, where only pieces with the same topmost word are similar at all.",
)
struct_con = _of_phrases(
    "struct_con",
    Cosine(),
    "head",
    """Phrases, each with its most similar partner (Chousa & Hirao).

    `parser`, `lower`, `weight` and `most_words` are those of `constituents`; `alignment` may be
    any solver, such as lsa or emd.
    """,
)
struct_con_label = _of_phrases(
    "struct_con_label",
    SameLabel(),
    "phrase",
    "As struct_con, where only phrases with the same label are similar at all.",
)
struct_con_head = _of_phrases(
    "struct_con_head",
    SameLabel(),
    "head",
    "As struct_con, where only phrases with the same head word are similar at all.",
)
