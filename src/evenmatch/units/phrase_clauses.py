"""Phrases around a verb: verb phrases nested by auxiliary, and the clauses they stand in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenmatch.types import Tree
from evenmatch.units.phrase_arcs import QUOTES, VERBS, Arcs
from evenmatch.units.phrase_nominals import WH_WORDS, around_conjuncts, label_of, over

SUBJECTS = frozenset("nsubj nsubjpass expl csubj csubjpass".split())
AUXILIARIES = frozenset({"aux", "auxpass"})
_CLAUSES = frozenset("ROOT xcomp ccomp pcomp advcl csubj csubjpass parataxis".split())
_FRONTED = frozenset("punct cc advcl prep ccomp intj npadvmod".split())


@dataclass(frozen=True, slots=True)
class Frame:
    """A verb's dependents by where they go, each list left to right."""

    lead: Sequence[int]  # before the word that opens the clause
    opening: Sequence[int]  # a marker or a wh-word, and what lies between two of them
    outer: Sequence[int]  # up to the subject
    middle: Sequence[int]  # adverbs between the subject and the verb
    helping: Sequence[int]  # auxiliaries, and what lies between them
    near: Sequence[int]  # between the last auxiliary and the verb
    before: Sequence[int]  # right of the verb, before its conjuncts
    joined: Sequence[int]  # conjuncts with what joins them
    after: Sequence[int]  # right of the conjuncts
    tail: Sequence[int]  # punctuation that closes the clause
    asks: bool  # a wh-word opens the clause
    inverted: bool  # an auxiliary stands before the subject
    has_subject: bool


def clause(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], made: Sequence[Tree]
) -> Tree:
    """The clause, or the bare verb phrase, that a word heads."""
    frame = _frame(arcs, i, left, right, made)
    conjuncts = [k for k in frame.joined if arcs.relations[k] == "conj"]
    of_clauses = any(_has(arcs, k, SUBJECTS) for k in conjuncts)
    tree = _verb_phrase(arcs, i, frame, made, joins=not of_clauses)
    if _is_clause(arcs, i, frame):
        label = "SQ" if frame.inverted else "S"
        tree = over(label, i, [*_at(made, frame.outer), *_at(made, frame.middle), tree])
    if of_clauses:
        tree = over("S", i, [tree, *_at(made, frame.joined), *_at(made, frame.after)])
    tree = _opened(arcs, i, frame, tree, made)
    return _longer(tree, _at(made, frame.tail))


def _frame(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], made: Sequence[Tree]
) -> Frame:
    opening, asks = _opening(arcs, left, made)
    lead = [k for k in left if opening and k < opening[0]]
    body = [k for k in left if not opening or k > opening[-1]]
    subjects = [k for k in body if arcs.relations[k] in SUBJECTS]
    outer, inner = _around_subject(arcs, body, subjects)
    last = max((k for k in inner if arcs.relations[k] in AUXILIARIES), default=-1)
    near = [k for k in inner if k > last]
    middle = [k for k in near if last < 0 and subjects and arcs.relations[k] in ("advmod", "punct")]
    before, joined, after = around_conjuncts(arcs, right)
    rest, tail = after if joined else before, list[int]()
    while (arcs.relations[i] == "ROOT" or subjects) and rest and _is_punct(arcs, rest[-1]):
        tail.insert(0, rest.pop())
    return Frame(
        lead=lead,
        opening=opening,
        outer=outer,
        middle=middle,
        helping=[k for k in inner if k <= last],
        near=[k for k in near if k not in middle],
        before=before,
        joined=joined,
        after=after,
        tail=tail,
        asks=asks,
        inverted=any(arcs.relations[k] in AUXILIARIES for k in outer) and bool(subjects),
        has_subject=bool(subjects),
    )


def _opening(arcs: Arcs, left: Sequence[int], made: Sequence[Tree]) -> tuple[list[int], bool]:
    """What opens a subordinate clause, from its first word to its last; and whether by asking."""
    markers = [k for k in left if arcs.relations[k] == "mark"]
    asking = [k for k in left if _is_asking(arcs, made[k]) and k not in markers][:1]
    opening = markers or asking
    if not opening:
        return [], False
    return [k for k in left if opening[0] <= k <= opening[-1]], not markers


def _is_asking(arcs: Arcs, tree: Tree) -> bool:
    return tree.label.startswith("WH") or arcs.tags[tree.words[0]] in WH_WORDS


def _around_subject(
    arcs: Arcs, body: Sequence[int], subjects: Sequence[int]
) -> tuple[list[int], list[int]]:
    """What stands outside the verb phrase, and what inside."""
    if subjects:
        return [k for k in body if k <= subjects[-1]], [k for k in body if k > subjects[-1]]
    helping = [k for k in body if arcs.relations[k] in AUXILIARIES]
    if helping:
        return [k for k in body if k < helping[0]], [k for k in body if k >= helping[0]]
    last = max((k for k in body if arcs.relations[k] in _FRONTED), default=-1)
    return [k for k in body if k <= last], [k for k in body if k > last]


def _verb_phrase(arcs: Arcs, i: int, frame: Frame, made: Sequence[Tree], *, joins: bool) -> Tree:
    """The verb with its complements, inside one verb phrase for each auxiliary."""
    label = "VP" if arcs.tags[i] in VERBS else label_of(arcs, i)
    parts = [*_at(made, frame.near), made[i], *_at(made, frame.before)]
    joined, after = (frame.joined, frame.after) if joins else ((), ())
    conjuncts = [k for k in joined if arcs.relations[k] == "conj"]
    if any(_has(arcs, k, AUXILIARIES) for k in conjuncts):
        tree = _helped(arcs, i, frame, over(label, i, parts), made)
        return over("VP", i, [tree, *_at(made, joined), *_at(made, after)])
    if not joined:
        return _helped(arcs, i, frame, over(label, i, parts), made)
    own = parts if not frame.before and _are_bare(joined, made) else [over(label, i, parts)]
    tree = over(label, i, [*own, *_flat(joined, made, own is parts), *_at(made, after)])
    return _helped(arcs, i, frame, tree, made)


def _are_bare(joined: Sequence[int], made: Sequence[Tree]) -> bool:
    """Whether verbs are joined, not phrases: one word each, but for the last one's complements."""
    last = made[joined[-1]]
    flat = last.label == "VP" and last.children[0].words == (joined[-1],)
    return all(len(made[k].words) == 1 for k in joined[:-1]) and (flat or len(last.words) == 1)


def _flat(joined: Sequence[int], made: Sequence[Tree], bare: bool) -> list[Tree]:
    trees = _at(made, joined)
    return [*trees[:-1], *(trees[-1].children or trees[-1:])] if bare else trees


def _helped(arcs: Arcs, i: int, frame: Frame, tree: Tree, made: Sequence[Tree]) -> Tree:
    """The phrase inside one more for each auxiliary before it, from the nearest outwards."""
    group: list[Tree] = []
    for k in reversed(frame.helping):
        group.insert(0, made[k])
        if arcs.relations[k] in AUXILIARIES:
            tree, group = over("VP", i, [*group, tree]), []
    return tree


def _is_clause(arcs: Arcs, i: int, frame: Frame) -> bool:
    """Whether the verb phrase stands in a clause of its own: 'made on his blog' does not."""
    relation = arcs.relations[i]
    if frame.has_subject or frame.outer or frame.tail or frame.opening or relation in _CLAUSES:
        return True
    return relation in ("acl", "relcl") and any(arcs.tags[k] == "TO" for k in frame.helping)


def _opened(arcs: Arcs, i: int, frame: Frame, tree: Tree, made: Sequence[Tree]) -> Tree:
    """The clause with the marker or wh-word before it, or the place of one left out."""
    if frame.opening:
        label = "SBARQ" if frame.asks and frame.inverted else "SBAR"
        return over(label, i, [*_at(made, frame.lead), *_at(made, frame.opening), tree])
    bare = arcs.relations[i] == "relcl" or _is_reported(arcs, i, frame, tree)
    return over("SBAR", i, [tree]) if bare and tree.label == "S" else tree


def _is_reported(arcs: Arcs, i: int, frame: Frame, tree: Tree) -> bool:
    """Whether 'that' could stand before the clause: they said [that] it rains."""
    if arcs.relations[i] != "ccomp" or i < arcs.heads[i] or not frame.has_subject:
        return False
    to = any(arcs.tags[k] == "TO" for k in frame.helping)
    return not to and arcs.words[tree.words[0] - 1] not in QUOTES


def _has(arcs: Arcs, i: int, relations: frozenset[str]) -> bool:
    return any(head == i and arcs.relations[k] in relations for k, head in enumerate(arcs.heads))


def _is_punct(arcs: Arcs, i: int) -> bool:
    return arcs.relations[i] == "punct"


def _at(made: Sequence[Tree], places: Sequence[int]) -> list[Tree]:
    return [made[k] for k in places]


def _longer(tree: Tree, more: Sequence[Tree]) -> Tree:
    return over(tree.label, tree.head, [*tree.children, *more]) if more else tree
