from __future__ import annotations

import pytest

from evenmatch.types import Tree
from evenmatch.units.head_rules import HEAD_RULES, head_child
from evenmatch.units.trees import read_brackets


def head(label: str, children: str) -> int:
    return head_child(label, [Tree(c, i, (i,)) for i, c in enumerate(children.split())])


@pytest.mark.parametrize(
    ("label", "children", "expected"),
    [
        ("VP", "MD RB VP", 0),
        ("VP", "TO VP", 0),
        ("VP", "ADVP VBD NP", 1),
        ("S", "NP VP .", 1),
        ("S", "ADVP , NP VP", 3),
        ("SBAR", "IN S", 0),
        ("SBAR", "WHNP S", 0),
        ("SBARQ", "WHADVP SQ .", 1),
        ("PP", "ADVP IN NP", 1),
        ("ADJP", "RB JJ", 1),
        ("ADVP", "RB RB", 1),
        ("QP", "IN CD CD", 0),
        ("WHPP", "IN WHNP", 0),
        ("PRN", "-LRB- NP -RRB-", 1),
        ("FRAG", "NP PP .", 1),
        ("UNKNOWN", "X Y", 0),
    ],
)
def test_heads_follow_the_rules_of_collins(label: str, children: str, expected: int) -> None:
    assert head(label, children) == expected


@pytest.mark.parametrize(
    ("children", "expected"),
    [
        ("NP POS", 1),  # a genitive suffix in last position
        ("DT JJ NN", 2),
        ("DT NN NNS", 2),  # from the right
        ("NP PP", 0),
        ("DT ADJP", 1),
        ("$ CD", 0),
        ("DT CD", 1),
        ("DT JJ", 1),
        ("PRP", 0),
        ("DT ,", 0),  # punctuation is never a head
    ],
)
def test_noun_phrase_rules_are_tried_in_order(children: str, expected: int) -> None:
    assert head("NP", children) == expected


@pytest.mark.parametrize(
    ("label", "children", "expected"),
    [("NP", "NN CC NN", 0), ("NP", "NN , CC NN", 0), ("UCP", "NP CC ADJP", 0), ("NP", "CC NN", 1)],
)
def test_a_head_behind_a_conjunction_moves_to_the_conjunct_before(
    label: str, children: str, expected: int
) -> None:
    assert head(label, children) == expected


def test_head_words_propagate_up_the_tree() -> None:
    [sentence] = read_brackets("(S (NP (DT the) (NN cat)) (VP (VBD sat)))")
    assert sentence.words[sentence.tree.head] == "sat"
    assert sentence.words[sentence.tree.children[0].head] == "cat"


def test_every_label_of_the_rules_is_there() -> None:
    assert len(HEAD_RULES) == 26
