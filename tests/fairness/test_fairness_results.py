"""The sets that adapters are measured on, and the page that is made from the results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tools import fairness
from tools.pages import PAGES
from tools.pages import fairness as page

from evenmatch.data.fairness_sets import make_fairness_pair
from evenmatch.models.adapters import find_adapter


def test_the_page_is_the_one_that_the_results_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "FIGURES", tmp_path)
    assert "\n".join(page.page_lines()) + "\n" == (PAGES / "fairness.md").read_text("utf-8")


def test_the_page_is_about_the_adapters_that_are_shipped() -> None:
    rows = [row for row in page.load("runs")["summary"]["rows"] if row["shipped"]]
    assert {row["adapter"] for row in rows} >= {"gender", "religion"}
    for row in rows:
        digest = find_adapter(row["adapter"]).digest.removeprefix("sha256:")
        assert digest[:12] in page.load(row["label"])["signature"]


def test_no_text_of_the_page_is_said_twice() -> None:
    lines = (PAGES / "fairness.md").read_text("utf-8").splitlines()
    told = [line for line in lines if line.startswith(("- ", "#"))]
    assert len(told) > 20
    assert len(set(told)) == len(told)


def test_the_interval_of_a_share_is_wilson_s() -> None:
    """The example of Newcombe (1998): 81 of 263, .255 to .366."""
    assert page.wilson_interval(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)


def test_only_pairs_that_turn_count_in_the_test_of_a_share() -> None:
    """Of 6 pairs that turn, 1 turns away: p = 2 (1 + 6) / 2⁶."""
    before, after = {"prefers": "ooooos" + "sso="}, {"prefers": "ssssso" + "ssoo"}
    assert page.p_of_flips(before, after) == "5 to, 1 away (p = 0.219)"
    assert page.p_of_flips(before, before) == "0 to, 0 away (p = 1.000)"
    assert page.p_of_flips(before, {}) == "-"


def test_bias_is_measured_with_its_two_parts() -> None:
    """Men score 3 and 1 higher: an offset of 2 and a stereotype of 1."""
    pairs = [
        make_fairness_pair("he drove", "x", "she drove", "x", direction=1),
        make_fairness_pair("she sewed", "x", "he sewed", "x", direction=-1),
    ] * 2
    found = fairness.bias_measures("gender", pairs, np.array([[5.0, 2.0], [2.0, 3.0]] * 2))
    assert found["raw"] == 2
    assert found["bias"] == pytest.approx(200 / 3)
    assert (found["offset"], found["stereotype"], found["share"]) == (2, 1, 0.5)
    assert found["beyond"] == 1
    assert found["stereotype_low"] <= 1 <= found["stereotype_high"]
    assert found["prefers"] == "soso"


def test_winobias_names_the_occupation_in_place_of_the_pronoun(data: Path) -> None:
    assert data.is_dir()
    pairs = [p for kind in (1, 2) for p in fairness.winobias_pairs(kind)]
    assert len(pairs) > 700
    for pair in pairs:
        reference = f" {pair.first.references[0].lower()} "
        assert pair.first.references == pair.second.references
        assert pair.first.candidate != pair.second.candidate
        assert not any(f" {word} " in reference for word in ("he", "she", "him"))
