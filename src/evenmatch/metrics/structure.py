"""Structure metrics by name: align subtrees or constituents instead of tokens (Chousa & Hirao).

The five metrics differ in the tree (dependencies or constituents) and in which units may match.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from evenmatch.alignment.assignment import Greedy
from evenmatch.models.backbone import LongTextMode
from evenmatch.models.layers import Layer
from evenmatch.protocols import Parser, Similarity, Solver
from evenmatch.registry import register
from evenmatch.scoring.metric import AlignMetric
from evenmatch.similarity.vectors import Cosine, SameLabel
from evenmatch.units.constituency.converter import PhraseTrees
from evenmatch.units.parsers.spacy import Spacy
from evenmatch.units.subtrees import Constituents, Subtrees, UnitWeight
from evenmatch.vectors.transformer import Transformer

MetricFactory = Callable[..., AlignMetric]


def _dependency_metric(name: str, similarity: Similarity, about: str) -> MetricFactory:
    """Register a metric over dependency subtrees; these metrics differ only in `similarity`."""

    def make(
        model: str = "minilm",
        layer: Layer = "auto",
        parser: Parser = Spacy(),
        multiset: bool = False,
        lower: bool = False,
        weight: UnitWeight = "uniform",
        most_words: int = 1000,
        alignment: Solver = Greedy(),
        long: LongTextMode = "truncate",
        trust_remote_code: bool = False,
    ) -> AlignMetric:
        units = Subtrees(
            parser, multiset=multiset, lower=lower, weight=weight, most_words=most_words
        )
        vectors = Transformer(model, layer, long=long, trust_remote_code=trust_remote_code)
        return AlignMetric(units, vectors, similarity, alignment)

    return _register_metric(make, name, about)


def _constituent_metric(
    name: str, similarity: Similarity, label: Literal["phrase", "head"], about: str
) -> MetricFactory:
    """Register a metric over constituents; these differ only in `similarity` and `label`."""

    def make(
        model: str = "minilm",
        layer: Layer = "auto",
        parser: Parser = PhraseTrees(),
        lower: bool = False,
        weight: UnitWeight = "uniform",
        most_words: int = 1000,
        alignment: Solver = Greedy(),
        long: LongTextMode = "truncate",
        trust_remote_code: bool = False,
    ) -> AlignMetric:
        units = Constituents(parser, label, lower=lower, weight=weight, most_words=most_words)
        vectors = Transformer(model, layer, long=long, trust_remote_code=trust_remote_code)
        return AlignMetric(units, vectors, similarity, alignment)

    return _register_metric(make, name, about)


def _register_metric(make: MetricFactory, name: str, about: str) -> MetricFactory:
    make.__name__ = make.__qualname__ = name
    make.__doc__ = about
    return register("metric", name)(make)


struct_dep = _dependency_metric(
    "struct_dep",
    Cosine(),
    """Match every dependency subtree with its most similar one (Chousa & Hirao).

    `parser`, `multiset`, `lower`, `weight` and `most_words` are settings of `subtrees`. `alignment`
    may be any solver, such as lsa or emd.
    """,
)


struct_dep_head = _dependency_metric(
    "struct_dep_head",
    SameLabel(),
    "Like struct_dep, but only subtrees with the same root word can match.",
)


struct_con = _constituent_metric(
    "struct_con",
    Cosine(),
    "head",
    """Match every constituent with its most similar one (Chousa & Hirao).

    `parser`, `lower`, `weight` and `most_words` are settings of `constituents`. `alignment` may be
    any solver, such as lsa or emd.
    """,
)


struct_con_label = _constituent_metric(
    "struct_con_label",
    SameLabel(),
    "phrase",
    "Like struct_con, but only constituents with the same label can match.",
)


struct_con_head = _constituent_metric(
    "struct_con_head",
    SameLabel(),
    "head",
    "Like struct_con, but only constituents with the same head word can match.",
)
