"""A report as a person reads it: sorting, opening an example, on a phone, in the dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.reports.page import render_page, sortable_table
from evenmatch.reports.plots import line_plot_svg
from evenmatch.reports.results import result_page
from evenmatch.types import Pair
from tests.support import report_results as made
from tests.support.browser import Open


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report of scores, with its texts."""
    page = result_page(made.scored(made.GREEDY, made.LSA, "chrf"), pairs=made.PAIRS, examples=2)
    return written(tmp_path_factory.mktemp("report"), page)


def written(folder: Path, page: str) -> str:
    file = folder / "report.html"
    file.write_text(page, "utf-8")
    return file.as_uri()


def column(page: Any, caption: str, number: int) -> list[str]:
    cells = page.get_by_role("table", name=caption).locator(f"tbody td:nth-child({number})")
    return [str(text) for text in cells.all_inner_texts()]


def test_a_click_on_its_name_sorts_by_a_column_and_back(report: str, visit: Open) -> None:
    page = visit(report)
    table = page.get_by_role("table", name="Score of each pair")
    before = column(page, "Score of each pair", 4)
    button = table.get_by_role("button", name="chrf")
    button.click()
    assert column(page, "Score of each pair", 4) == sorted(before, key=float, reverse=True)
    assert table.locator("th").nth(3).get_attribute("aria-sort") == "descending"
    button.click()
    assert column(page, "Score of each pair", 4) == sorted(before, key=float)
    assert table.locator("th[aria-sort=ascending]").count() == 1


def test_differences_sort_by_their_number_and_stay_on_one_line(tmp_path: Path, visit: Open) -> None:
    cells = [
        "+0.012 (-0.060 to +0.036), p = .471",
        "-0.300*** (-0.400 to -0.200), p < .001",
        "+0.120* (+0.010 to +0.200), p = .030",
    ]
    table = sortable_table(
        [["system", "all"], *(["a long system", cell] for cell in cells)], "gaps"
    )
    page = visit(written(tmp_path, render_page("Gaps", [table], [])), width=390)
    page.get_by_role("table", name="gaps").get_by_role("button", name="all").click()
    assert column(page, "gaps", 2) == [cells[2], cells[0], cells[1]]
    for cell in page.locator("td").all():
        assert cell.bounding_box()["height"] < 40


def test_the_keyboard_sorts_words_from_the_first(report: str, visit: Open) -> None:
    page = visit(report)
    page.get_by_role("button", name="metric").focus()
    page.keyboard.press("Enter")
    names = column(page, "Mean score of each metric", 1)
    assert names[2] == "chrf"
    page.keyboard.press("Space")
    assert column(page, "Mean score of each metric", 1) == names[::-1]


def test_a_dash_is_last_whichever_way_a_column_is_sorted(report: str, visit: Open) -> None:
    page = visit(report)
    for _ in range(2):
        page.get_by_role("button", name="corpus").click()
        assert column(page, "Mean score of each metric", 5)[1:] == ["-", "-"]


def test_an_example_opens_and_switches_between_metrics(report: str, visit: Open) -> None:
    page = visit(report)
    example = page.locator("article", has_text="the the the cat")
    drawn = example.locator("svg.links")
    assert not drawn.is_visible()
    example.get_by_text("Alignment", exact=True).click()
    drawn.wait_for()
    candidate, reference = made.PAIRS[1].candidate, made.PAIRS[1].references[1]
    for metric in (made.GREEDY, made.LSA):
        example.get_by_label("Metric").select_option(metric)
        aligned = em.align(candidate, reference, metric)
        example.get_by_role("status").get_by_text(f"{aligned.score.value:.4f}").wait_for()
        assert example.locator("path.link").count() == len(aligned.pairs)
    assert "#" not in page.url


def test_a_report_without_scripts_still_shows_the_links(report: str, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report)
    example = page.locator("article", has_text="the the the cat")
    example.get_by_text("Alignment", exact=True).click()
    assert example.locator(".evenmatch svg").is_visible()
    context.close()


@pytest.mark.parametrize("kind", ["score", "compare", "audit", "tune", "lisa"])
def test_a_phone_needs_no_sideways_scrolling(tmp_path: Path, visit: Open, kind: str) -> None:
    document = {
        "score": made.scored(made.GREEDY, made.LSA, "chrf"),
        "compare": made.compared(),
        "audit": made.audited(),
        "tune": made.TUNED,
        "lisa": made.LISA,
    }[kind]
    pairs = made.PAIRS if kind == "score" else None
    page = visit(written(tmp_path, result_page(document, pairs=pairs)), width=360)
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.fixture(scope="module")
def long_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report of twenty rows and several metrics."""
    texts = [f"the cat {n} sat" for n in range(20)]
    pairs = [Pair(text, ("the cat sat",)) for text in texts]
    found = em.score(texts, ["the cat sat"] * 20, [made.GREEDY, made.LSA, "chrf", "bleu"])
    return written(tmp_path_factory.mktemp("long"), result_page(found, pairs=pairs))


def test_a_long_table_can_be_searched(long_report: str, visit: Open) -> None:
    page = visit(long_report)
    field = page.get_by_role("searchbox", name="Search: Score of each pair")
    rows = page.get_by_role("table", name="Score of each pair").locator("tbody tr:visible")
    assert rows.count() == 20
    field.fill("cat 1")
    assert rows.count() == 11
    assert page.get_by_text("11 of 20 rows").is_visible()
    page.get_by_role("table", name="Score of each pair").get_by_role("button", name="row").click()
    assert rows.first.locator("td").first.inner_text() == "19"
    field.fill("nothing")
    assert rows.count() == 0
    field.fill("")
    assert rows.count() == 20


def test_a_short_table_has_no_search(report: str, visit: Open) -> None:
    assert visit(report).get_by_role("searchbox").count() == 0


def test_a_wide_table_shows_that_it_scrolls(long_report: str, visit: Open) -> None:
    hint = "Scroll sideways to see the rest"
    phone = visit(long_report, width=390)
    region = phone.get_by_role("region", name="Score of each pair")
    assert region.evaluate("e => e.scrollWidth > e.clientWidth")
    assert region.locator("xpath=following-sibling::p[1]").inner_text().startswith(hint)
    assert "linear-gradient" in region.evaluate("e => getComputedStyle(e).backgroundImage")
    wide = visit(long_report, width=1280)
    region = wide.get_by_role("region", name="Mean score of each metric")
    assert region.evaluate("e => e.scrollWidth <= e.clientWidth")
    assert region.locator("xpath=following-sibling::p[@class='more']").count() == 0


def test_figures_of_a_study_are_dark_on_a_dark_page(tmp_path: Path, visit: Open) -> None:
    figure = line_plot_svg("Loss", ("step", "loss"), {"a": [(0, 1.0), (1, 0.5)]})
    study = {"title": "Study", "findings": [], "tables": {}, "figures": {"loss": figure}}
    address = written(tmp_path, result_page(study | {"notes": []}))
    images = {dark: visit(address, dark=dark).locator("img") for dark in (False, True)}
    filters = [each.evaluate("e => getComputedStyle(e).filter") for each in images.values()]
    assert filters == ["none", "invert(0.91) hue-rotate(180deg)"]


def test_words_can_be_read_in_light_and_dark(report: str, visit: Open) -> None:
    for dark in (False, True):
        page = visit(report, dark=dark)
        for place in ("h1", "caption", "td", ".notes li", ".tick", ".fluid figcaption", "summary"):
            assert page.locator(place).first.evaluate(CONTRAST) >= 4.5, (place, dark)


# The contrast of an element's letters with the nearest background behind it, as WCAG counts it.
CONTRAST = """element => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const style = getComputedStyle(element);
  const ink = element instanceof SVGElement ? style.fill : style.color;
  let behind = element;
  while (parse(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
  const pair = [light(parse(ink)), light(parse(getComputedStyle(behind).backgroundColor))];
  return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
}"""
