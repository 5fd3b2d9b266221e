"""fluent_blend: `mqm_blend` and the fluency of the candidate beside that of the reference."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.metrics.blends import fluent_blend

CANDIDATES = ["In May, prices rose.", "In May, price rose be."]
REFERENCE = "Prices went up in May."


def test_it_is_mqm_blend_and_two_likelihoods() -> None:
    found = fluent_blend()
    assert found.parts[0] == em.build("mqm_blend")
    assert [getattr(p, "direction", "") for p in found.parts[1:]] == ["candidate", "reference"]
    own, candidate, reference = found.weights
    assert own == 1
    assert candidate > -reference > 0


@pytest.mark.model("smollm2")
def test_a_score_is_the_weighted_sum_by_hand() -> None:
    blend = fluent_blend()
    given = CANDIDATES, [REFERENCE] * 2
    parts = [em.score(*given, part).values for part in blend.parts]
    wanted = blend.bias + sum(w * v for w, v in zip(blend.weights, parts, strict=True))
    found = em.score(*given, "fluent_blend").values
    assert found == pytest.approx(wanted, abs=1e-6)
    plain = em.score(*given, "mqm_blend").values
    assert found[0] - found[1] > plain[0] - plain[1]  # the second candidate is not fluent


@pytest.mark.model("smollm2")
def test_it_agrees_with_ratings_that_it_was_not_fitted_to(data: Path) -> None:
    (ratings,) = read_ratings(data / "wmt17-da", subsets=["cs-en"])
    cells = tuple(each[::12] for each in ratings.cells(rated=True))
    pairs = ratings.pairs(cells)  # type: ignore[arg-type]  # two arrays
    given = [pair.candidate for pair in pairs], [pair.references for pair in pairs]
    values = em.score(*given, "fluent_blend").values
    assert np.corrcoef(values, ratings.ratings[cells])[0, 1] > 0.6


def test_its_card_is_beside_it() -> None:
    folder = files("evenmatch.metrics") / "shipped" / "fluent_blend"
    assert "fitted on" in (folder / "README.md").read_text("utf-8")
