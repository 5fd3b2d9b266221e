"""mqm_blend: `wmt_blend` and a fitted metric in a file of 0.6 MB that comes with the package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.metrics.blends import mqm_blend
from evenmatch.metrics.fitted import FittedMetric, load_adapter_head
from evenmatch.models.adapters import find_adapter

CANDIDATES = ["The cat sat on the mat.", "A dog ran home.", "Prices rose in May."]
REFERENCES = ["A cat sat on the mat.", "The weather is fine today.", "In May, prices went up."]
EXPECTED = [1.3931, -1.8089, 0.6670]


def test_the_file_is_small_and_has_projections_of_two_layers() -> None:
    found = find_adapter("mqm")
    head = load_adapter_head(found)
    assert found.path.stat().st_size < 700_000
    assert head is not None
    assert head.layers == (2, 4)
    assert [each.down.shape for each in head.projections] == [(192, 384)] * 2


def test_it_is_a_fitted_metric_beside_wmt_blend_and_bertscore() -> None:
    fitted, blend, single = mqm_blend().parts
    assert isinstance(fitted, FittedMetric)
    assert blend == em.build("wmt_blend")
    assert single == em.build("bertscore(layer=6, idf='english')")


@pytest.mark.model
def test_scores_are_those_that_were_computed_when_it_was_made() -> None:
    found = em.score(CANDIDATES, REFERENCES, mqm_blend()).values
    assert found == pytest.approx(EXPECTED, abs=1e-3)
    assert found[0] > found[2] > found[1]


@pytest.mark.model
def test_it_agrees_with_ratings_that_it_was_not_fitted_to(data: Path) -> None:
    (ratings,) = read_ratings(data / "wmt17-da", subsets=["zh-en"])
    cells = tuple(each[::5] for each in ratings.cells(rated=True))
    pairs = ratings.pairs(cells)  # type: ignore[arg-type]  # two arrays
    given = [pair.candidate for pair in pairs], [pair.references for pair in pairs]
    values = em.score(*given, mqm_blend()).values
    assert np.corrcoef(values, ratings.ratings[cells])[0, 1] > 0.65


def test_its_card_is_beside_it() -> None:
    folder = files("evenmatch.metrics") / "shipped" / "mqm_blend"
    assert "fitted on" in (folder / "README.md").read_text("utf-8")
