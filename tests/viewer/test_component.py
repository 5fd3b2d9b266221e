"""The viewer in a browser: mouse, keyboard and small screens."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.viewer.page import align_all, alignment_page, alternative_metrics
from tests.support.browser import Open

METRIC = em.build("align(vectors=hashed, alignment=lsa)")
A, B, REFERENCE = "the the cat sat", "the cat sat down", "the cat sat down"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One candidate, with every alignment method."""
    return written(tmp_path_factory.mktemp("one"), [A])


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two candidates to compare."""
    return written(tmp_path_factory.mktemp("two"), [A, B])


def written(folder: Path, candidates: list[str]) -> str:
    metrics = [("mine", METRIC), *alternative_metrics(METRIC)]
    also = align_all(metrics, candidates, REFERENCE)
    file = folder / "page.html"
    file.write_text(alignment_page(em.align(A, REFERENCE, METRIC), also=also), "utf-8")
    return file.as_uri()


def said(page: Any) -> str:
    return str(page.get_by_role("status").inner_text())


def test_every_pair_is_a_link_and_every_unit_a_box(page: str, visit: Open) -> None:
    seen = visit(page)
    aligned = em.align(A, REFERENCE, METRIC)
    assert seen.locator("path.link").count() == len(aligned.pairs)
    assert seen.locator(".unit").count() == 8
    assert f"score {aligned.score.value:.4f}" in said(seen)


def test_another_metric_changes_the_links(page: str, visit: Open) -> None:
    seen = visit(page)
    before = seen.locator("path.link").count()
    seen.get_by_label("Metric").select_option("same metric, greedy alignment")
    greedy = em.align(A, REFERENCE, "align(vectors=hashed)")
    seen.wait_for_function("document.location.hash.includes('greedy')")
    assert seen.locator("path.link").count() == len(greedy.pairs) != before
    assert f"{greedy.score.value:.4f}" in said(seen)


def test_pointing_at_a_link_says_its_numbers(page: str, visit: Open) -> None:
    seen = visit(page)
    seen.locator("path.link").first.dispatch_event("pointerover")
    assert "similarity 1.000, weight 1.00" in said(seen)


def test_pointing_at_a_cell_says_its_numbers(page: str, visit: Open) -> None:
    seen = visit(page)
    seen.get_by_label("Heat map").check()
    seen.locator(".viewer td.heat").nth(1).hover()
    assert said(seen).startswith("“the” – “cat”: similarity")
    assert "not matched" in said(seen)


def test_two_candidates_are_compared_and_the_difference_explained(both: str, visit: Open) -> None:
    seen = visit(both)
    assert seen.locator(".viewer figure").count() == 2
    why = seen.get_by_role("region", name="explanation of the difference").inner_text()
    assert "B scores higher than A by" in why
    assert "“down” is covered" in why
    assert "1.00 by “down” in B: recall +0.2" in why


def test_the_keyboard_alone_reaches_everything(page: str, visit: Open) -> None:
    seen = visit(page)
    seen.get_by_role("textbox", name="Candidate").focus()
    for _ in range(3):  # the reference, the metric, the view
        seen.keyboard.press("Tab")
    seen.keyboard.press("ArrowRight")
    seen.locator(".viewer table").wait_for()
    for _ in range(4):  # two buttons, the region, its first cell
        seen.keyboard.press("Tab")
    seen.keyboard.press("ArrowDown")
    seen.keyboard.press("ArrowRight")
    assert said(seen).startswith("“the” – “cat”")
    assert (
        seen.evaluate(
            "document.querySelector('evenmatch-viewer').shadowRoot.activeElement.tabIndex"
        )
        == 0
    )


def test_arrows_walk_over_units_and_between_the_rows(page: str, visit: Open) -> None:
    seen = visit(page)
    seen.locator(".unit").first.focus()
    seen.keyboard.press("ArrowRight")
    assert said(seen).startswith("candidate “the” (no. 2)")
    seen.keyboard.press("ArrowDown")
    assert said(seen).startswith("reference “cat”")


def test_every_control_and_unit_has_a_name_to_read_aloud(page: str, visit: Open) -> None:
    seen = visit(page)
    for role, name in (("combobox", "Metric"), ("radio", "Links"), ("button", "Copy as SVG")):
        assert seen.get_by_role(role, name=name).count() == 1
    assert seen.get_by_role("img", name="reference “down”").count() == 1
    seen.get_by_label("Heat map").check()
    assert seen.get_by_role("gridcell").count() == 16


@pytest.mark.parametrize("view", ["links", "map"])
def test_the_picture_copied_is_standalone_svg(page: str, visit: Open, view: str) -> None:
    seen = visit(f"{page}#v={view}")
    seen.get_by_role("button", name="Copy as SVG").click()
    seen.get_by_text("Copied the picture").wait_for()
    copied = seen.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("<svg xmlns=")
    read = "new DOMParser().parseFromString(s, 'image/svg+xml').querySelector('parsererror')"
    assert seen.evaluate(f"s => {read} === null", copied)


def test_a_url_restores_the_view(page: str, visit: Open) -> None:
    seen = visit(page)
    seen.get_by_label("Metric").select_option("same metric, transport alignment")
    seen.get_by_label("Heat map").check()
    again = visit(seen.url)
    assert again.get_by_label("Metric").input_value() == "same metric, transport alignment"
    assert again.locator(".viewer td.heat").count() == 16


@pytest.mark.parametrize("view", ["links", "map"])
@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_needs_sideways_scrolling(
    both: str, long_texts: str, visit: Open, view: str, width: int
) -> None:
    for address in (both, long_texts):
        seen = visit(f"{address}#v={view}", width=width)
        assert seen.evaluate("document.documentElement.scrollWidth") <= width


LONG = " ".join(f"word{n} and" for n in range(20))
BOXES = """[...document.querySelector('evenmatch-viewer').shadowRoot.querySelectorAll('.unit rect')]
  .map((box) => box.getBoundingClientRect()).map((box) => [box.left, box.right, box.top])"""


@pytest.fixture(scope="module")
def long_texts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two candidates of forty words."""
    candidates = [LONG, LONG.replace("and", "or")]
    also = align_all([("mine", METRIC)], candidates, LONG)
    file = tmp_path_factory.mktemp("long") / "page.html"
    file.write_text(alignment_page(em.align(LONG, LONG, METRIC), also=also), "utf-8")
    return file.as_uri()


@pytest.mark.parametrize("width", [1280, 800])
def test_a_long_sentence_wraps(long_texts: str, visit: Open, width: int) -> None:
    boxes = visit(long_texts, width=width).evaluate(BOXES)
    assert len(boxes) == 160
    assert all(left >= 0 and right <= width for left, right, _ in boxes)
    assert len({top for _, _, top in boxes[:40]}) > 1


def test_two_candidates_stand_side_by_side_where_there_is_room(
    long_texts: str, both: str, visit: Open
) -> None:
    def corners(seen: Any) -> list[tuple[float, float]]:
        found = [figure.bounding_box() for figure in seen.locator(".viewer figure").all()]
        return [(box["x"], box["y"]) for box in found]

    (x, y), (u, v) = corners(visit(long_texts, width=1280))
    assert (y, x < u) == (v, True)
    (x, y), (u, v) = corners(visit(long_texts, width=800))
    assert (x, y < v) == (u, True)
    for address, beside in ((both, True), (long_texts, False)):  # a wide table keeps its width
        (_, y), (_, v) = corners(visit(f"{address}#v=map", width=1280))
        assert (y == v) == beside


def test_a_picture_is_drawn_again_for_another_width(long_texts: str, visit: Open) -> None:
    seen = visit(long_texts, width=1280)
    seen.set_viewport_size({"width": 700, "height": 900})
    # polled here: the page's own policy keeps a browser from evaluating an expression repeatedly
    fits = f"{BOXES}.every(([, right]) => right <= 700)"
    end = time.monotonic() + 10
    while not seen.evaluate(fits) and time.monotonic() < end:
        time.sleep(0.05)
    assert seen.evaluate(fits)


def test_values_appear_at_the_cursor(page: str, visit: Open) -> None:
    seen = visit(page)
    tip = seen.locator(".tip")
    assert not tip.is_visible()
    unit = seen.locator(".unit").nth(3)
    unit.hover()
    assert tip.inner_text() == said(seen)
    here, box = tip.bounding_box(), unit.bounding_box()
    assert abs(here["x"] - box["x"]) < 100
    assert 0 < here["y"] - box["y"] < 60
    seen.mouse.move(0, 0)
    assert not tip.is_visible()


def test_pointing_at_a_unit_dims_the_links_of_others(long_texts: str, visit: Open) -> None:
    seen = visit(long_texts, width=1280)
    seen.locator(".unit").nth(3).hover()
    figure = seen.locator(".viewer figure").first
    opacity = "links => links.map((link) => Number(getComputedStyle(link).opacity))"
    lit, others = (figure.locator(f"path.link{rest}") for rest in (".lit", ":not(.lit)"))
    assert lit.evaluate_all(opacity) == [1]
    end = time.monotonic() + 10
    while max(others.evaluate_all(opacity)) > 0.13 and time.monotonic() < end:
        time.sleep(0.05)
    assert max(others.evaluate_all(opacity)) < 0.13
    assert others.count() == 39


@pytest.mark.parametrize("width", [360, 1280])
def test_values_at_the_edge_stay_on_the_screen(long_texts: str, visit: Open, width: int) -> None:
    seen = visit(long_texts, width=width)
    lefts = [left for left, _, _ in seen.evaluate(BOXES)]
    seen.locator(".unit").nth(lefts.index(max(lefts))).hover()
    tip = seen.locator(".tip")
    tip.wait_for()
    box = tip.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert box["y"] + box["height"] <= 900


def test_a_control_that_is_disabled_says_why(page: str, visit: Open) -> None:
    seen = visit(page)
    assert seen.get_by_label("Trees").is_disabled()
    assert seen.get_by_text("this metric does not align parse trees").is_visible()
    described = seen.get_by_label("Trees").get_attribute("aria-describedby")
    assert seen.locator(f"#{described}").is_visible()


@pytest.mark.model
def test_sub_words_are_marked_in_the_viewer(tmp_path: Path, visit: Open) -> None:
    file = tmp_path / "page.html"
    file.write_text(alignment_page(em.align("a walkathon", "a walk", "f_disc")), "utf-8")
    texts = visit(file.as_uri()).locator(".unit text").all_text_contents()
    assert texts == ["a", "walk", "##ath", "##on", "a", "walk"]


def test_dark_is_dark_and_light_is_light(page: str, visit: Open) -> None:
    colour = (
        "getComputedStyle(document.querySelector('evenmatch-viewer').shadowRoot"
        ".querySelector('.evenmatch')).backgroundColor"
    )
    assert visit(page).evaluate(colour) == "rgb(255, 255, 255)"
    assert visit(page, dark=True).evaluate(colour) == "rgb(22, 25, 29)"


def test_markup_in_a_text_is_shown_and_not_run(tmp_path: Path, visit: Open) -> None:
    text = "<img src=x onerror=alert(1)> </script><script>alert(2)</script>"
    file = tmp_path / "page.html"
    file.write_text(alignment_page(em.align(text, text, METRIC)), "utf-8")
    seen = visit(file.as_uri())
    assert seen.locator(".unit").count() > 2
    assert seen.locator("img[src]").count() == 0


def test_a_notebook_output_works_by_itself(tmp_path: Path, visit: Open) -> None:
    outputs = [em.align(text, REFERENCE, METRIC)._repr_html_() for text in (A, B)]
    file = tmp_path / "notebook.html"
    file.write_text(f"<meta charset=utf-8><body>{''.join(map(str, outputs))}</body>", "utf-8")
    seen = visit(file.as_uri())
    assert seen.locator("svg.links").count() == 2
    assert "#" not in seen.url


# The smallest contrast of a number with its cell, whose colour is mixed with that of the page.
LEAST_CONTRAST = """() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const root = document.querySelector("evenmatch-viewer").shadowRoot;
  const paper = parse(getComputedStyle(root.querySelector(".viewer")).backgroundColor);
  return Math.min(...[...root.querySelectorAll("td.heat")].map((cell) => {
    const style = getComputedStyle(cell), [r, g, b, a = 1] = parse(style.backgroundColor);
    const behind = [r, g, b].map((v, i) => a * v + (1 - a) * paper[i]);
    const pair = [light(parse(style.color)), light(behind)];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  }));
}"""


@pytest.mark.parametrize("dark", [False, True])
def test_every_number_of_the_heat_map_can_be_read(tmp_path: Path, visit: Open, dark: bool) -> None:
    words = " ".join("abcdefghijklmnopqrstuvwxyz"[:n] for n in range(1, 27))
    aligned = em.align(words, words, "align(vectors=bare, similarity=edit)")
    file = tmp_path / "page.html"
    file.write_text(alignment_page(aligned), "utf-8")
    seen = visit(f"{file.as_uri()}#v=map", dark=dark)
    assert seen.locator(".viewer td.heat").count() == 26 * 26
    assert seen.evaluate(LEAST_CONTRAST) >= 4.5


def test_a_wide_heat_map_says_that_it_scrolls_and_keeps_its_names(
    long_texts: str, visit: Open
) -> None:
    seen = visit(f"{long_texts}#v=map", width=390)
    assert seen.get_by_text("Scroll sideways to see the rest").count() == 2
    name = seen.locator(".viewer tbody th").first
    before = name.bounding_box()
    seen.locator(".viewer .wide").first.evaluate("region => region.scrollLeft = 400")
    assert name.bounding_box() == before
    seen.get_by_label("Links").check()
    assert seen.get_by_text("Scroll sideways to see the rest").count() == 0


def test_a_difference_is_explained_by_partners_that_are_similar(
    tmp_path: Path, visit: Open
) -> None:
    exact = em.build("align(vectors=bare, similarity=exact)")  # greedy: each unit has a partner
    candidates, reference = ["a a a a a x", "b"], "a b"
    also = align_all([("mine", exact)], candidates, reference)
    file = tmp_path / "page.html"
    file.write_text(alignment_page(em.align(candidates[0], reference, exact), also=also), "utf-8")
    why = visit(file.as_uri()).locator(".why").inner_text()
    assert "is covered 0.00 by nothing in A and 1.00 by “b” in B" in why
    assert "A’s “x” has credit 0.00: precision of A" in why
    assert "by “a”, “a”, “a” and 2 more in A and 0.00 by nothing in B" in why
