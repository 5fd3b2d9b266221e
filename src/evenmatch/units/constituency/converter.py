"""phrase_trees: constituents derived from dependencies, where no parser of constituents is."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from evenmatch.errors import InputError
from evenmatch.protocols import Parser
from evenmatch.registry import register
from evenmatch.types import Parse, Tree
from evenmatch.units.constituency.arcs import Arcs, prepare_arcs
from evenmatch.units.constituency.phrases import (
    AUXILIARY_RELATIONS,
    SUBJECT_RELATIONS,
    build_clause,
    build_nominal,
    build_phrase,
    build_prepositional,
    is_verbal,
)
from evenmatch.units.head_rules import head_child
from evenmatch.units.parsers.cache import parse_cached
from evenmatch.units.parsers.spacy import Spacy
from evenmatch.units.trees import Sentence, deepest_first, iter_nodes, shift_words

_CLAUSAL_LABELS = frozenset("S SQ SINV SBAR SBARQ VP PP".split())


_LONE_WORD_LABELS = {
    **dict.fromkeys("NN NNS NNP NNPS PRP EX CD DT".split(), "NP"),
    **dict.fromkeys("JJ JJR JJS".split(), "ADJP"),
    **dict.fromkeys("RB RBR RBS".split(), "ADVP"),
    **dict.fromkeys("WDT WP".split(), "WHNP"),
    "WRB": "WHADVP",
    "RP": "PRT",
    "UH": "INTJ",
}


@register("parser", "phrase_trees")
@dataclass(frozen=True)
class PhraseTrees:
    """Penn Treebank phrases made from another parser's English dependencies (ClearNLP labels).

    Verb phrases leave out their subject and nest by auxiliary, noun phrases have a core, clauses
    open by marker or wh-word, conjuncts stand side by side. docs/results/structure.md says how
    close this comes to trees drawn by people.
    """

    base: Parser = Spacy()

    def __call__(self, texts: Sequence[str]) -> list[Parse]:
        """One parse per text, with a phrase tree for each sentence."""
        return [self._convert(parse) for parse in parse_cached(self.base, texts)]

    def identity(self) -> str:
        """The parser underneath, and the version of the derivation."""
        return f"phrase_trees 1 of {self.base.identity()}"

    def _convert(self, parse: Parse) -> Parse:
        if parse.is_constituency:
            raise InputError("phrase_trees derives from dependencies; its base gives phrases")
        trees = tuple(_convert_tree(parse, tree) for tree in parse.trees)
        return dataclasses.replace(parse, trees=trees, is_constituency=True)


def _convert_tree(parse: Parse, tree: Tree) -> Tree:
    start = tree.words[0]
    within = slice(start, start + len(tree.words))
    here = Sentence(parse.words[within], parse.tags[within], shift_words(tree, -start))
    return shift_words(convert_sentence(here), start)


def convert_sentence(sentence: Sentence) -> Tree:
    """The phrase tree of a sentence of dependencies."""
    heads = [sentence.tree.head] * len(sentence.words)
    relations = [""] * len(sentence.words)
    for node in iter_nodes(sentence.tree):
        relations[node.head] = node.label
        for child in node.children:
            heads[child.head] = node.head
    relations[sentence.tree.head] = "ROOT"
    return convert_dependencies(sentence.words, sentence.tags, heads, relations)


def convert_dependencies(
    words: Sequence[str], tags: Sequence[str], heads: Sequence[int], relations: Sequence[str]
) -> Tree:
    """The phrase tree of one sentence; the root is its own head."""
    arcs = prepare_arcs(Arcs(tuple(words), tuple(tags), tuple(heads), tuple(relations)))
    below = arcs.dependents()
    made = [Tree(tag, i, (i,)) for i, tag in enumerate(arcs.tags)]
    root = 0
    for root in deepest_first(arcs.heads):
        made[root] = _build_headed_phrase(arcs, root, below[root], made)
    return _assign_heads(made[root])


def _build_headed_phrase(arcs: Arcs, i: int, below: Sequence[int], made: Sequence[Tree]) -> Tree:
    brackets = [made[k] for k in below if arcs.relations[k] == "bracket"]
    left = [k for k in below if k < i and arcs.relations[k] != "bracket"]
    right = [k for k in below if k > i and arcs.relations[k] != "bracket"]
    tree = _build_by_head(arcs, i, left, right, made)
    if i not in arcs.bracketed:
        return tree
    return build_phrase("PRN", i, [brackets[0], tree, *brackets[1:]])


def _build_by_head(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], made: Sequence[Tree]
) -> Tree:
    opens = SUBJECT_RELATIONS | AUXILIARY_RELATIONS - {"auxpass"} | {"mark"}
    if is_verbal(arcs, i) or any(arcs.relations[k] in opens for k in left):
        return build_clause(arcs, i, left, right, made)
    if arcs.relations[i] == "oprd" and arcs.tags[i] != "IN":
        return build_phrase("S", i, [build_nominal(arcs, i, left, right, made)])
    if not left and not right:
        return made[i]
    if arcs.relations[i] in ("prep", "agent", "dative") or arcs.tags[i] in ("IN", "TO"):
        return build_prepositional(arcs, i, left, right, made)
    return build_nominal(arcs, i, left, right, made)


def _assign_heads(tree: Tree) -> Tree:
    """The tree with heads by the rules of Collins, which differ from the dependencies' own.

    A word that fills a phrase's place alone becomes that phrase: (VP (VBD came) (RB home)) has an
    adverb phrase in it, as the Penn Treebank draws it.
    """
    made: dict[int, Tree] = {}
    for node in reversed(list(iter_nodes(tree))):
        children = tuple(
            _wrap_lone_word(made[id(child)], node.label) if not child.children else made[id(child)]
            for child in node.children
        )
        head = children[head_child(node.label, children)].head if children else node.head
        made[id(node)] = Tree(node.label, head, node.words, children)
    return made[id(tree)]


def _wrap_lone_word(leaf: Tree, around: str) -> Tree:
    label = _LONE_WORD_LABELS.get(leaf.label) if around in _CLAUSAL_LABELS else None
    return Tree(label, leaf.head, leaf.words, (leaf,)) if label else leaf
