"""Head rules: which child of a phrase contains its head word (Collins, 1999, 2003).

Each label has a scan direction and a list of child labels in order of preference; noun phrases
have separate rules, and a head after a conjunction moves to the conjunct before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from evenmatch.types import Tree

ScanSide = Literal["left", "right"]

# Phrase label, the side to scan its children from, and child labels in order of preference.
_RULE_ROWS: tuple[tuple[str, ScanSide, str], ...] = (
    ("ADJP", "left", "NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB"),
    ("ADVP", "right", "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN"),
    ("CONJP", "right", "CC RB IN"),
    ("FRAG", "right", ""),
    ("INTJ", "left", ""),
    ("LST", "right", "LS :"),
    ("NAC", "left", "NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW"),
    ("NX", "left", ""),
    ("PP", "right", "IN TO VBG VBN RP FW"),
    ("PRN", "left", ""),
    ("PRT", "right", "RP"),
    ("QP", "left", "$ IN NNS NN JJ RB DT CD NCD QP JJR JJS"),
    ("RRC", "right", "VP NP ADVP ADJP PP"),
    ("S", "left", "TO IN VP S SBAR ADJP UCP NP"),
    ("SBAR", "left", "WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG"),
    ("SBARQ", "left", "SQ S SINV SBARQ FRAG"),
    ("SINV", "left", "VBZ VBD VBP VB MD VP S SINV ADJP NP"),
    ("SQ", "left", "VBZ VBD VBP VB MD VP SQ"),
    ("UCP", "right", ""),
    ("VP", "left", "TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP"),
    ("WHADJP", "left", "CC WRB JJ ADJP"),
    ("WHADVP", "right", "CC WRB"),
    ("WHNP", "left", "WDT WP WP$ WHADJP WHPP WHNP"),
    ("WHPP", "right", "IN TO FW"),
    ("X", "right", ""),
)

# Noun phrases: the side, and sets of equally preferred child labels, tried one after the other.
_NOUN_ROWS: tuple[tuple[ScanSide, str], ...] = (
    ("right", "NN NNP NNPS NNS NX POS JJR"),
    ("left", "NP"),
    ("right", "$ ADJP PRN"),
    ("right", "CD"),
    ("right", "JJ JJS RB QP"),
)

# By phrase label: the side, and the sets of child labels to look for with the side to scan from.
HEAD_RULES: Mapping[str, tuple[ScanSide, Sequence[tuple[ScanSide, Sequence[str]]]]] = {
    "NP": ("right", [(side, wanted.split()) for side, wanted in _NOUN_ROWS]),
    **{
        label: (side, [(side, [wanted]) for wanted in preferred.split()])
        for label, side, preferred in _RULE_ROWS
    },
}

PUNCTUATION_TAGS = frozenset(", . : `` '' -LRB- -RRB- HYPH NFP".split())


def head_child(label: str, children: Sequence[Tree]) -> int:
    """Return the index of the child that contains the head word of the phrase."""
    labels = [child.label for child in children]
    head = len(labels) - 1 if label == "NP" and labels[-1] == "POS" else _find_head(label, labels)
    # A head that follows a conjunction moves to the conjunct before it.
    before = [i for i in range(head) if labels[i] not in PUNCTUATION_TAGS]
    return before[-2] if len(before) >= 2 and labels[before[-1]] == "CC" else head


def _find_head(label: str, labels: Sequence[str]) -> int:
    side, rules = HEAD_RULES.get(label, ("left", ()))
    for from_side, wanted in rules:
        for i in _scan(labels, from_side):
            if labels[i] in wanted:
                return i
    # The outermost child that is not punctuation, or the outermost if all are.
    order = _scan(labels, side)
    return next((i for i in order if labels[i] not in PUNCTUATION_TAGS), order[0])


def _scan(labels: Sequence[str], side: ScanSide) -> Sequence[int]:
    indices = range(len(labels))
    return indices if side == "left" else indices[::-1]
