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
    start = tree.words[0]
    span = slice(start, start + len(tree.words))
    sentence = Sentence(parse.words[span], parse.tags[span], shift_words(tree, -start))
    return shift_words(convert_sentence(sentence), start)


def convert_sentence(sentence: Sentence) -> Tree:
    """Return the phrase tree of a sentence with a dependency tree."""
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
    """Return the phrase tree of one sentence given the head of each word; the root is its own."""
    arcs = prepare_arcs(Arcs(tuple(words), tuple(tags), tuple(heads), tuple(relations)))
    below = arcs.dependents()
    trees = [Tree(tag, i, (i,)) for i, tag in enumerate(arcs.tags)]
    root = 0
    for root in deepest_first(arcs.heads):
        trees[root] = _build_headed_phrase(arcs, root, below[root], trees)
    return _assign_heads(trees[root])


def _build_headed_phrase(arcs: Arcs, i: int, below: Sequence[int], trees: Sequence[Tree]) -> Tree:
    brackets = [trees[k] for k in below if arcs.relations[k] == "bracket"]
    left = [k for k in below if k < i and arcs.relations[k] != "bracket"]
    right = [k for k in below if k > i and arcs.relations[k] != "bracket"]
    tree = _build_by_head(arcs, i, left, right, trees)
    if i not in arcs.bracketed:
        return tree
    return build_phrase("PRN", i, [brackets[0], tree, *brackets[1:]])


def _build_by_head(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], trees: Sequence[Tree]
) -> Tree:
    opens = SUBJECT_RELATIONS | AUXILIARY_RELATIONS - {"auxpass"} | {"mark"}
    if is_verbal(arcs, i) or any(arcs.relations[k] in opens for k in left):
        return build_clause(arcs, i, left, right, trees)
    if arcs.relations[i] == "oprd" and arcs.tags[i] != "IN":
        return build_phrase("S", i, [build_nominal(arcs, i, left, right, trees)])
    if not left and not right:
        return trees[i]
    if arcs.relations[i] in ("prep", "agent", "dative") or arcs.tags[i] in ("IN", "TO"):
        return build_prepositional(arcs, i, left, right, trees)
    return build_nominal(arcs, i, left, right, trees)


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
