"""phrase_trees: convert dependency trees to constituency trees by rules.

Read `PhraseTrees` first, then `convert_dependencies`: arcs are prepared (`arcs.py`), a phrase is
built around each word from the leaves up (`phrases.py`), and head words are assigned.
"""

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
from evenmatch.units.trees import deepest_first, iter_nodes, shift_words

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
    """Penn Treebank phrases converted from English dependencies with ClearNLP labels.

    `base` is the dependency parser. Verb phrases exclude the subject and nest by auxiliary, noun
    phrases have a core, clauses begin with a marker or wh-word, and conjuncts are siblings.
    docs/results/structure.md reports the agreement with manually annotated trees.
    """

    base: Parser = Spacy()

    def __call__(self, texts: Sequence[str]) -> list[Parse]:
        """Return one parse per text, with a phrase tree for each sentence."""
        return [self._convert(parse) for parse in parse_cached(self.base, texts)]

    def identity(self) -> str:
        """Return the version of the conversion and the identity of the base parser."""
        return f"phrase_trees 1 of {self.base.identity()}"

    def _convert(self, parse: Parse) -> Parse:
        if parse.is_constituency:
            raise InputError(
                "phrase_trees converts dependency trees, and its base parser returns phrase trees"
            )
        trees = tuple(_convert_tree(parse, tree) for tree in parse.trees)
        return dataclasses.replace(parse, trees=trees, is_constituency=True)


def _convert_tree(parse: Parse, tree: Tree) -> Tree:
    start, size = tree.words[0], len(tree.words)
    heads, relations = [tree.head - start] * size, ["ROOT"] * size
    for node in iter_nodes(tree):
        for child in node.children:
            heads[child.head - start] = node.head - start
            relations[child.head - start] = child.label
    span = slice(start, start + size)
    converted = convert_dependencies(parse.words[span], parse.tags[span], heads, relations)
    return shift_words(converted, start)


def convert_dependencies(
    words: Sequence[str], tags: Sequence[str], heads: Sequence[int], relations: Sequence[str]
) -> Tree:
    """Return the phrase tree of one sentence given the head of each word; the root is its own."""
    arcs = prepare_arcs(Arcs(tuple(words), tuple(tags), tuple(heads), tuple(relations)))
    below = arcs.dependents()
    trees = [Tree(tag, i, (i,)) for i, tag in enumerate(arcs.tags)]
    root = 0
    for root in deepest_first(arcs.heads):
        trees[root] = _build_headed_phrase(arcs, trees[root], [trees[k] for k in below[root]])
    return _assign_heads(trees[root])


def _build_headed_phrase(arcs: Arcs, word: Tree, dependents: Sequence[Tree]) -> Tree:
    i = word.head
    brackets = [t for t in dependents if arcs.relations[t.head] == "bracket"]
    others = [t for t in dependents if arcs.relations[t.head] != "bracket"]
    left, right = [t for t in others if t.head < i], [t for t in others if t.head > i]
    tree = _build_by_head(arcs, word, left, right)
    if i not in arcs.bracketed:
        return tree
    return build_phrase("PRN", i, [brackets[0], tree, *brackets[1:]])


def _build_by_head(arcs: Arcs, word: Tree, left: Sequence[Tree], right: Sequence[Tree]) -> Tree:
    tag, relation = arcs.tags[word.head], arcs.relations[word.head]
    opens = SUBJECT_RELATIONS | {"aux", "mark"}
    if is_verbal(arcs, word.head) or any(arcs.relations[t.head] in opens for t in left):
        return build_clause(arcs, word, left, right)
    if relation == "oprd" and tag != "IN":
        return build_phrase("S", word.head, [build_nominal(arcs, word, left, right)])
    if not left and not right:
        return word
    if relation in ("prep", "agent", "dative") or tag in ("IN", "TO"):
        return build_prepositional(arcs, word, left, right)
    return build_nominal(arcs, word, left, right)


def _assign_heads(tree: Tree) -> Tree:
    """Assign head words by the rules of Collins, which differ from those of the dependencies.

    A single word in the position of a phrase becomes that phrase, as in the Penn Treebank:
    (VP (VBD came) (RB home)) becomes (VP (VBD came) (ADVP (RB home))).
    """
    trees: dict[int, Tree] = {}
    for node in reversed(list(iter_nodes(tree))):
        children = tuple(
            _wrap_lone_word(trees[id(child)], node.label)
            if not child.children
            else trees[id(child)]
            for child in node.children
        )
        head = children[head_child(node.label, children)].head if children else node.head
        trees[id(node)] = Tree(node.label, head, node.words, children)
    return trees[id(tree)]


def _wrap_lone_word(leaf: Tree, parent_label: str) -> Tree:
    label = _LONE_WORD_LABELS.get(leaf.label) if parent_label in _CLAUSAL_LABELS else None
    return Tree(label, leaf.head, leaf.words, (leaf,)) if label else leaf
