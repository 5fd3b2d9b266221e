"""Dependency arcs of a sentence, and the changes that prepare them for conversion to phrases.

`prepare_arcs` applies them in order: remove crossing arcs, attach all conjuncts to the first one,
group the words in brackets, and move commas and other punctuation to the right phrase.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from evenmatch.units.trees import deepest_first

VERB_TAGS = frozenset("VB VBD VBG VBN VBP VBZ MD".split())
QUOTES = frozenset("\" “ ” '' `` ‘ ’ '".split())
_OPENING_PUNCTUATION = frozenset("( [ “ `` ‘".split())
_POST_MODIFIERS = frozenset("appos relcl acl npadvmod".split())


@dataclass(frozen=True, slots=True)
class Arcs:
    """The dependencies of a sentence: the head of each word; the root is its own head."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    bracketed: frozenset[int] = frozenset()  # head words of text in brackets
    # Commas that close a phrase opened by an earlier comma.
    closing_commas: frozenset[int] = frozenset()

    def dependents(self) -> list[list[int]]:
        """Return the dependents of each word, left to right."""
        found: list[list[int]] = [[] for _ in self.heads]
        for i, head in enumerate(self.heads):
            if head != i:
                found[head].append(i)
        return found

    def extents(self) -> tuple[list[int], list[int]]:
        """Return the first and the last word under each word, itself included."""
        first, last = list(range(len(self.heads))), list(range(len(self.heads)))
        for i in deepest_first(self.heads):
            head = self.heads[i]
            first[head], last[head] = min(first[head], first[i]), max(last[head], last[i])
        return first, last

    def ancestors(self, i: int) -> set[int]:
        """Return the words that word `i` depends on, directly or indirectly."""
        found: set[int] = set()
        while self.heads[i] != i:
            i = self.heads[i]
            found.add(i)
        return found

    def reattach(self, words: Iterable[int], head: int) -> Arcs:
        """Return arcs in which these words depend on `head`."""
        moved = set(words) - {head}
        return replace(
            self, heads=tuple(head if i in moved else h for i, h in enumerate(self.heads))
        )


def prepare_arcs(arcs: Arcs) -> Arcs:
    """Apply all changes that the conversion to phrases needs."""
    arcs = group_brackets(flatten_conjuncts(make_projective(arcs)))
    return lift_edge_punctuation(attach_closing_commas(make_projective(arcs)))


def make_projective(arcs: Arcs) -> Arcs:
    """Reattach words to the head of their head until the words under each word are contiguous."""
    while True:
        moved = _find_nonprojective(arcs)
        if not moved:
            return arcs
        arcs = arcs.reattach(moved, arcs.heads[arcs.heads[moved[0]]])


def flatten_conjuncts(arcs: Arcs) -> Arcs:
    """Attach conjuncts of conjuncts to the first conjunct, so that chains become lists."""
    for i in reversed(deepest_first(arcs.heads)):
        head = arcs.heads[i]
        if i > head and arcs.relations[i] == "conj" == arcs.relations[head]:
            later = [k for k in arcs.dependents()[head] if k > head]
            start = later.index(i)
            while start and arcs.relations[later[start - 1]] in ("cc", "punct"):
                start -= 1
            arcs = arcs.reattach(later[start:], arcs.heads[head])
    return arcs


def group_brackets(arcs: Arcs) -> Arcs:
    """Attach the words between two brackets, and the brackets, to one head word."""
    opened: list[int] = []
    for i, word in enumerate(arcs.words):
        if word in ("(", "["):
            opened.append(i)
        elif word in (")", "]") and opened:
            start = opened.pop()
            if not opened and i > start + 1:
                arcs = _group_bracket(arcs, start, i)
    return arcs


def attach_closing_commas(arcs: Arcs) -> Arcs:
    """Attach the comma after a post-modifier, such as an apposition, to the modified word."""
    first, last = arcs.extents()
    for i in deepest_first(arcs.heads):
        if arcs.tags[i] in VERB_TAGS or arcs.heads[i] == i:
            continue
        after = [k for k in arcs.dependents()[i] if k > i and arcs.relations[k] in _POST_MODIFIERS]
        if not after or "," not in (arcs.words[first[after[-1]] - 1], arcs.words[first[after[-1]]]):
            continue
        comma = last[after[-1]] + 1
        if comma + 1 >= len(arcs.words) or arcs.words[comma] != ",":
            continue
        if last[i] in (comma, comma - 1) and arcs.heads[comma] in arcs.ancestors(i) | {i}:
            arcs = replace(arcs.reattach([comma], i), closing_commas=arcs.closing_commas | {comma})
            last[i] = comma
    return arcs


def lift_edge_punctuation(arcs: Arcs) -> Arcs:
    """Move punctuation and conjunctions at the edge of a phrase to the enclosing phrase."""
    while True:
        first, last = arcs.extents()
        moved = [i for i in range(len(arcs.heads)) if _is_edge_token(arcs, i, first, last)]
        if not moved:
            return arcs
        heads = list(arcs.heads)
        for i in moved:
            heads[i] = arcs.heads[arcs.heads[i]]
        arcs = replace(arcs, heads=tuple(heads))


def _find_nonprojective(arcs: Arcs) -> list[int]:
    """Return a dependent that is separated from its head by words outside the subtree."""
    first, last = arcs.extents()
    below, size = arcs.dependents(), [1] * len(arcs.heads)
    for i in deepest_first(arcs.heads):
        if size[i] != last[i] - first[i] + 1:
            return _beyond_gap(i, below[i], first, last)
        if arcs.heads[i] != i:
            size[arcs.heads[i]] += size[i]
    return []


def _beyond_gap(i: int, below: Sequence[int], first: list[int], last: list[int]) -> list[int]:
    right, left = [k for k in below if k > i], [k for k in reversed(below) if k < i]
    for step, outwards, near, far in ((1, right, first, last), (-1, left, last, first)):
        edge = i
        for k in outwards:
            if near[k] != edge + step:
                return [k]
            edge = far[k]
    return []


def _group_bracket(arcs: Arcs, start: int, end: int) -> Arcs:
    depth = {i: n for n, i in enumerate(reversed(deepest_first(arcs.heads)))}
    inside = range(start + 1, end)
    roots = [k for k in inside if not start < arcs.heads[k] < end]
    whole = range(start, end + 1)
    if any(arcs.heads[k] == k for k in whole):
        return arcs
    top = min(roots, key=lambda k: depth[k])
    around = arcs.heads[top]
    # The new head must not depend on a word in the brackets: that would be a cycle.
    while {around, *arcs.ancestors(around)} & set(whole):
        around = arcs.heads[around]
    outside = [k for k in range(len(arcs.heads)) if k not in whole and arcs.heads[k] in whole]
    arcs = arcs.reattach([top, *outside], around).reattach([*roots, start, end], top)
    relations = list(arcs.relations)
    relations[start] = relations[end] = "bracket"
    if arcs.tags[top] not in VERB_TAGS and arcs.tags[top] != "IN":
        relations[top] = "aside"
    return replace(arcs, relations=tuple(relations), bracketed=arcs.bracketed | {top})


def _is_edge_token(arcs: Arcs, i: int, first: list[int], last: list[int]) -> bool:
    head = arcs.heads[i]
    if head == i or arcs.heads[head] == head:
        return False
    if arcs.relations[i] == "cc":
        return last[head] == i
    if arcs.relations[i] != "punct" or arcs.tags[i] == "HYPH":
        return False
    if last[head] == i and (i in arcs.closing_commas or arcs.words[i] in _OPENING_PUNCTUATION):
        return False
    quoted = arcs.words[first[head]] in QUOTES and arcs.words[last[head]] in QUOTES
    return i in (first[head], last[head]) and not quoted
