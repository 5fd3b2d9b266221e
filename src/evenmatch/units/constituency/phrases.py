"""Build the phrase around a word: clauses around verbs, and nominal and prepositional phrases.

Each `build_*` function takes the arcs of a sentence, a head word, and the trees of its dependents
to the left and right. Until the heads are assigned anew, the `head` of a tree is the word it was
built around. Read `build_clause` first: it sorts the dependents of a verb into a `VerbFrame` and
assembles verb phrase, clause and opening.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evenmatch.types import Tree
from evenmatch.units.constituency.arcs import QUOTES, VERB_TAGS, Arcs

Trees: TypeAlias = Sequence[Tree]

SUBJECT_RELATIONS = frozenset("nsubj nsubjpass expl csubj csubjpass".split())
AUXILIARY_RELATIONS = frozenset({"aux", "auxpass"})
_CLAUSE_RELATIONS = frozenset("ROOT xcomp ccomp pcomp advcl csubj csubjpass parataxis".split())
_FRONTED_RELATIONS = frozenset("punct cc advcl prep ccomp intj npadvmod".split())
WH_TAGS = frozenset("WDT WP WRB WP$".split())
_NOUN_RELATIONS = frozenset("nsubj nsubjpass dobj pobj attr".split())
_MODIFIER_LABELS = frozenset("ADJP ADVP QP INTJ CONJP WHADVP".split())

_TAG_LABELS = {
    **dict.fromkeys(("RB", "RBR", "RBS"), "ADVP"),
    **dict.fromkeys(("WP", "WDT"), "WHNP"),
    "WRB": "WHADVP",
    "UH": "INTJ",
    "CC": "CONJP",
}


def build_clause(arcs: Arcs, word: Tree, left: Trees, right: Trees) -> Tree:
    """Return the clause, or the verb phrase without a clause, headed by a word."""
    i, frame = word.head, _make_frame(arcs, word, left, right)
    of_clauses = _conjuncts_have(arcs, frame.conjuncts, SUBJECT_RELATIONS)
    tree = _build_verb_phrase(arcs, word, frame, joins=not of_clauses)
    if _is_clause(arcs, i, frame):
        label = "SQ" if frame.inverted else "S"
        tree = build_phrase(label, i, [*frame.outer, *frame.middle, tree])
    if of_clauses:
        tree = build_phrase("S", i, [tree, *frame.conjuncts, *frame.after])
    tree = _add_opening(arcs, i, frame, tree)
    return build_phrase(tree.label, i, [*tree.children, *frame.tail]) if frame.tail else tree


def build_nominal(arcs: Arcs, word: Tree, left: Trees, right: Trees) -> Tree:
    """Return a noun phrase: the core, then post-modifiers, then conjuncts."""
    i, label = word.head, phrase_label(arcs, word.head)
    if label in _MODIFIER_LABELS:
        how = label == "ADJP" and any(arcs.tags[t.head] == "WRB" for t in left)
        return _join_conjuncts(arcs, "WHADJP" if how else label, word, left, right)
    genitive = [t for t in right if arcs.relations[t.head] == "case"]
    rest = [t for t in right if arcs.relations[t.head] != "case"]
    core_size = 0
    while core_size < len(rest) and _belongs_to_core(arcs, rest[core_size].head):
        core_size += 1
    before, joined, after = split_at_conjuncts(arcs, rest[core_size:])
    opening = [t for t in left[:1] if arcs.relations[t.head] == "cc"]
    modifiers = [part for t in left[len(opening) :] for part in _flatten_modifier(arcs, t)]
    core = [*modifiers, word, *rest[:core_size]]
    if modifiers and not before and all(not t.children for t in joined):
        core += joined
        joined = []
    tree = join_parts(label, i, [*core, *genitive])
    tree = join_parts(label, i, [tree, *before])
    tree = _add_conjuncts(label, i, tree, joined, after)
    return join_parts(label, i, [*opening, *(tree.children or [tree])]) if opening else tree


def build_prepositional(arcs: Arcs, word: Tree, left: Trees, right: Trees) -> Tree:
    """Return a preposition with its object."""
    is_question = any(
        t.label == "WHNP" or (len(t.words) == 1 and arcs.tags[t.head] in WH_TAGS)
        for t in split_at_conjuncts(arcs, right)[0]
    )
    return _join_conjuncts(arcs, "WHPP" if is_question else "PP", word, left, right)


def build_phrase(label: str, head: int, parts: Trees) -> Tree:
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

    lead: Trees  # before the word that opens the clause
    opening: Trees  # a marker or a wh-word, or all words from the first to the last of them
    outer: Trees  # up to the subject
    middle: Trees  # adverbs between the subject and the verb
    auxiliaries: Trees  # auxiliaries, and the words between them
    preverbal: Trees  # between the last auxiliary and the verb
    complements: Trees  # right of the verb, before its conjuncts
    conjuncts: Trees  # conjuncts with conjunctions and punctuation between them
    after: Trees  # right of the conjuncts
    tail: Trees  # punctuation that closes the clause
    is_question: bool  # a wh-word opens the clause
    inverted: bool  # an auxiliary precedes the subject
    has_subject: bool


def _make_frame(arcs: Arcs, word: Tree, left: Trees, right: Trees) -> VerbFrame:
    opening, is_question = _find_opening(arcs, left)
    lead = [t for t in left if opening and t.head < opening[0].head]
    body = [t for t in left if not opening or t.head > opening[-1].head]
    subjects = [t for t in body if arcs.relations[t.head] in SUBJECT_RELATIONS]
    outer, inner = _split_at_subject(arcs, body, subjects)
    last = max((t.head for t in _auxiliaries(arcs, inner)), default=-1)
    near = [t for t in inner if t.head > last]
    adverbs = ("advmod", "punct") if last < 0 and subjects else ()
    complements, conjuncts, after = split_at_conjuncts(arcs, right)
    rest, tail = after if conjuncts else complements, list[Tree]()
    closes = arcs.relations[word.head] == "ROOT" or subjects
    while closes and rest and arcs.relations[rest[-1].head] == "punct":
        tail.insert(0, rest.pop())
    return VerbFrame(
        lead,
        opening,
        outer,
        middle=[t for t in near if arcs.relations[t.head] in adverbs],
        auxiliaries=[t for t in inner if t.head <= last],
        preverbal=[t for t in near if arcs.relations[t.head] not in adverbs],
        complements=complements,
        conjuncts=conjuncts,
        after=after,
        tail=tail,
        is_question=is_question,
        inverted=bool(subjects and _auxiliaries(arcs, outer)),
        has_subject=bool(subjects),
    )


def _auxiliaries(arcs: Arcs, trees: Trees) -> list[Tree]:
    return [t for t in trees if arcs.relations[t.head] in AUXILIARY_RELATIONS]


def _find_opening(arcs: Arcs, left: Trees) -> tuple[Trees, bool]:
    """Return the words that open a subordinate clause, and whether by a wh-word, not a marker."""
    markers = [t for t in left if arcs.relations[t.head] == "mark"]
    wh_words = [t for t in left if t.label[:2] == "WH" or arcs.tags[t.words[0]] in WH_TAGS]
    opening = markers or wh_words[:1]
    if not opening:
        return [], False
    return left[left.index(opening[0]) : left.index(opening[-1]) + 1], not markers


def _split_at_subject(arcs: Arcs, body: Trees, subjects: Trees) -> tuple[Trees, Trees]:
    """Split dependents into those outside and those inside the verb phrase."""
    auxiliaries = _auxiliaries(arcs, body)
    if subjects:
        at = body.index(subjects[-1]) + 1
    elif auxiliaries:
        at = body.index(auxiliaries[0])
    else:
        fronted = [n for n, t in enumerate(body, 1) if arcs.relations[t.head] in _FRONTED_RELATIONS]
        at = max(fronted, default=0)
    return body[:at], body[at:]


def _build_verb_phrase(arcs: Arcs, word: Tree, frame: VerbFrame, *, joins: bool) -> Tree:
    """Return the verb with its complements, nested in one verb phrase for each auxiliary."""
    i = word.head
    label = "VP" if arcs.tags[i] in VERB_TAGS else phrase_label(arcs, i)
    parts = [*frame.preverbal, word, *frame.complements]
    if not joins or not frame.conjuncts:
        return _nest_auxiliaries(arcs, i, frame, build_phrase(label, i, parts))
    joined = list(frame.conjuncts)
    if _conjuncts_have(arcs, joined, AUXILIARY_RELATIONS):
        tree = _nest_auxiliaries(arcs, i, frame, build_phrase(label, i, parts))
        return build_phrase("VP", i, [tree, *joined, *frame.after])
    if not frame.complements and _are_single_verbs(joined):
        joined[-1:] = joined[-1].children or joined[-1:]
    else:
        parts = [build_phrase(label, i, parts)]
    tree = build_phrase(label, i, [*parts, *joined, *frame.after])
    return _nest_auxiliaries(arcs, i, frame, tree)


def _are_single_verbs(joined: Trees) -> bool:
    """Whether single verbs are conjoined: one word each, but the last may have complements."""
    last = joined[-1]
    flat = last.label == "VP" and last.children[0].words == (last.head,)
    return all(len(t.words) == 1 for t in joined[:-1]) and (flat or len(last.words) == 1)


def _nest_auxiliaries(arcs: Arcs, i: int, frame: VerbFrame, tree: Tree) -> Tree:
    """Nest the phrase in one verb phrase for each auxiliary, from the nearest outwards."""
    group: list[Tree] = []
    for part in reversed(frame.auxiliaries):
        group.insert(0, part)
        if arcs.relations[part.head] in AUXILIARY_RELATIONS:
            tree, group = build_phrase("VP", i, [*group, tree]), []
    return tree


def _is_clause(arcs: Arcs, i: int, frame: VerbFrame) -> bool:
    """Whether the verb phrase forms its own clause; 'made on his blog' does not."""
    relation = arcs.relations[i]
    if frame.has_subject or frame.outer or frame.tail or frame.opening:
        return True
    return relation in _CLAUSE_RELATIONS or (
        relation in ("acl", "relcl") and _is_infinitive(arcs, frame)
    )


def _is_infinitive(arcs: Arcs, frame: VerbFrame) -> bool:
    return any(arcs.tags[t.head] == "TO" for t in frame.auxiliaries)


def _add_opening(arcs: Arcs, i: int, frame: VerbFrame, tree: Tree) -> Tree:
    """Add the marker or wh-word before the clause, or an SBAR where it is omitted."""
    if frame.opening:
        label = "SBARQ" if frame.is_question and frame.inverted else "SBAR"
        return build_phrase(label, i, [*frame.lead, *frame.opening, tree])
    bare = arcs.relations[i] == "relcl" or _is_reported_clause(arcs, i, frame, tree)
    return build_phrase("SBAR", i, [tree]) if bare and tree.label == "S" else tree


def _is_reported_clause(arcs: Arcs, i: int, frame: VerbFrame, tree: Tree) -> bool:
    """Whether 'that' could precede the clause: they said [that] it rains."""
    if arcs.relations[i] != "ccomp" or i < arcs.heads[i] or not frame.has_subject:
        return False
    return not _is_infinitive(arcs, frame) and arcs.words[tree.words[0] - 1] not in QUOTES


def _belongs_to_core(arcs: Arcs, k: int) -> bool:
    """Whether a word after the noun belongs to its core, as in 'Article 5' or 'May 3'."""
    if arcs.relations[k] in ("nummod", "compound", "quantmod"):
        return True
    loose = ("appos", "conj", "npadvmod", "aside")
    return arcs.tags[k] in ("CD", "HYPH") and arcs.relations[k] not in loose


def _flatten_modifier(arcs: Arcs, tree: Tree) -> Trees:
    """Return the parts of a modifier before the noun; a noun modifier forms no phrase."""
    is_noun = arcs.relations[tree.head] in ("compound", "nmod") and tree.label == "NP"
    return (is_noun and tree.children) or [tree]


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


def split_at_conjuncts(arcs: Arcs, right: Trees) -> tuple[list[Tree], list[Tree], list[Tree]]:
    """Split right dependents into those before, within and after the list of conjuncts."""
    relations = [arcs.relations[t.head] for t in right]
    if "conj" not in relations:
        return list(right), [], []
    start, end = relations.index("conj"), len(relations) - relations[::-1].index("conj")
    while start and relations[start - 1] in ("cc", "punct", "preconj"):
        start -= 1
    return list(right[:start]), list(right[start:end]), list(right[end:])


def _join_conjuncts(arcs: Arcs, label: str, word: Tree, left: Trees, right: Trees) -> Tree:
    """Join a word with its dependents up to the conjuncts, and that phrase with the conjuncts."""
    before, joined, after = split_at_conjuncts(arcs, right)
    tree = join_parts(label, word.head, [*left, word, *before])
    return _add_conjuncts(label, word.head, tree, joined, after)


def _add_conjuncts(label: str, head: int, tree: Tree, joined: Trees, after: Trees) -> Tree:
    """Join a phrase with its conjuncts, and that phrase with the words after them."""
    if joined:
        tree = build_phrase(label, head, [tree, *joined])
    return join_parts(label, head, [tree, *after])


def join_parts(label: str, head: int, parts: Trees) -> Tree:
    """Return the parts as one phrase, or a single part unchanged."""
    return parts[0] if len(parts) == 1 else build_phrase(label, head, parts)


def _conjuncts_have(arcs: Arcs, joined: Trees, relations: frozenset[str]) -> bool:
    """Whether one of the conjuncts has a dependent with one of these relations."""
    conjuncts = {t.head for t in joined if arcs.relations[t.head] == "conj"}
    return any(h in conjuncts and arcs.relations[k] in relations for k, h in enumerate(arcs.heads))
