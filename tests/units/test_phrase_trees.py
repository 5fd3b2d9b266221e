from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path

import pytest
from benchmarks.speed.phrases import BracketingScore, compare_trees, derive_trees
from hypothesis import given, settings
from hypothesis import strategies as st

from evenmatch.errors import InputError
from evenmatch.types import Tree
from evenmatch.units.constituency.arcs import Arcs, group_brackets, make_projective
from evenmatch.units.constituency.converter import (
    PhraseTrees,
    convert_dependencies,
)
from evenmatch.units.parsers.files import ParseFile
from evenmatch.units.trees import iter_nodes, read_brackets
from tests.support.parses import write_brackets

# word/tag/relation/head, heads counted from 1, and the expected phrases of several words
SENTENCES = {
    "auxiliaries nest": (
        "She/PRP/nsubj/4 has/VBZ/aux/4 been/VBN/aux/4 reading/VBG/ROOT/4 ././punct/4",
        "S(She has been reading .) VP(has been reading) VP(been reading)",
    ),
    "a noun phrase has a core": (
        "the/DT/det/2 cat/NN/ROOT/2 in/IN/prep/2 the/DT/det/5 hat/NN/pobj/3",
        "NP(the cat in the hat) NP(the cat) PP(in the hat) NP(the hat)",
    ),
    "a marker opens a clause": (
        "He/PRP/nsubj/2 said/VBD/ROOT/2 that/IN/mark/5 it/PRP/nsubj/5 rained/VBD/ccomp/2",
        "S(He said that it rained) VP(said that it rained) SBAR(that it rained) S(it rained)",
    ),
    "an omitted marker leaves an SBAR": (
        "He/PRP/nsubj/2 said/VBD/ROOT/2 it/PRP/nsubj/4 rained/VBD/ccomp/2",
        "S(He said it rained) VP(said it rained) SBAR(it rained) S(it rained)",
    ),
    "a wh-word opens a relative clause": (
        "men/NNS/ROOT/1 who/WP/nsubj/4 never/RB/neg/4 sleep/VBP/relcl/1",
        "NP(men who never sleep) SBAR(who never sleep) S(never sleep) VP(never sleep)",
    ),
    "conjuncts are siblings": (
        "red/JJ/amod/2 cats/NNS/ROOT/2 ,/,/punct/2 big/JJ/amod/5 dogs/NNS/conj/2 "
        "and/CC/cc/5 fat/JJ/amod/8 rats/NNS/conj/5",
        "NP(red cats , big dogs and fat rats) NP(red cats) NP(big dogs) NP(fat rats)",
    ),
    "clauses with subjects are joined as clauses": (
        "I/PRP/nsubj/2 came/VBD/ROOT/2 and/CC/cc/2 you/PRP/nsubj/5 left/VBD/conj/2",
        "S(I came and you left) S(I came) S(you left)",
    ),
    "verbs are joined under one subject": (
        "I/PRP/nsubj/2 came/VBD/ROOT/2 home/RB/advmod/2 and/CC/cc/2 fell/VBD/conj/2 "
        "asleep/RB/advmod/5",
        "S(I came home and fell asleep) VP(came home and fell asleep) VP(came home) "
        "VP(fell asleep)",
    ),
    "an aside is in brackets": (
        "Rome/NNP/nsubj/5 (/-LRB-/punct/3 Italy/NNP/appos/1 )/-RRB-/punct/3 fell/VBD/ROOT/5",
        "S(Rome ( Italy ) fell) NP(Rome ( Italy )) PRN(( Italy ))",
    ),
    "a question is inverted": (
        "Did/VBD/aux/3 he/PRP/nsubj/3 go/VB/ROOT/3 ?/./punct/3",
        "SQ(Did he go ?)",
    ),
    "a compound forms no phrase": (
        "high/JJ/amod/2 school/NN/compound/3 teachers/NNS/ROOT/3",
        "NP(high school teachers)",
    ),
    "a genitive includes its suffix": (
        "the/DT/det/2 king/NN/poss/4 's/POS/case/2 horse/NN/ROOT/4",
        "NP(the king 's horse) NP(the king 's)",
    ),
}


def convert(line: str) -> tuple[list[str], Tree]:
    cells = [word.rsplit("/", 3) for word in line.split()]
    words, tags, relations, heads = (list(column) for column in zip(*cells, strict=True))
    return words, convert_dependencies(words, tags, [int(h) - 1 for h in heads], relations)


@pytest.mark.parametrize("name", SENTENCES)
def test_phrases_follow_the_penn_treebank(name: str) -> None:
    line, expected = SENTENCES[name]
    words, tree = convert(line)
    found = [
        f"{node.label}({' '.join(words[i] for i in node.words)})"
        for node in iter_nodes(tree)
        if len(node.words) > 1
    ]
    assert sorted(found) == sorted(_split(expected))


def _split(expected: str) -> list[str]:
    """Split a list of phrases; a bracket may be a word, so a phrase ends at the next label."""
    found: list[str] = []
    for part in expected.split(" "):
        if "(" in part and part.split("(")[0].isupper() and part[0] != "(":
            found.append(part)
        else:
            found[-1] += f" {part}"
    return found


def test_a_single_word_in_the_position_of_a_phrase_becomes_one() -> None:
    _, tree = convert("He/PRP/nsubj/2 slept/VBD/ROOT/2 here/RB/advmod/2")
    labels = [node.label for node in iter_nodes(tree)]
    assert labels == ["S", "NP", "PRP", "VP", "VBD", "ADVP", "RB"]


def test_heads_follow_the_rules_of_collins_not_the_dependencies() -> None:
    words, tree = convert("He/PRP/nsubj/3 has/VBZ/aux/3 gone/VBN/ROOT/3")
    assert words[tree.head] == "has"


def test_crossing_arcs_are_lifted_until_none_crosses() -> None:
    arcs = Arcs(("a", "b", "c", "d"), ("NN",) * 4, (2, 1, 1, 0), ("dep",) * 4)
    first, last = make_projective(arcs).extents()
    below = make_projective(arcs).dependents()
    for i, own in enumerate(below):
        covered = {i, *(w for k in own for w in range(first[k], last[k] + 1))}
        assert covered == set(range(first[i], last[i] + 1))


def test_a_bracket_with_dependents_makes_no_cycle() -> None:
    words = ("x", "[", "y", "]", "z")
    # y depends on x, which depends on the opening bracket
    arcs = group_brackets(Arcs(words, ("NN",) * 5, (1, 4, 0, 1, 4), ("dep",) * 5))
    assert arcs.heads == (4, 2, 4, 2, 4)


_BRACKETED = "( ) [ ] , . “ ” and cat that".split()
_RELATIONS = "nsubj conj cc punct appos relcl prep pobj advcl det".split()


@given(st.data())
@settings(max_examples=150)
def test_any_dependency_tree_converts_to_a_tree_over_all_its_words(draw: st.DataObject) -> None:
    size = draw.draw(st.integers(1, 10))
    order = draw.draw(st.permutations(range(size)))
    heads = [order[0]] * size
    for place in range(1, size):
        heads[order[place]] = order[draw.draw(st.integers(max(0, place - 4), place - 1))]
    one_each = partial(st.lists, min_size=size, max_size=size)
    words = draw.draw(one_each(st.sampled_from(_BRACKETED)))
    tags = draw.draw(one_each(st.sampled_from("NN VBD IN CC , DT JJ -LRB-".split())))
    relations = draw.draw(one_each(st.sampled_from(_RELATIONS)))
    tree = convert_dependencies(words, tags, heads, relations)
    assert sorted(tree.words) == list(range(size))


def test_a_parser_of_phrases_is_refused_as_a_base(tmp_path: Path) -> None:
    base = ParseFile(write_brackets(tmp_path, "(NP (DT a) (NN b))"))
    with pytest.raises(InputError, match="its base parser returns phrase trees"):
        PhraseTrees(base)(["a b"])


def test_agreement_counts_spans_and_labels() -> None:
    gold = read_brackets("(ROOT (S (NP (DT the) (NN cat)) (VP (VBD sat) (RB down))))")[0].tree
    own = read_brackets("(S (X (DT the) (NN cat)) (VBD sat) (RB down))")[0].tree
    found = compare_trees([(own, gold)])
    assert found == BracketingScore(predicted=2, gold=3, same_span=2, same_label=1)
    assert (found.labelled_f1, found.unlabelled_f1) == (0.4, 0.8)


def agreement(data: Path, genre: str) -> BracketingScore:
    path = data / "gum-const" / "gum_const.jsonl.gz"
    if not path.is_file():
        pytest.skip("EVENMATCH_DATA does not contain gum-const")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    gold = [read_brackets(row["tree"])[0] for row in rows if genre in row["doc"]]
    derived = derive_trees([sentence.words for sentence in gold])
    return compare_trees((tree, g.tree) for tree, g in zip(derived, gold, strict=True))


@pytest.mark.model("en_core_web_sm")
def test_news_agrees_with_the_treebank(data: Path) -> None:
    found = agreement(data, "_news_")
    assert found.labelled_f1 >= 0.80
    assert found.unlabelled_f1 >= 0.83


@pytest.mark.slow
@pytest.mark.model("en_core_web_sm")
def test_all_genres_agree_with_the_treebank(data: Path) -> None:
    found = agreement(data, "")
    assert found.labelled_f1 >= 0.78
    assert found.unlabelled_f1 >= 0.81
