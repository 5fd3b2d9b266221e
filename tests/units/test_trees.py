from __future__ import annotations

import pytest

from evenmatch.errors import DataError
from evenmatch.types import Tree
from evenmatch.units.trees import (
    dependency_tree,
    iter_nodes,
    read_brackets,
    read_conllu,
    shift_words,
)

GIRL = "(ROOT (S (NP-SBJ (PRP I)) (VP (VBD saw) (NP (DT a) (NN girl))) (. .)))"


def test_brackets_give_words_tags_and_a_tree_without_its_root() -> None:
    [sentence] = read_brackets(GIRL)
    assert sentence.words == ("I", "saw", "a", "girl", ".")
    assert sentence.tags == ("PRP", "VBD", "DT", "NN", ".")
    labels = [node.label for node in iter_nodes(sentence.tree)]
    assert labels == ["S", "NP", "PRP", "VP", "VBD", "NP", "DT", "NN", "."]


def test_escaped_brackets_and_quotes_are_decoded() -> None:
    [sentence] = read_brackets("(NP (-LRB- -LRB-) (`` ``) (NN x) ('' '') (-RRB- -RRB-))")
    assert sentence.words == ("(", '"', "x", '"', ")")


def test_a_trace_has_no_words() -> None:
    [sentence] = read_brackets("(S (NP (-NONE- *)) (VP (VB go)))")
    assert (sentence.words, sentence.tree.words) == (("go",), (0,))
    assert [node.label for node in iter_nodes(sentence.tree)] == ["S", "VP", "VB"]


def test_trees_may_follow_each_other() -> None:
    assert [s.words for s in read_brackets("(A (B x)) (C (D y) (E z))")] == [("x",), ("y", "z")]


@pytest.mark.parametrize(
    ("text", "message"), [("(S (NP x)", "is not closed"), ("S (NP x)", "must begin with '\\('")]
)
def test_broken_brackets_are_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_brackets(text)


CONLLU = """# text = go home
1\tgo\t_\tVERB\t_\t_\t0\troot\t_\t_
1-2\tgohome\t_\t_\t_\t_\t_\t_\t_\t_
2\thome\t_\tADV\tRB\t_\t1\tadvmod\t_\t_
2.1\tgone\t_\t_\t_\t_\t_\t_\t_\t_
"""


def test_conllu_skips_ranges_and_empty_nodes() -> None:
    [sentence] = read_conllu(CONLLU.splitlines())
    assert (sentence.words, sentence.tags) == (("go", "home"), ("VERB", "RB"))
    assert sentence.tree == Tree("root", 0, (0, 1), (Tree("advmod", 1, (1,)),))


@pytest.mark.parametrize(
    ("heads", "message"),
    [("2 1", "form a cycle"), ("0 9", "outside the sentence"), ("0 x", "is not a number")],
)
def test_heads_that_make_no_tree_are_refused(heads: str, message: str) -> None:
    lines = [f"{n}\tw\t_\t_\t_\t_\t{h}\tx\t_\t_" for n, h in enumerate(heads.split(), 1)]
    with pytest.raises(DataError, match=message):
        list(read_conllu(lines))


def test_a_line_with_too_few_columns_is_reported_by_number() -> None:
    with pytest.raises(DataError, match="line 1 has 2 columns"):
        list(read_conllu(["1\tgo"]))


def test_a_very_deep_tree_needs_no_recursion() -> None:
    tree = dependency_tree([0, *range(1999)], ["x"] * 2000)
    assert len(list(iter_nodes(shift_words(tree, 5)))) == 2000


def test_no_root_is_an_error() -> None:
    with pytest.raises(DataError, match="has no root"):
        dependency_tree([1, 0], ["x", "x"])
