"""Phrases around a noun, an adjective, an adverb or a preposition."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.types import Tree
from evenmatch.units.phrase_arcs import VERBS, Arcs

WH_WORDS = frozenset("WDT WP WRB WP$".split())
_BY_TAG = {
    "RB": "ADVP",
    "RBR": "ADVP",
    "RBS": "ADVP",
    "WRB": "WHADVP",
    "WP": "WHNP",
    "WDT": "WHNP",
    "UH": "INTJ",
    "CC": "CONJP",
}
_NOUN_PLACES = frozenset("nsubj nsubjpass dobj pobj attr".split())
_MODIFIERS = frozenset("ADJP ADVP QP INTJ CONJP WHADVP".split())


def grown(label: str, head: int, parts: Sequence[Tree]) -> Tree:
    """The parts as one phrase; a single part stays what it is."""
    return parts[0] if len(parts) == 1 else over(label, head, parts)


def over(label: str, head: int, parts: Sequence[Tree]) -> Tree:
    """A phrase over its parts, however few."""
    words = tuple(sorted(w for part in parts for w in part.words))
    return Tree(label, head, words, tuple(parts))


def around_conjuncts(arcs: Arcs, right: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Dependents to the right: before the conjuncts, those with what joins them, and after."""
    at = [n for n, k in enumerate(right) if arcs.relations[k] == "conj"]
    if not at:
        return list(right), [], []
    start, end = at[0], at[-1] + 1
    while start and arcs.relations[right[start - 1]] in ("cc", "punct", "preconj"):
        start -= 1
    return list(right[:start]), list(right[start:end]), list(right[end:])


def label_of(arcs: Arcs, i: int) -> str:
    """The label of a phrase by its head's tag and place."""
    tag, relation = arcs.tags[i], arcs.relations[i]
    if tag.startswith("JJ"):
        return "NP" if relation in _NOUN_PLACES else "ADJP"
    if tag in _BY_TAG:
        return _BY_TAG[tag]
    if tag == "CD" and relation in ("nummod", "quantmod", "compound"):
        return "QP"
    return "ADJP" if relation == "amod" else "NP"


def prepositional(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], made: Sequence[Tree]
) -> Tree:
    """A preposition with what it governs."""
    before, joined, after = around_conjuncts(arcs, right)
    asks = any(arcs.tags[made[k].head] in WH_WORDS and len(made[k].words) == 1 for k in before)
    label = "WHPP" if asks or any(made[k].label == "WHNP" for k in before) else "PP"
    tree = grown(label, i, [*(made[k] for k in left), made[i], *(made[k] for k in before)])
    return _joined(label, i, tree, [made[k] for k in joined], [made[k] for k in after])


def nominal(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], made: Sequence[Tree]
) -> Tree:
    """A noun with its modifiers: a core, what follows it, and what it is joined with."""
    label = label_of(arcs, i)
    if label in _MODIFIERS:
        return _modifier(arcs, i, left, right, made)
    genitive = [made[k] for k in right if arcs.relations[k] == "case"]
    rest = [k for k in right if arcs.relations[k] != "case"]
    tight = 0
    while tight < len(rest) and _is_tight(arcs, rest[tight]):
        tight += 1
    before, joined, after = around_conjuncts(arcs, rest[tight:])
    opening = [made[k] for k in left[:1] if arcs.relations[k] == "cc"]
    own = [part for k in left[len(opening) :] for part in _dissolved(arcs, k, made[k])]
    core = [*own, made[i], *(made[k] for k in rest[:tight])]
    if own and not before and all(not made[k].children for k in joined):
        core += [made[k] for k in joined]
        joined = []
    tree = grown(label, i, [*core, *genitive])
    tree = grown(label, i, [tree, *(made[k] for k in before)])
    tree = _joined(label, i, tree, [made[k] for k in joined], [made[k] for k in after])
    return grown(label, i, [*opening, *(tree.children or [tree])]) if opening else tree


def _is_tight(arcs: Arcs, k: int) -> bool:
    """Whether a word after the noun belongs to its core: Article 5, May 3."""
    if arcs.relations[k] in ("nummod", "compound", "quantmod"):
        return True
    loose = ("appos", "conj", "npadvmod", "aside")
    return arcs.tags[k] in ("CD", "HYPH") and arcs.relations[k] not in loose


def _dissolved(arcs: Arcs, k: int, tree: Tree) -> list[Tree]:
    """A modifier before the noun; a noun among them makes no phrase of its own."""
    is_noun = arcs.relations[k] in ("compound", "nmod") and tree.label == "NP"
    return list(tree.children) if is_noun and tree.children else [tree]


def _modifier(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], made: Sequence[Tree]
) -> Tree:
    before, joined, after = around_conjuncts(arcs, right)
    label = label_of(arcs, i)
    if label == "ADJP" and any(arcs.tags[k] == "WRB" for k in left):
        label = "WHADJP"
    tree = grown(label, i, [*(made[k] for k in left), made[i], *(made[k] for k in before)])
    return _joined(label, i, tree, [made[k] for k in joined], [made[k] for k in after])


def _joined(
    label: str, head: int, tree: Tree, joined: Sequence[Tree], after: Sequence[Tree]
) -> Tree:
    """A phrase with its conjuncts, and outside those what follows them all."""
    if joined:
        tree = over(label, head, [tree, *joined])
    return grown(label, head, [tree, *after])


def is_verbal(arcs: Arcs, i: int) -> bool:
    """Whether a word heads a clause, not a modifier or a helping verb."""
    modifying = ("amod", "compound", "nmod", "poss", "aux", "auxpass", "prep")
    return arcs.tags[i] in VERBS and arcs.relations[i] not in modifying
