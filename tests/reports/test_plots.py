from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from evenmatch.reports.plots import (
    histogram,
    interval_plot,
    kernel_density,
    line_plot,
    line_plot_svg,
    nice_scale,
    violin_plot,
)
from evenmatch.stats.bootstrap import Interval

SVG = "{http://www.w3.org/2000/svg}"
GROUPS = {
    "a & b": {"one": np.array([0.1, 0.2, 0.9]), "two": np.array([0.5, 0.5, 0.5])},
    "c": {"one": np.array([0.3, 0.4, 0.5])},
}


def words(picture: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def pixels(place: str, size: float) -> float:
    return float(place[:-1]) / 100 * size if place.endswith("%") else float(place)


@pytest.mark.parametrize(
    "picture",
    [
        violin_plot("F", GROUPS).svg_file("<title>"),
        histogram(("pieces", "texts"), [3, 4, 0, 90], 0, 16).svg_file("<title>"),
        line_plot_svg(
            "<title>", ("step", "loss"), {"x": [(0, 1.0), (5, 0.2)], "y": [(0, 1.0), (5, 0.5)]}
        ),
        interval_plot("d", {"a": {"none": Interval(1.0, 0.5, 1.5)}}).svg_file("<title>"),
    ],
    ids=["violins", "histogram", "curves", "intervals"],
)
def test_a_picture_is_xml_that_fits_its_frame(picture: str) -> None:
    tree = ElementTree.fromstring(picture)
    wide, high = float(tree.attrib["width"]), float(tree.attrib["height"])
    area = tree.find(f"{SVG}svg")
    assert area is not None
    left, top = float(area.attrib["x"]), float(area.attrib["y"])
    for node, corner in ((tree, (0.0, 0.0)), (area, (left, top))):
        size = float(node.attrib["width"]), float(node.attrib["height"])
        for each in node.findall(f"{SVG}text"):
            x, y = pixels(each.attrib["x"], size[0]), pixels(each.attrib["y"], size[1])
            assert 0 <= corner[0] + x <= wide
            assert 0 <= corner[1] + y + float(each.get("dy", 0)) <= high
    assert words(picture)[0] == "<title>"


def test_a_violin_is_drawn_for_every_series_and_named_once() -> None:
    found = violin_plot("F", GROUPS).svg_file("v")
    assert found.count('class="median"') == 3
    assert [w for w in words(found) if w in ("one", "two", "a & b", "c")] == [
        "one",
        "two",
        "a & b",
        "c",
    ]


def test_a_bar_is_as_high_as_its_stretch_has_texts() -> None:
    tree = ElementTree.fromstring(histogram(("pieces", "n"), [3, 1, 0, 1], 0, 8).svg_file("h"))
    bars = [float(r.attrib["height"][:-1]) for r in tree.iter(f"{SVG}rect") if "y" in r.attrib]
    assert bars[0] == pytest.approx(3 * bars[1], abs=0.3)
    assert len(bars) == 3


def test_series_beyond_the_colours_are_dashed() -> None:
    lines = {f"run {n}": [(0.0, n), (1.0, n + 1.0)] for n in range(9)}
    plot = line_plot(("x", "y"), lines)
    assert '<path class="c0" ' in plot.shapes
    assert '<path class="c1 d1" ' in plot.shapes
    assert '<span class="c1 d1"></span>run 8' in plot.figure("runs")
    assert "stroke-dasharray" in plot.svg_file("runs")


def test_densities_sum_to_one() -> None:
    values = np.random.default_rng(0).normal(size=200)
    at = np.linspace(-6, 6, 1201)
    assert kernel_density(values, at).sum() * 0.01 == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("values", [[0.2, 0.9], [-3, 5], [0.5, 0.5], [0, 1e-4], [120, 4500]])
def test_a_scale_goes_around_all_values_by_round_steps(values: list[float]) -> None:
    scale = nice_scale(values, 0, 100)
    assert scale.low <= min(values)
    assert scale.high >= max(values) - 1e-9
    assert 1 <= len(scale.ticks) - 1 <= 10
    assert (scale(scale.low), scale(scale.high)) == pytest.approx((0, 100))
