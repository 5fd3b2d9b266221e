"""Phrases around a verb: verb phrases nested by auxiliary, and the clauses they stand in.

Phrases around a noun, an adjective, an adverb or a preposition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenmatch.types import Tree
from evenmatch.units.constituency.arcs import QUOTES, VERB_TAGS, Arcs

SUBJECT_RELATIONS = frozenset("nsubj nsubjpass expl csubj csubjpass".split())


AUXILIARY_RELATIONS = frozenset({"aux", "auxpass"})


_CLAUSE_RELATIONS = frozenset("ROOT xcomp ccomp pcomp advcl csubj csubjpass parataxis".split())


_FRONTED_RELATIONS = frozenset("punct cc advcl prep ccomp intj npadvmod".split())


@dataclass(frozen=True, slots=True)
class VerbFrame:
    """A verb's dependents by where they go, each list left to right."""

    lead: Sequence[int]  # before the word that opens the clause
    opening: Sequence[int]  # a marker or a wh-word, and what lies between two of them
    outer: Sequence[int]  # up to the subject
    middle: Sequence[int]  # adverbs between the subject and the verb
    auxiliaries: Sequence[int]  # auxiliaries, and what lies between them
    preverbal: Sequence[int]  # between the last auxiliary and the verb
    complements: Sequence[int]  # right of the verb, before its conjuncts
    conjuncts: Sequence[int]  # conjuncts with what joins them
    after: Sequence[int]  # right of the conjuncts
    tail: Sequence[int]  # punctuation that closes the clause
    is_question: bool  # a wh-word opens the clause
    inverted: bool  # an auxiliary stands before the subject
    has_subject: bool


def build_clause(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], made: Sequence[Tree]
) -> Tree:
    """The clause, or the bare verb phrase, that a word heads."""
    frame = _make_frame(arcs, i, left, right, made)
    conjuncts = [k for k in frame.conjuncts if arcs.relations[k] == "conj"]
    of_clauses = any(_has_dependent(arcs, k, SUBJECT_RELATIONS) for k in conjuncts)
    tree = _build_verb_phrase(arcs, i, frame, made, joins=not of_clauses)
    if _is_clause(arcs, i, frame):
        label = "SQ" if frame.inverted else "S"
        tree = build_phrase(
            label, i, [*_select(made, frame.outer), *_select(made, frame.middle), tree]
        )
    if of_clauses:
        tree = build_phrase(
            "S", i, [tree, *_select(made, frame.conjuncts), *_select(made, frame.after)]
        )
    tree = _add_opening(arcs, i, frame, tree, made)
    return _append_children(tree, _select(made, frame.tail))


def _make_frame(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], made: Sequence[Tree]
) -> VerbFrame:
    opening, asks = _find_opening(arcs, left, made)
    lead = [k for k in left if opening and k < opening[0]]
    body = [k for k in left if not opening or k > opening[-1]]
    subjects = [k for k in body if arcs.relations[k] in SUBJECT_RELATIONS]
    outer, inner = _split_at_subject(arcs, body, subjects)
    last = max((k for k in inner if arcs.relations[k] in AUXILIARY_RELATIONS), default=-1)
    near = [k for k in inner if k > last]
    middle = [k for k in near if last < 0 and subjects and arcs.relations[k] in ("advmod", "punct")]
    before, joined, after = split_at_conjuncts(arcs, right)
    rest, tail = after if joined else before, list[int]()
    while (arcs.relations[i] == "ROOT" or subjects) and rest and _is_punct(arcs, rest[-1]):
        tail.insert(0, rest.pop())
    return VerbFrame(
        lead=lead,
        opening=opening,
        outer=outer,
        middle=middle,
        auxiliaries=[k for k in inner if k <= last],
        preverbal=[k for k in near if k not in middle],
        complements=before,
        conjuncts=joined,
        after=after,
        tail=tail,
        is_question=asks,
        inverted=any(arcs.relations[k] in AUXILIARY_RELATIONS for k in outer) and bool(subjects),
        has_subject=bool(subjects),
    )


def _find_opening(arcs: Arcs, left: Sequence[int], made: Sequence[Tree]) -> tuple[list[int], bool]:
    """What opens a subordinate clause, from its first word to its last; and whether by asking."""
    markers = [k for k in left if arcs.relations[k] == "mark"]
    asking = [k for k in left if _starts_with_wh(arcs, made[k]) and k not in markers][:1]
    opening = markers or asking
    if not opening:
        return [], False
    return [k for k in left if opening[0] <= k <= opening[-1]], not markers


def _starts_with_wh(arcs: Arcs, tree: Tree) -> bool:
    return tree.label.startswith("WH") or arcs.tags[tree.words[0]] in WH_TAGS


def _split_at_subject(
    arcs: Arcs, body: Sequence[int], subjects: Sequence[int]
) -> tuple[list[int], list[int]]:
    """What stands outside the verb phrase, and what inside."""
    if subjects:
        return [k for k in body if k <= subjects[-1]], [k for k in body if k > subjects[-1]]
    helping = [k for k in body if arcs.relations[k] in AUXILIARY_RELATIONS]
    if helping:
        return [k for k in body if k < helping[0]], [k for k in body if k >= helping[0]]
    last = max((k for k in body if arcs.relations[k] in _FRONTED_RELATIONS), default=-1)
    return [k for k in body if k <= last], [k for k in body if k > last]


def _build_verb_phrase(
    arcs: Arcs, i: int, frame: VerbFrame, made: Sequence[Tree], *, joins: bool
) -> Tree:
    """The verb with its complements, inside one verb phrase for each auxiliary."""
    label = "VP" if arcs.tags[i] in VERB_TAGS else phrase_label(arcs, i)
    parts = [*_select(made, frame.preverbal), made[i], *_select(made, frame.complements)]
    joined, after = (frame.conjuncts, frame.after) if joins else ((), ())
    conjuncts = [k for k in joined if arcs.relations[k] == "conj"]
    if any(_has_dependent(arcs, k, AUXILIARY_RELATIONS) for k in conjuncts):
        tree = _nest_auxiliaries(arcs, i, frame, build_phrase(label, i, parts), made)
        return build_phrase("VP", i, [tree, *_select(made, joined), *_select(made, after)])
    if not joined:
        return _nest_auxiliaries(arcs, i, frame, build_phrase(label, i, parts), made)
    own = (
        parts
        if not frame.complements and _are_single_verbs(joined, made)
        else [build_phrase(label, i, parts)]
    )
    tree = build_phrase(
        label, i, [*own, *_flatten_last_conjunct(joined, made, own is parts), *_select(made, after)]
    )
    return _nest_auxiliaries(arcs, i, frame, tree, made)


def _are_single_verbs(joined: Sequence[int], made: Sequence[Tree]) -> bool:
    """Whether verbs are joined, not phrases: one word each, but for the last one's complements."""
    last = made[joined[-1]]
    flat = last.label == "VP" and last.children[0].words == (joined[-1],)
    return all(len(made[k].words) == 1 for k in joined[:-1]) and (flat or len(last.words) == 1)


def _flatten_last_conjunct(joined: Sequence[int], made: Sequence[Tree], bare: bool) -> list[Tree]:
    trees = _select(made, joined)
    return [*trees[:-1], *(trees[-1].children or trees[-1:])] if bare else trees


def _nest_auxiliaries(
    arcs: Arcs, i: int, frame: VerbFrame, tree: Tree, made: Sequence[Tree]
) -> Tree:
    """The phrase inside one more for each auxiliary before it, from the nearest outwards."""
    group: list[Tree] = []
    for k in reversed(frame.auxiliaries):
        group.insert(0, made[k])
        if arcs.relations[k] in AUXILIARY_RELATIONS:
            tree, group = build_phrase("VP", i, [*group, tree]), []
    return tree


def _is_clause(arcs: Arcs, i: int, frame: VerbFrame) -> bool:
    """Whether the verb phrase stands in a clause of its own: 'made on his blog' does not."""
    relation = arcs.relations[i]
    if (
        frame.has_subject
        or frame.outer
        or frame.tail
        or frame.opening
        or relation in _CLAUSE_RELATIONS
    ):
        return True
    return relation in ("acl", "relcl") and any(arcs.tags[k] == "TO" for k in frame.auxiliaries)


def _add_opening(arcs: Arcs, i: int, frame: VerbFrame, tree: Tree, made: Sequence[Tree]) -> Tree:
    """The clause with the marker or wh-word before it, or the place of one left out."""
    if frame.opening:
        label = "SBARQ" if frame.is_question and frame.inverted else "SBAR"
        return build_phrase(
            label, i, [*_select(made, frame.lead), *_select(made, frame.opening), tree]
        )
    bare = arcs.relations[i] == "relcl" or _is_reported_clause(arcs, i, frame, tree)
    return build_phrase("SBAR", i, [tree]) if bare and tree.label == "S" else tree


def _is_reported_clause(arcs: Arcs, i: int, frame: VerbFrame, tree: Tree) -> bool:
    """Whether 'that' could stand before the clause: they said [that] it rains."""
    if arcs.relations[i] != "ccomp" or i < arcs.heads[i] or not frame.has_subject:
        return False
    to = any(arcs.tags[k] == "TO" for k in frame.auxiliaries)
    return not to and arcs.words[tree.words[0] - 1] not in QUOTES


def _has_dependent(arcs: Arcs, i: int, relations: frozenset[str]) -> bool:
    return any(head == i and arcs.relations[k] in relations for k, head in enumerate(arcs.heads))


def _is_punct(arcs: Arcs, i: int) -> bool:
    return arcs.relations[i] == "punct"


def _select(made: Sequence[Tree], places: Sequence[int]) -> list[Tree]:
    return [made[k] for k in places]


def _append_children(tree: Tree, more: Sequence[Tree]) -> Tree:
    return build_phrase(tree.label, tree.head, [*tree.children, *more]) if more else tree


WH_TAGS = frozenset("WDT WP WRB WP$".split())


_TAG_LABELS = {
    "RB": "ADVP",
    "RBR": "ADVP",
    "RBS": "ADVP",
    "WRB": "WHADVP",
    "WP": "WHNP",
    "WDT": "WHNP",
    "UH": "INTJ",
    "CC": "CONJP",
}


_NOUN_RELATIONS = frozenset("nsubj nsubjpass dobj pobj attr".split())


_MODIFIER_LABELS = frozenset("ADJP ADVP QP INTJ CONJP WHADVP".split())


def join_parts(label: str, head: int, parts: Sequence[Tree]) -> Tree:
    """The parts as one phrase; a single part stays what it is."""
    return parts[0] if len(parts) == 1 else build_phrase(label, head, parts)


def build_phrase(label: str, head: int, parts: Sequence[Tree]) -> Tree:
    """A phrase over its parts, however few."""
    words = tuple(sorted(w for part in parts for w in part.words))
    return Tree(label, head, words, tuple(parts))


def split_at_conjuncts(arcs: Arcs, right: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Dependents to the right: before the conjuncts, those with what joins them, and after."""
    at = [n for n, k in enumerate(right) if arcs.relations[k] == "conj"]
    if not at:
        return list(right), [], []
    start, end = at[0], at[-1] + 1
    while start and arcs.relations[right[start - 1]] in ("cc", "punct", "preconj"):
        start -= 1
    return list(right[:start]), list(right[start:end]), list(right[end:])


def phrase_label(arcs: Arcs, i: int) -> str:
    """The label of a phrase by its head's tag and place."""
    tag, relation = arcs.tags[i], arcs.relations[i]
    if tag.startswith("JJ"):
        return "NP" if relation in _NOUN_RELATIONS else "ADJP"
    if tag in _TAG_LABELS:
        return _TAG_LABELS[tag]
    if tag == "CD" and relation in ("nummod", "quantmod", "compound"):
        return "QP"
    return "ADJP" if relation == "amod" else "NP"


def build_prepositional(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], made: Sequence[Tree]
) -> Tree:
    """A preposition with what it governs."""
    before, joined, after = split_at_conjuncts(arcs, right)
    asks = any(arcs.tags[made[k].head] in WH_TAGS and len(made[k].words) == 1 for k in before)
    label = "WHPP" if asks or any(made[k].label == "WHNP" for k in before) else "PP"
    tree = join_parts(label, i, [*(made[k] for k in left), made[i], *(made[k] for k in before)])
    return _add_conjuncts(label, i, tree, [made[k] for k in joined], [made[k] for k in after])


def build_nominal(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], made: Sequence[Tree]
) -> Tree:
    """A noun with its modifiers: a core, what follows it, and what it is joined with."""
    label = phrase_label(arcs, i)
    if label in _MODIFIER_LABELS:
        return _build_modifier(arcs, i, left, right, made)
    genitive = [made[k] for k in right if arcs.relations[k] == "case"]
    rest = [k for k in right if arcs.relations[k] != "case"]
    tight = 0
    while tight < len(rest) and _belongs_to_core(arcs, rest[tight]):
        tight += 1
    before, joined, after = split_at_conjuncts(arcs, rest[tight:])
    opening = [made[k] for k in left[:1] if arcs.relations[k] == "cc"]
    own = [part for k in left[len(opening) :] for part in _flatten_modifier(arcs, k, made[k])]
    core = [*own, made[i], *(made[k] for k in rest[:tight])]
    if own and not before and all(not made[k].children for k in joined):
        core += [made[k] for k in joined]
        joined = []
    tree = join_parts(label, i, [*core, *genitive])
    tree = join_parts(label, i, [tree, *(made[k] for k in before)])
    tree = _add_conjuncts(label, i, tree, [made[k] for k in joined], [made[k] for k in after])
    return join_parts(label, i, [*opening, *(tree.children or [tree])]) if opening else tree


def _belongs_to_core(arcs: Arcs, k: int) -> bool:
    """Whether a word after the noun belongs to its core: Article 5, May 3."""
    if arcs.relations[k] in ("nummod", "compound", "quantmod"):
        return True
    loose = ("appos", "conj", "npadvmod", "aside")
    return arcs.tags[k] in ("CD", "HYPH") and arcs.relations[k] not in loose


def _flatten_modifier(arcs: Arcs, k: int, tree: Tree) -> list[Tree]:
    """A modifier before the noun; a noun among them makes no phrase of its own."""
    is_noun = arcs.relations[k] in ("compound", "nmod") and tree.label == "NP"
    return list(tree.children) if is_noun and tree.children else [tree]


def _build_modifier(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], made: Sequence[Tree]
) -> Tree:
    before, joined, after = split_at_conjuncts(arcs, right)
    label = phrase_label(arcs, i)
    if label == "ADJP" and any(arcs.tags[k] == "WRB" for k in left):
        label = "WHADJP"
    tree = join_parts(label, i, [*(made[k] for k in left), made[i], *(made[k] for k in before)])
    return _add_conjuncts(label, i, tree, [made[k] for k in joined], [made[k] for k in after])


def _add_conjuncts(
    label: str, head: int, tree: Tree, joined: Sequence[Tree], after: Sequence[Tree]
) -> Tree:
    """A phrase with its conjuncts, and outside those what follows them all."""
    if joined:
        tree = build_phrase(label, head, [tree, *joined])
    return join_parts(label, head, [tree, *after])


def is_verbal(arcs: Arcs, i: int) -> bool:
    """Whether a word heads a clause, not a modifier or a helping verb."""
    modifying = ("amod", "compound", "nmod", "poss", "aux", "auxpass", "prep")
    return arcs.tags[i] in VERB_TAGS and arcs.relations[i] not in modifying
