"""Structure alignment by name: subtrees or phrases aligned, not words (Chousa & Hirao)."""

from __future__ import annotations

from typing import Literal

from evenmatch.alignment.assign import Greedy
from evenmatch.registry import register
from evenmatch.scoring.metric import AlignMetric
from evenmatch.similarity.cosine import Cosine, SameLabel
from evenmatch.types import Parser, Similarity, Solver, Splitter
from evenmatch.units.constituents import Constituents
from evenmatch.units.parser_spacy import Spacy
from evenmatch.units.phrase_trees import PhraseTrees
from evenmatch.units.subtrees import Subtrees, Weight
from evenmatch.vectors.layers import Layer
from evenmatch.vectors.pretrained import Long
from evenmatch.vectors.transformer import Transformer


@register("metric", "struct_dep")
def struct_dep(
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
    """Pieces of dependency trees, each with its most similar partner (Chousa & Hirao).

    `parser`, `multiset`, `lower`, `weight` and `most_words` are those of `subtrees`; `alignment`
    may be any solver, such as lsa or emd.
    """
    units = Subtrees(parser, multiset=multiset, lower=lower, weight=weight, most_words=most_words)
    return _structure(units, Cosine(), alignment, model, layer, long, trust_remote_code)


@register("metric", "struct_dep_head")
def struct_dep_head(
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
    """As struct_dep, where only pieces with the same topmost word are similar at all."""
    units = Subtrees(parser, multiset=multiset, lower=lower, weight=weight, most_words=most_words)
    return _structure(units, SameLabel(), alignment, model, layer, long, trust_remote_code)


@register("metric", "struct_con")
def struct_con(
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
    """Phrases, each with its most similar partner (Chousa & Hirao).

    `parser`, `lower`, `weight` and `most_words` are those of `constituents`; `alignment` may be
    any solver, such as lsa or emd.
    """
    units = _phrases("head", parser, lower, weight, most_words)
    return _structure(units, Cosine(), alignment, model, layer, long, trust_remote_code)


@register("metric", "struct_con_label")
def struct_con_label(
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
    """As struct_con, where only phrases with the same label are similar at all."""
    units = _phrases("phrase", parser, lower, weight, most_words)
    return _structure(units, SameLabel(), alignment, model, layer, long, trust_remote_code)


@register("metric", "struct_con_head")
def struct_con_head(
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
    """As struct_con, where only phrases with the same head word are similar at all."""
    units = _phrases("head", parser, lower, weight, most_words)
    return _structure(units, SameLabel(), alignment, model, layer, long, trust_remote_code)


def _phrases(
    label: Literal["phrase", "head"], parser: Parser, lower: bool, weight: Weight, most_words: int
) -> Constituents:
    return Constituents(parser, label, lower=lower, weight=weight, most_words=most_words)


def _structure(
    units: Splitter,
    similarity: Similarity,
    alignment: Solver,
    model: str,
    layer: Layer,
    long: Long,
    trust_remote_code: bool,
) -> AlignMetric:
    vectors = Transformer(model, layer, long=long, trust_remote_code=trust_remote_code)
    return AlignMetric(units, vectors, similarity, alignment)
