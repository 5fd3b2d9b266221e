from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import evenmatch as em
from evenmatch.units.parsers.files import ParseFile
from evenmatch.units.subtrees import Constituents, Subtrees
from evenmatch.viewer.page import alignment_page
from evenmatch.viewer.trees import TreePair, lay_out_trees, tree_svg_file
from tests.support.parses import BY, HAVING, write_brackets, write_conllu


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
    alone = [g for g in root.iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "alone"]
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
