"""The viewer with a structure metric: trees and the other views."""

from __future__ import annotations

from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.units.parsers.files import ParseFile
from evenmatch.units.subtrees import Constituents, Subtrees
from evenmatch.viewer.page import align_all, alignment_page
from evenmatch.viewer.trees import lay_out_trees
from tests.support.browser import Open
from tests.support.parses import BY, HAVING, write_brackets, write_conllu

FLAT = em.build("align(vectors=hashed)")


@pytest.fixture(scope="module")
def splitter(tmp_path_factory: pytest.TempPathFactory) -> Subtrees:
    return Subtrees(ParseFile(write_conllu(tmp_path_factory.mktemp("parses"))))


@pytest.fixture(scope="module")
def metric(splitter: Subtrees) -> em.AlignMetric:
    return em.AlignMetric(
        splitter, em.build("hashed(lower=False)"), em.build("same_label"), em.build("greedy")
    )


@pytest.fixture
def page(tmp_path: Path, metric: em.AlignMetric) -> str:
    """A structure metric and a flat one to switch to."""
    also = align_all([("structure", metric), ("flat", FLAT)], [BY], HAVING)
    file = tmp_path / "page.html"
    file.write_text(alignment_page(em.align(BY, HAVING, metric), also=also), "utf-8")
    return file.as_uri()


def test_trees_are_drawn_with_a_line_for_every_link(
    page: str, visit: Open, splitter: Subtrees, metric: em.AlignMetric
) -> None:
    seen = visit(page)
    seen.get_by_role("radio", name="Trees").check()
    wanted = lay_out_trees(splitter, BY, HAVING, em.align(BY, HAVING, metric))
    seen.locator("svg.trees").wait_for()
    assert seen.locator("svg.trees .joint").count() == len(wanted.links)
    assert seen.locator("svg.trees .alone").count() == 2
    assert (
        seen.get_by_role(
            "img", name="candidate tree with 8 nodes, reference tree with 8 nodes"
        ).count()
        == 1
    )


def test_a_metric_without_trees_shows_links_and_offers_none(page: str, visit: Open) -> None:
    seen = visit(f"{page}#v=trees")
    seen.locator("svg.trees").wait_for()
    seen.get_by_label("Metric").select_option("flat")
    seen.locator("svg.links").wait_for()
    assert seen.get_by_label("Trees").is_disabled()
    assert seen.get_by_text("this metric does not align parse trees").is_visible()
    seen.get_by_label("Metric").select_option("structure")
    seen.locator("svg.trees").wait_for()
    assert not seen.get_by_text("this metric does not align parse trees").is_visible()


def test_trees_are_named_and_their_links_say_their_values(page: str, visit: Open) -> None:
    seen = visit(f"{page}#v=trees")
    names = seen.locator("svg.trees .side").all_text_contents()
    assert names == ["candidate", "reference"]
    joint = seen.locator("svg.trees .joint").first
    joint.dispatch_event("pointerover")
    assert seen.locator(".tip").inner_text() == joint.locator("title").text_content()
    assert seen.locator("svg.trees .joint.lit").count() == 1


def test_pointing_at_a_node_marks_its_links(page: str, visit: Open) -> None:
    seen = visit(f"{page}#v=trees")
    node = seen.locator("svg.trees .node[data-tree=candidate]", has_text="girl")
    node.hover()
    own = seen.locator(f"svg.trees .joint[data-candidate='{node.get_attribute('data-at')}']")
    assert own.count() == seen.locator("svg.trees .joint.lit").count() >= 1
    seen.mouse.move(0, 0)
    assert seen.locator("svg.trees .joint.lit").count() == 0


LONG_TREE = "(S (NP (NNP Rome)) (VP (VBD fell)" + " (PP (IN in) (NP (DT a) (NN day)))" * 9 + "))"


def test_trees_of_long_sentences_fit_a_laptop(tmp_path: Path, visit: Open) -> None:
    splitter = Constituents(ParseFile(write_brackets(tmp_path, LONG_TREE)))
    long = em.AlignMetric(splitter, em.build("hashed"), em.build("same_label"), em.build("lsa"))
    text = "Rome fell" + " in a day" * 9
    file = tmp_path / "page.html"
    also = align_all([("long", long)], [text], text)
    file.write_text(alignment_page(em.align(text, text, long), also=also), "utf-8")
    region = visit(file.as_uri(), width=1280).get_by_role("region", name="trees")
    assert region.evaluate("e => e.scrollWidth <= e.clientWidth")
    phone = visit(file.as_uri(), width=390)
    region = phone.get_by_role("region", name="trees")
    assert region.evaluate("e => e.scrollWidth > e.clientWidth")  # shrunk by a third at most
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


def test_trees_are_copied_as_svg(page: str, visit: Open) -> None:
    seen = visit(f"{page}#v=trees")
    seen.get_by_role("button", name="Copy as SVG").click()
    seen.get_by_text("Copied the picture").wait_for()
    copied = seen.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("<svg")
    assert "telescope" in copied


def test_trees_on_a_narrow_screen_scroll_by_themselves(page: str, visit: Open) -> None:
    seen = visit(f"{page}#v=trees", width=360)
    seen.locator("svg.trees").wait_for()
    assert seen.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_structure_metric_begins_with_its_trees(visit: Open, page: str) -> None:
    viewer = visit(page)
    assert viewer.get_by_role("radio", name="Trees").is_checked()
    assert viewer.locator("svg.trees").is_visible()
    assert visit(page + "#v=links").get_by_role("radio", name="Links").is_checked()
