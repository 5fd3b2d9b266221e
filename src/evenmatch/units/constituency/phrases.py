"""Build the phrase around a word: clauses around verbs, and nominal and prepositional phrases.

Each `build_*` function takes the arcs of a sentence, a head word `i`, its dependents to the left
and right, and the trees already built for all words below it. Read `build_clause` first: it sorts
the dependents of a verb into a `VerbFrame` and assembles verb phrase, clause and opening.
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
WH_TAGS = frozenset("WDT WP WRB WP$".split())
_NOUN_RELATIONS = frozenset("nsubj nsubjpass dobj pobj attr".split())
_MODIFIER_LABELS = frozenset("ADJP ADVP QP INTJ CONJP WHADVP".split())

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


def build_clause(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], trees: Sequence[Tree]
) -> Tree:
    """Return the clause, or the verb phrase without a clause, headed by a word."""
    frame = _make_frame(arcs, i, left, right, trees)
    conjuncts = [k for k in frame.conjuncts if arcs.relations[k] == "conj"]
    of_clauses = any(_has_dependent(arcs, k, SUBJECT_RELATIONS) for k in conjuncts)
    tree = _build_verb_phrase(arcs, i, frame, trees, joins=not of_clauses)
    if _is_clause(arcs, i, frame):
        label = "SQ" if frame.inverted else "S"
        tree = build_phrase(
            label, i, [*_select(trees, frame.outer), *_select(trees, frame.middle), tree]
        )
    if of_clauses:
        tree = build_phrase(
            "S", i, [tree, *_select(trees, frame.conjuncts), *_select(trees, frame.after)]
        )
    tree = _add_opening(arcs, i, frame, tree, trees)
    return _append_children(tree, _select(trees, frame.tail))


def build_nominal(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], trees: Sequence[Tree]
) -> Tree:
    """Return a noun phrase: the core, then post-modifiers, then conjuncts."""
    label = phrase_label(arcs, i)
    if label in _MODIFIER_LABELS:
        return _build_modifier(arcs, i, left, right, trees)
    genitive = [trees[k] for k in right if arcs.relations[k] == "case"]
    rest = [k for k in right if arcs.relations[k] != "case"]
    core_size = 0
    while core_size < len(rest) and _belongs_to_core(arcs, rest[core_size]):
        core_size += 1
    before, joined, after = split_at_conjuncts(arcs, rest[core_size:])
    opening = [trees[k] for k in left[:1] if arcs.relations[k] == "cc"]
    modifiers = [
        part for k in left[len(opening) :] for part in _flatten_modifier(arcs, k, trees[k])
    ]
    core = [*modifiers, trees[i], *_select(trees, rest[:core_size])]
    if modifiers and not before and all(not trees[k].children for k in joined):
        core += _select(trees, joined)
        joined = []
    tree = join_parts(label, i, [*core, *genitive])
    tree = join_parts(label, i, [tree, *_select(trees, before)])
    tree = _add_conjuncts(label, i, tree, _select(trees, joined), _select(trees, after))
    return join_parts(label, i, [*opening, *(tree.children or [tree])]) if opening else tree


def build_prepositional(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], trees: Sequence[Tree]
) -> Tree:
    """Return a preposition with its object."""
    before, joined, after = split_at_conjuncts(arcs, right)
    has_wh_word = any(
        arcs.tags[trees[k].head] in WH_TAGS and len(trees[k].words) == 1 for k in before
    )
    label = "WHPP" if has_wh_word or any(trees[k].label == "WHNP" for k in before) else "PP"
    tree = join_parts(label, i, [*_select(trees, left), trees[i], *_select(trees, before)])
    return _add_conjuncts(label, i, tree, _select(trees, joined), _select(trees, after))


def build_phrase(label: str, head: int, parts: Sequence[Tree]) -> Tree:
    """Return a phrase with these parts, also for a single part."""
    words = tuple(sorted(w for part in parts for w in part.words))
    return Tree(label, head, words, tuple(parts))


def is_verbal(arcs: Arcs, i: int) -> bool:
    """Whether a word is a verb that heads a clause, not a modifier or an auxiliary."""
    modifying = ("amod", "compound", "nmod", "poss", "aux", "auxpass", "prep")
    return arcs.tags[i] in VERB_TAGS and arcs.relations[i] not in modifying


@dataclass(frozen=True, slots=True)
class VerbFrame:
    """The dependents of a verb by their position in the clause, each list left to right."""

    lead: Sequence[int]  # before the word that opens the clause
    opening: Sequence[int]  # a marker or a wh-word, or all words from the first to the last of them
    outer: Sequence[int]  # up to the subject
    middle: Sequence[int]  # adverbs between the subject and the verb
    auxiliaries: Sequence[int]  # auxiliaries, and the words between them
    preverbal: Sequence[int]  # between the last auxiliary and the verb
    complements: Sequence[int]  # right of the verb, before its conjuncts
    conjuncts: Sequence[int]  # conjuncts with conjunctions and punctuation between them
    after: Sequence[int]  # right of the conjuncts
    tail: Sequence[int]  # punctuation that closes the clause
    is_question: bool  # a wh-word opens the clause
    inverted: bool  # an auxiliary precedes the subject
    has_subject: bool


def _make_frame(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], trees: Sequence[Tree]
) -> VerbFrame:
    opening, is_question = _find_opening(arcs, left, trees)
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
        is_question=is_question,
        inverted=any(arcs.relations[k] in AUXILIARY_RELATIONS for k in outer) and bool(subjects),
        has_subject=bool(subjects),
    )


def _find_opening(arcs: Arcs, left: Sequence[int], trees: Sequence[Tree]) -> tuple[list[int], bool]:
    """Return the words that open a subordinate clause, and whether by a wh-word, not a marker."""
    markers = [k for k in left if arcs.relations[k] == "mark"]
    wh_words = [k for k in left if _starts_with_wh(arcs, trees[k]) and k not in markers][:1]
    opening = markers or wh_words
    if not opening:
        return [], False
    return [k for k in left if opening[0] <= k <= opening[-1]], not markers


def _starts_with_wh(arcs: Arcs, tree: Tree) -> bool:
    return tree.label.startswith("WH") or arcs.tags[tree.words[0]] in WH_TAGS


def _split_at_subject(
    arcs: Arcs, body: Sequence[int], subjects: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Split dependents into those outside and those inside the verb phrase."""
    if subjects:
        return [k for k in body if k <= subjects[-1]], [k for k in body if k > subjects[-1]]
    auxiliaries = [k for k in body if arcs.relations[k] in AUXILIARY_RELATIONS]
    if auxiliaries:
        start = auxiliaries[0]
        return [k for k in body if k < start], [k for k in body if k >= start]
    last = max((k for k in body if arcs.relations[k] in _FRONTED_RELATIONS), default=-1)
    return [k for k in body if k <= last], [k for k in body if k > last]


def _build_verb_phrase(
    arcs: Arcs, i: int, frame: VerbFrame, trees: Sequence[Tree], *, joins: bool
) -> Tree:
    """Return the verb with its complements, nested in one verb phrase for each auxiliary."""
    label = "VP" if arcs.tags[i] in VERB_TAGS else phrase_label(arcs, i)
    parts = [*_select(trees, frame.preverbal), trees[i], *_select(trees, frame.complements)]
    joined, after = (frame.conjuncts, frame.after) if joins else ((), ())
    conjuncts = [k for k in joined if arcs.relations[k] == "conj"]
    if any(_has_dependent(arcs, k, AUXILIARY_RELATIONS) for k in conjuncts):
        tree = _nest_auxiliaries(arcs, i, frame, build_phrase(label, i, parts), trees)
        return build_phrase("VP", i, [tree, *_select(trees, joined), *_select(trees, after)])
    if not joined:
        return _nest_auxiliaries(arcs, i, frame, build_phrase(label, i, parts), trees)
    first = (
        parts
        if not frame.complements and _are_single_verbs(joined, trees)
        else [build_phrase(label, i, parts)]
    )
    tree = build_phrase(
        label,
        i,
        [*first, *_flatten_last_conjunct(joined, trees, first is parts), *_select(trees, after)],
    )
    return _nest_auxiliaries(arcs, i, frame, tree, trees)


def _are_single_verbs(joined: Sequence[int], trees: Sequence[Tree]) -> bool:
    """Whether single verbs are conjoined: one word each, but the last may have complements."""
    last = trees[joined[-1]]
    flat = last.label == "VP" and last.children[0].words == (joined[-1],)
    return all(len(trees[k].words) == 1 for k in joined[:-1]) and (flat or len(last.words) == 1)


def _flatten_last_conjunct(joined: Sequence[int], trees: Sequence[Tree], bare: bool) -> list[Tree]:
    parts = _select(trees, joined)
    return [*parts[:-1], *(parts[-1].children or parts[-1:])] if bare else parts


def _nest_auxiliaries(
    arcs: Arcs, i: int, frame: VerbFrame, tree: Tree, trees: Sequence[Tree]
) -> Tree:
    """Nest the phrase in one verb phrase for each auxiliary, from the nearest outwards."""
    group: list[Tree] = []
    for k in reversed(frame.auxiliaries):
        group.insert(0, trees[k])
        if arcs.relations[k] in AUXILIARY_RELATIONS:
            tree, group = build_phrase("VP", i, [*group, tree]), []
    return tree


def _is_clause(arcs: Arcs, i: int, frame: VerbFrame) -> bool:
    """Whether the verb phrase forms its own clause; 'made on his blog' does not."""
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


def _add_opening(arcs: Arcs, i: int, frame: VerbFrame, tree: Tree, trees: Sequence[Tree]) -> Tree:
    """Add the marker or wh-word before the clause, or an SBAR where it is omitted."""
    if frame.opening:
        label = "SBARQ" if frame.is_question and frame.inverted else "SBAR"
        return build_phrase(
            label, i, [*_select(trees, frame.lead), *_select(trees, frame.opening), tree]
        )
    bare = arcs.relations[i] == "relcl" or _is_reported_clause(arcs, i, frame, tree)
    return build_phrase("SBAR", i, [tree]) if bare and tree.label == "S" else tree


def _is_reported_clause(arcs: Arcs, i: int, frame: VerbFrame, tree: Tree) -> bool:
    """Whether 'that' could precede the clause: they said [that] it rains."""
    if arcs.relations[i] != "ccomp" or i < arcs.heads[i] or not frame.has_subject:
        return False
    to = any(arcs.tags[k] == "TO" for k in frame.auxiliaries)
    return not to and arcs.words[tree.words[0] - 1] not in QUOTES


def _belongs_to_core(arcs: Arcs, k: int) -> bool:
    """Whether a word after the noun belongs to its core, as in 'Article 5' or 'May 3'."""
    if arcs.relations[k] in ("nummod", "compound", "quantmod"):
        return True
    loose = ("appos", "conj", "npadvmod", "aside")
    return arcs.tags[k] in ("CD", "HYPH") and arcs.relations[k] not in loose


def _flatten_modifier(arcs: Arcs, k: int, tree: Tree) -> list[Tree]:
    """Return the parts of a modifier before the noun; a noun modifier forms no phrase."""
    is_noun = arcs.relations[k] in ("compound", "nmod") and tree.label == "NP"
    return list(tree.children) if is_noun and tree.children else [tree]


def _build_modifier(
    arcs: Arcs, i: int, left: Sequence[int], right: Sequence[int], trees: Sequence[Tree]
) -> Tree:
    before, joined, after = split_at_conjuncts(arcs, right)
    label = phrase_label(arcs, i)
    if label == "ADJP" and any(arcs.tags[k] == "WRB" for k in left):
        label = "WHADJP"
    tree = join_parts(label, i, [*_select(trees, left), trees[i], *_select(trees, before)])
    return _add_conjuncts(label, i, tree, _select(trees, joined), _select(trees, after))


def phrase_label(arcs: Arcs, i: int) -> str:
    """Return the phrase label for the tag and relation of the head word."""
    tag, relation = arcs.tags[i], arcs.relations[i]
    if tag.startswith("JJ"):
        return "NP" if relation in _NOUN_RELATIONS else "ADJP"
    if tag in _TAG_LABELS:
        return _TAG_LABELS[tag]
    if tag == "CD" and relation in ("nummod", "quantmod", "compound"):
        return "QP"
    return "ADJP" if relation == "amod" else "NP"


def split_at_conjuncts(arcs: Arcs, right: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Split right dependents into those before, within and after the list of conjuncts."""
    at = [n for n, k in enumerate(right) if arcs.relations[k] == "conj"]
    if not at:
        return list(right), [], []
    start, end = at[0], at[-1] + 1
    while start and arcs.relations[right[start - 1]] in ("cc", "punct", "preconj"):
        start -= 1
    return list(right[:start]), list(right[start:end]), list(right[end:])


def _add_conjuncts(
    label: str, head: int, tree: Tree, joined: Sequence[Tree], after: Sequence[Tree]
) -> Tree:
    """Join a phrase with its conjuncts, and that phrase with the words after them."""
    if joined:
        tree = build_phrase(label, head, [tree, *joined])
    return join_parts(label, head, [tree, *after])


def join_parts(label: str, head: int, parts: Sequence[Tree]) -> Tree:
    """Return the parts as one phrase, or a single part unchanged."""
    return parts[0] if len(parts) == 1 else build_phrase(label, head, parts)


def _has_dependent(arcs: Arcs, i: int, relations: frozenset[str]) -> bool:
    return any(head == i and arcs.relations[k] in relations for k, head in enumerate(arcs.heads))


def _is_punct(arcs: Arcs, i: int) -> bool:
    return arcs.relations[i] == "punct"


def _select(trees: Sequence[Tree], places: Sequence[int]) -> list[Tree]:
    return [trees[k] for k in places]


def _append_children(tree: Tree, more: Sequence[Tree]) -> Tree:
    return build_phrase(tree.label, tree.head, [*tree.children, *more]) if more else tree
