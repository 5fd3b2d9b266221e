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


def test_the_page_is_about_the_adapter_that_is_shipped() -> None:
    digest = find_adapter("gender").digest.removeprefix("sha256:")
    assert digest[:12] in page.load("gender-0")["signature"]


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


def test_winobias_names_the_occupation_in_place_of_the_pronoun(data: Path) -> None:
    assert data.is_dir()
    pairs = [p for kind in (1, 2) for p in fairness.winobias_pairs(kind)]
    assert len(pairs) > 700
    for pair in pairs:
        reference = f" {pair.first.references[0].lower()} "
        assert pair.first.references == pair.second.references
        assert pair.first.candidate != pair.second.candidate
        assert not any(f" {word} " in reference for word in ("he", "she", "him"))
