"""Phrase trees of hand-made dependencies, bracketed by hand as in the Penn Treebank.

A leaf is `tag word`. The heads are those that the rules of Collins give the phrases, from the root
down and left to right.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from evenmatch.types import Parse, Tree
from evenmatch.units.constituency.converter import PhraseTrees, convert_dependencies
from evenmatch.units.head_rules import head_child
from evenmatch.units.parsers.files import ParseFile
from evenmatch.units.subtrees import Subtrees
from tests.support.parses import HAVING, write_conllu

# word/tag/relation/head, with heads counted from 1: the tree, and the heads of its phrases
TREES = [
    (
        "He/PRP/nsubj/3 can/MD/aux/3 swim/VB/ROOT/3 and/CC/cc/3 dive/VB/conj/3 deep/RB/advmod/5 "
        "././punct/3",
        "(S (NP (PRP He)) (VP (MD can) (VP (VB swim) (CC and) (VB dive) (ADVP (RB deep)))) (. .))",
        "can He can swim deep",
    ),
    (
        "He/PRP/nsubj/2 came/VBD/ROOT/2 and/CC/cc/2 has/VBZ/aux/5 gone/VBN/conj/2",
        "(S (NP (PRP He)) (VP (VP (VBD came)) (CC and) (VP (VBZ has) (VP (VBN gone)))))",
        "came He came came has gone",
    ),
    (
        "He/PRP/nsubj/3 will/MD/aux/3 leave/VB/ROOT/3 ,/,/punct/3 eat/VB/conj/3 bread/NN/dobj/5 "
        "and/CC/cc/5 sleep/VB/conj/5",
        "(S (NP (PRP He)) (VP (MD will) (VP (VP (VB leave)) (, ,) (VP (VB eat) (NP (NN bread))) "
        "(CC and) (VP (VB sleep)))))",
        "will He will leave leave eat bread sleep",
    ),
    (
        "He/PRP/nsubj/3 often/RB/advmod/3 sings/VBZ/ROOT/3 ,/,/punct/3 but/CC/cc/3 she/PRP/nsubj/7 "
        "left/VBD/conj/3 early/RB/advmod/7 ././punct/3",
        "(S (S (NP (PRP He)) (ADVP (RB often)) (VP (VBZ sings))) (, ,) (CC but) (S (NP (PRP she)) "
        "(VP (VBD left) (ADVP (RB early)))) (. .))",
        "sings sings He often sings left she left early",
    ),
    (
        "the/DT/det/4 very/RB/advmod/3 old/JJ/amod/4 man/NN/ROOT/4",
        "(NP (DT the) (ADJP (RB very) (JJ old)) (NN man))",
        "man old",
    ),
    (
        "Article/NNP/ROOT/1 5/CD/nummod/1 of/IN/prep/1 it/PRP/pobj/3",
        "(NP (NP (NNP Article) (CD 5)) (PP (IN of) (NP (PRP it))))",
        "Article Article of it",
    ),
    (
        "May/NNP/ROOT/1 3/CD/dep/1 ,/,/punct/1 four/CD/appos/1",
        "(NP (NP (NNP May) (CD 3)) (, ,) (CD four))",
        "May May",
    ),
    (
        "the/DT/det/2 cats/NNS/ROOT/2 and/CC/cc/2 dogs/NNS/conj/2",
        "(NP (DT the) (NNS cats) (CC and) (NNS dogs))",
        "cats",
    ),
    (
        "the/DT/det/2 cats/NNS/ROOT/2 and/CC/cc/2 big/JJ/amod/5 dogs/NNS/conj/2",
        "(NP (NP (DT the) (NNS cats)) (CC and) (NP (JJ big) (NNS dogs)))",
        "cats cats dogs",
    ),
    (
        "the/DT/det/2 cats/NNS/ROOT/2 about/RB/advmod/4 3/CD/conj/2",
        "(NP (NP (DT the) (NNS cats)) (NP (RB about) (CD 3)))",
        "cats cats 3",
    ),
    (
        "a/DT/det/4 newly/RB/advmod/3 built/VBN/amod/4 house/NN/ROOT/4",
        "(NP (DT a) (ADJP (RB newly) (VBN built)) (NN house))",
        "house built",
    ),
    (
        "and/CC/cc/2 men/NNS/ROOT/2 of/IN/prep/2 war/NN/pobj/3",
        "(NP (CC and) (NNS men) (PP (IN of) (NP (NN war))))",
        "men of war",
    ),
    (
        "the/DT/det/2 king/NN/poss/5 's/POS/case/2 old/JJ/amod/5 horse/NN/ROOT/5",
        "(NP (NP (DT the) (NN king) (POS 's)) (JJ old) (NN horse))",
        "horse 's",
    ),
    (
        "What/WP/dobj/4 did/VBD/aux/4 he/PRP/nsubj/4 see/VB/ROOT/4 ?/./punct/4",
        "(SBARQ (WHNP (WP What)) (SQ (VBD did) (NP (PRP he)) (VP (VB see))) (. ?))",
        "did What did he see",
    ),
    (
        "He/PRP/nsubj/2 went/VBD/ROOT/2 because/IN/mark/6 it/PRP/nsubj/6 was/VBD/aux/6 "
        "raining/VBG/advcl/2",
        "(S (NP (PRP He)) (VP (VBD went) (SBAR (IN because) (S (NP (PRP it)) (VP (VBD was) "
        "(VP (VBG raining)))))))",
        "went He went because was it was raining",
    ),
    (
        "the/DT/det/2 plan/NN/nsubj/5 to/TO/aux/4 leave/VB/acl/2 failed/VBD/ROOT/5",
        "(S (NP (NP (DT the) (NN plan)) (S (VP (TO to) (VP (VB leave))))) (VP (VBD failed)))",
        "failed plan plan to to leave failed",
    ),
    (
        "the/DT/det/2 speech/NN/ROOT/2 made/VBN/acl/2 on/IN/prep/3 his/PRP$/poss/6 blog/NN/pobj/4",
        "(NP (NP (DT the) (NN speech)) (VP (VBN made) (PP (IN on) (NP (PRP$ his) (NN blog)))))",
        "speech speech made on blog",
    ),
    (
        "the/DT/det/2 book/NN/ROOT/2 I/PRP/nsubj/4 read/VBD/relcl/2",
        "(NP (NP (DT the) (NN book)) (SBAR (S (NP (PRP I)) (VP (VBD read)))))",
        "book book read read I read",
    ),
    (
        "“/``/punct/3 It/PRP/nsubj/3 rains/VBZ/ccomp/6 ”/''/punct/3 ,/,/punct/6 said/VBD/ROOT/6 "
        "he/PRP/nsubj/6",
        "(S (S (`` “) (NP (PRP It)) (VP (VBZ rains)) ('' ”)) (, ,) (VP (VBD said) (NP (PRP he))))",
        "said rains It rains said he",
    ),
    (
        "He/PRP/nsubj/2 said/VBD/ROOT/2 it/PRP/nsubj/5 has/VBZ/aux/5 rained/VBN/ccomp/2",
        "(S (NP (PRP He)) (VP (VBD said) (SBAR (S (NP (PRP it)) (VP (VBZ has) "
        "(VP (VBN rained)))))))",
        "said He said has has it has rained",
    ),
    (
        "He/PRP/nsubj/2 wants/VBZ/ROOT/2 her/PRP/nsubj/5 to/TO/aux/5 sleep/VB/ccomp/2",
        "(S (NP (PRP He)) (VP (VBZ wants) (S (NP (PRP her)) (VP (TO to) (VP (VB sleep))))))",
        "wants He wants to her to sleep",
    ),
    (
        "He/PRP/nsubj/2 wants/VBZ/ROOT/2 to/TO/aux/4 sleep/VB/xcomp/2 ././punct/2",
        "(S (NP (PRP He)) (VP (VBZ wants) (S (VP (TO to) (VP (VB sleep))))) (. .))",
        "wants He wants to to sleep",
    ),
    (
        "Smith/NNP/nsubj/6 ,/,/punct/1 the/DT/det/4 baker/NN/appos/1 ,/,/punct/6 left/VBD/ROOT/6",
        "(S (NP (NNP Smith) (, ,) (NP (DT the) (NN baker)) (, ,)) (VP (VBD left)))",
        "left Smith baker left",
    ),
    (
        "They/PRP/nsubj/2 called/VBD/ROOT/2 him/PRP/dobj/2 crazy/JJ/oprd/2",
        "(S (NP (PRP They)) (VP (VBD called) (NP (PRP him)) (S (ADJP (JJ crazy)))))",
        "called They called him crazy crazy",
    ),
    (
        "how/WRB/advmod/2 big/JJ/acomp/4 it/PRP/nsubj/4 is/VBZ/ROOT/4",
        "(SBAR (WHADJP (WRB how) (JJ big)) (S (NP (PRP it)) (VP (VBZ is))))",
        "how how is it is",
    ),
    (
        "about/RB/advmod/2 50/CD/nummod/3 men/NNS/ROOT/3 in/IN/prep/3 red/JJ/amod/6 "
        "hats/NNS/pobj/4",
        "(NP (NP (QP (RB about) (CD 50)) (NNS men)) (PP (IN in) (NP (JJ red) (NNS hats))))",
        "men men about in hats",
    ),
    (
        "But/CC/cc/5 yesterday/NN/npadvmod/5 ,/,/punct/5 he/PRP/nsubj/5 left/VBD/ROOT/5",
        "(S (CC But) (NP (NN yesterday)) (, ,) (NP (PRP he)) (VP (VBD left)))",
        "left yesterday he left",
    ),
    (
        "not/RB/neg/3 to/TO/aux/3 go/VB/ROOT/3",
        "(S (ADVP (RB not)) (VP (TO to) (VP (VB go))))",
        "to not to go",
    ),
    (
        "Rome/NNP/nsubj/6 (/-LRB-/punct/4 old/JJ/amod/4 Italy/NNP/appos/1 )/-RRB-/punct/4 "
        "fell/VBD/ROOT/6",
        "(S (NP (NNP Rome) (PRN (-LRB- () (NP (JJ old) (NNP Italy)) (-RRB- )))) (VP (VBD fell)))",
        "fell Rome Italy Italy fell",
    ),
]


def bracket(tree: Tree, words: list[str]) -> str:
    inside = " ".join(bracket(child, words) for child in tree.children) or words[tree.head]
    return f"({tree.label} {inside})"


def phrase_heads(tree: Tree, words: list[str]) -> list[str]:
    below = [head for child in tree.children for head in phrase_heads(child, words)]
    return [words[tree.head], *below] if tree.children else []


def read(line: str) -> tuple[list[str], list[str], list[int], list[str]]:
    words, tags, relations, heads = zip(
        *(cell.rsplit("/", 3) for cell in line.split()), strict=True
    )
    return list(words), list(tags), [int(head) - 1 for head in heads], list(relations)


@pytest.mark.parametrize(("line", "tree", "heads"), TREES, ids=range(len(TREES)))
def test_a_sentence_has_the_phrases_bracketed_by_hand(line: str, tree: str, heads: str) -> None:
    words, tags, arcs, relations = read(line)
    found = convert_dependencies(words, tags, arcs, relations)
    assert bracket(found, words) == tree
    assert " ".join(phrase_heads(found, words)) == heads


def test_each_sentence_of_a_text_is_converted_with_its_own_words() -> None:
    """The words of the second sentence are 3, 4 and 5."""
    trees = (
        Tree("ROOT", 1, (0, 1, 2), (Tree("nsubj", 0, (0,)), Tree("punct", 2, (2,)))),
        Tree("ROOT", 4, (3, 4, 5), (Tree("nsubj", 3, (3,)), Tree("advmod", 5, (5,)))),
    )
    words = "It rains . He left early".split()
    parse = Parse(" ".join(words), tuple(words), (), ("PRP", "VBZ", ".", "PRP", "VBD", "RB"), trees)
    found = PhraseTrees()._convert(parse)
    assert found.is_constituency
    assert [tree.words for tree in found.trees] == [(0, 1, 2), (3, 4, 5)]
    assert [bracket(tree, words) for tree in found.trees] == [
        "(S (NP (PRP It)) (VP (VBZ rains)) (. .))",
        "(S (NP (PRP He)) (VP (VBD left) (ADVP (RB early))))",
    ]


SINGLE = HAVING.split()
PATHS = [
    "I saw",
    "saw .",
    "saw a girl",
    "saw girl having a telescope",
    "a girl",
    "girl having a telescope",
    "having a telescope",
    "a telescope",
]
WHOLE = [HAVING, "a girl having a telescope"]


@pytest.mark.parametrize(
    ("settings", "units"),
    [
        ({}, [*SINGLE, *PATHS, *WHOLE]),
        ({"paths": False, "descendants": False}, SINGLE),
        ({"nodes": False, "descendants": False}, ["I", "a", "a", ".", *PATHS]),
        (
            {"nodes": False, "paths": False},
            ["I", "a", "a", ".", *WHOLE, "having a telescope", "a telescope"],
        ),
        # a leaf is all three kinds, and two paths are whole subtrees
        (
            {"multiset": True},
            [*SINGLE, *"I a a . I a a .".split(), *PATHS, *WHOLE, *PATHS[-2:]],
        ),
    ],
    ids=["all", "words", "paths", "whole", "multiset"],
)
def test_a_dependency_tree_has_words_paths_to_leaves_and_whole_subtrees(
    tmp_path: Path, settings: dict[str, bool], units: list[str]
) -> None:
    """The tree of figure 1 of Chousa and Hirao (2025)."""
    parser = ParseFile(write_conllu(tmp_path))
    found = Subtrees(parser=parser, **settings)(HAVING)  # type: ignore[arg-type]  # by name
    assert sorted(found.items) == sorted(units)
    # a unit is labelled with its topmost word
    tops = dict(zip(found.items, found.labels, strict=True))
    wanted = {"girl having a telescope": "girl", HAVING: "saw", "telescope": "telescope"}
    assert all(tops[item] == top for item, top in wanted.items() if item in tops)


@pytest.mark.parametrize(
    ("label", "children", "head"),
    [
        ("NP", "DT JJ NN", 2),
        ("NP", "DT NN NN", 2),  # of equal children the one nearest to the side that is scanned from
        ("NP", "NNP NNP CD", 1),
        ("NP", "NP , NP PP", 0),
        ("NP", "ADJP $ PRN", 2),
        ("ADJP", "JJ JJ", 0),
        ("VP", "VBD VBD", 0),
        ("PP", "IN IN NP", 1),
        ("WHNP", "WDT WDT NN", 0),
        ("WHADVP", "WRB WRB", 1),
        ("SINV", "VBZ VBZ NP", 0),
        ("SBAR", "IN IN S", 0),
        ("NP", "DT NN POS", 2),  # a possessive
        ("NP", "NP PP", 0),
        ("NP", "NP , NP", 0),
        ("NP", "DT JJ CD", 2),
        ("NP", "DT JJ", 1),
        ("NP", "DT ADJP PRN", 2),
        ("NP", "NN CC NN", 0),  # a head after a conjunction moves to the conjunct before it
        ("NP", "NN , CC NN", 0),
        ("NP", "CC NN", 1),
        ("NP", "FW DT ,", 1),  # the last that is no punctuation
        ("VP", "MD VP", 0),
        ("VP", "ADVP TO VP", 1),
        ("VP", "VP CC VP", 0),
        ("PP", "ADVP IN NP", 1),
        ("S", "NP VP .", 1),
        ("SBAR", "IN S", 0),
        ("SBARQ", "WHNP SQ .", 1),
        ("ADVP", "RB RB", 1),
        ("QP", "RB CD", 0),
        ("PRN", "-LRB- NP -RRB-", 1),
        ("PRN", ", :", 0),
        ("UNKNOWN", ", NN VB", 1),
    ],
)
def test_each_phrase_has_the_head_of_collins_rules(label: str, children: str, head: int) -> None:
    trees = [Tree(child, i, (i,)) for i, child in enumerate(children.split())]
    assert head_child(label, trees) == head
