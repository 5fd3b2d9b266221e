"""Structure alignment by name: subtrees or phrases aligned, not words (Chousa & Hirao)."""

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
    """A metric over pieces of dependency trees, which names differ only by their filter."""

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
    """A metric over phrases, which names differ only by their filter."""

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
    """Pieces of dependency trees, each with its most similar partner (Chousa & Hirao).

    `parser`, `multiset`, `lower`, `weight` and `most_words` are those of `subtrees`; `alignment`
    may be any solver, such as lsa or emd.
    """,
)


struct_dep_head = _dependency_metric(
    "struct_dep_head",
    SameLabel(),
    "As struct_dep, where only pieces with the same topmost word are similar at all.",
)


struct_con = _constituent_metric(
    "struct_con",
    Cosine(),
    "head",
    """Phrases, each with its most similar partner (Chousa & Hirao).

    `parser`, `lower`, `weight` and `most_words` are those of `constituents`; `alignment` may be
    any solver, such as lsa or emd.
    """,
)


struct_con_label = _constituent_metric(
    "struct_con_label",
    SameLabel(),
    "phrase",
    "As struct_con, where only phrases with the same label are similar at all.",
)


struct_con_head = _constituent_metric(
    "struct_con_head",
    SameLabel(),
    "head",
    "As struct_con, where only phrases with the same head word are similar at all.",
)
