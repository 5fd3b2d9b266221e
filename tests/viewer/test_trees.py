from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree

import pytest

import evenmatch as em
from evenmatch.units.parsers.files import ParseFile
from evenmatch.units.subtrees import Constituents, Subtrees
from evenmatch.viewer.links import FONT_SIZE, text_width
from evenmatch.viewer.page import alignment_page
from evenmatch.viewer.trees import NodePosition, TreePair, lay_out_trees, tree_svg_file
from tests.support.parses import BY, HAVING, write_brackets, write_conllu

Point: TypeAlias = tuple[float, float]


def metric(splitter: Subtrees | Constituents) -> em.AlignMetric:
    return em.AlignMetric(
        splitter, em.build("hashed(lower=False)"), em.build("same_label"), em.build("greedy")
    )


@pytest.fixture
def dependencies(tmp_path: Path) -> tuple[TreePair, em.Aligned]:
    splitter = Subtrees(ParseFile(write_conllu(tmp_path)))
    aligned = em.align(BY, HAVING, metric(splitter))
    return lay_out_trees(splitter, BY, HAVING, aligned), aligned


def test_words_are_in_order_and_below_their_heads(
    dependencies: tuple[TreePair, em.Aligned],
) -> None:
    places = dependencies[0].candidate
    by_word = {place.text: place for place in places if place.text != "a"}
    order = ["I", "saw", "girl", "by", "telescope", "."]
    assert sorted(order, key=lambda word: by_word[word].x) == order
    assert by_word["saw"].y < by_word["girl"].y == by_word["by"].y < by_word["telescope"].y


def test_links_connect_only_pairs_that_pass_the_filter(
    dependencies: tuple[TreePair, em.Aligned],
) -> None:
    pair = dependencies[0]
    joined = {(pair.candidate[k.start].text, pair.reference[k.end].text) for k in pair.links}
    assert joined == {(w, w) for w in ("I", "saw", "a", "girl", "telescope", ".")}


def test_the_picture_is_xml_with_a_dashed_node_for_unpaired_nodes(
    dependencies: tuple[TreePair, em.Aligned],
) -> None:
    root = ElementTree.fromstring(tree_svg_file(dependencies[0], "<score> & more"))
    groups = root.iter("{http://www.w3.org/2000/svg}g")
    alone = [g for g in groups if g.get("class") == "node alone"]
    texts = {"".join(g.itertext()) for g in alone}
    assert texts == {"by", "having"}
    assert root.get("aria-label") == "<score> & more"


def test_phrases_are_drawn_with_words_under_their_tags(tmp_path: Path) -> None:
    tree = "(S (NP (NNP Rome)) (VP (VBD fell)))"
    splitter = Constituents(ParseFile(write_brackets(tmp_path, tree)))
    pair = lay_out_trees(
        splitter, "Rome fell", "Rome fell", em.align("Rome fell", "Rome fell", metric(splitter))
    )
    assert [(p.text, p.word) for p in pair.candidate] == [
        ("S", ""),
        ("NP", ""),
        ("NNP", "Rome"),
        ("VP", ""),
        ("VBD", "fell"),
    ]


def test_a_page_holds_the_trees_beside_the_rest(
    dependencies: tuple[TreePair, em.Aligned],
) -> None:
    page = alignment_page(dependencies[1], dependencies[0])
    assert page.count('class="trees"') == 1
    assert 'class="trees"' not in alignment_page(dependencies[1])


def crosses(segment: tuple[Point, Point], place: NodePosition) -> bool:
    """Whether a horizontal or vertical line passes through a node or its word."""
    (x1, x2), (y1, y2) = (sorted(ends) for ends in zip(*segment, strict=True))
    half = FONT_SIZE * max(text_width(place.text), text_width(place.word)) / 2
    bottom = place.y + (32 if place.word else 11)
    return x2 > place.x - half and x1 < place.x + half and y2 > place.y - 11 and y1 < bottom


BRACKETS = "(S (NP (NNP Rome)) (VP (VBD fell) (PP (IN in) (NP (DT a) (NN day)))) (. .))"


@pytest.mark.parametrize("width", [1150.0, 300.0], ids=["side by side", "stacked"])
@pytest.mark.parametrize("kind", ["dependencies", "phrases"])
@pytest.mark.parametrize("solver", ["greedy", "lsa"])
def test_no_link_passes_behind_a_node(
    tmp_path: Path, kind: str, solver: str, width: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenmatch.viewer.trees._MOST_WIDTH", width)
    splitter: Subtrees | Constituents = Subtrees(ParseFile(write_conllu(tmp_path)))
    texts = BY, HAVING
    if kind == "phrases":
        splitter = Constituents(ParseFile(write_brackets(tmp_path, BRACKETS)))
        texts = ("Rome fell in a day .",) * 2
    by = em.AlignMetric(
        splitter, em.build("hashed(lower=False)"), em.build("cosine"), em.build(solver)
    )
    pair = lay_out_trees(splitter, *texts, em.align(*texts, by))
    assert len(pair.links) >= 8
    for link in pair.links:
        ends = pair.candidate[link.start], pair.reference[link.end]
        for segment in pairwise(link.points):
            for place in (*pair.candidate, *pair.reference):
                assert not crosses(segment, place), (link, place)
        assert [p.y - 11 for p in ends] == [link.points[0][1], link.points[-1][1]]
        for point, place in zip((link.points[0], link.points[-1]), ends, strict=True):
            assert abs(point[0] - place.x) <= FONT_SIZE * text_width(place.text) / 2 + 5
    lanes = [link.points[2][0] for link in pair.links]
    assert len(set(lanes)) == len(lanes)


def test_each_tree_is_named_above_its_first_node(
    dependencies: tuple[TreePair, em.Aligned],
) -> None:
    pair = dependencies[0]
    root = ElementTree.fromstring(tree_svg_file(pair, "x"))
    names = {
        "".join(text.itertext()): float(text.get("x", ""))
        for text in root.iter("{http://www.w3.org/2000/svg}text")
        if text.get("class") == "side"
    }
    assert list(names) == ["candidate", "reference"]
    assert names["candidate"] < min(p.x for p in pair.candidate)
    assert max(p.x for p in pair.candidate) < names["reference"] < min(p.x for p in pair.reference)


LONG = "(S (NP (NNP Rome)) (VP (VBD fell)" + " (PP (IN in) (NP (DT a) (NN day)))" * 12 + "))"


@pytest.mark.parametrize("kind", ["dependencies", "phrases"])
def test_nodes_of_a_row_do_not_overlap_and_words_stay_in_order(tmp_path: Path, kind: str) -> None:
    splitter: Subtrees | Constituents = Subtrees(ParseFile(write_conllu(tmp_path)))
    texts = BY, HAVING
    if kind == "phrases":
        splitter = Constituents(ParseFile(write_brackets(tmp_path, LONG)))
        texts = ("Rome fell" + " in a day" * 12,) * 2
    pair = lay_out_trees(splitter, *texts, em.align(*texts, metric(splitter)))
    for places in (pair.candidate, pair.reference):
        for row in {place.y for place in places}:
            nodes = sorted((p for p in places if p.y == row), key=lambda p: p.x)
            for a, b in pairwise(nodes):
                widths = [max(text_width(p.text), text_width(p.word)) for p in (a, b)]
                assert b.x - a.x >= FONT_SIZE * sum(widths) / 2, (a, b)
        words = [p.x for p in places if p.word]
        assert words == sorted(words)


def test_wide_trees_stand_one_below_the_other(tmp_path: Path) -> None:
    splitter = Constituents(ParseFile(write_brackets(tmp_path, LONG)))
    text = "Rome fell" + " in a day" * 12
    pair = lay_out_trees(splitter, text, text, em.align(text, text, metric(splitter)))
    assert max(p.y for p in pair.candidate) < min(p.y for p in pair.reference)
    (_, x, y), (_, u, v) = pair.names
    assert (x, y < v < min(p.y for p in pair.reference)) == (u, True)
    assert max(x for link in pair.links for x, _ in link.points) <= pair.width
