"""REALSumm two ways: papers say one and compute the other, so both come out by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pytest
from scipy import stats

import evenmatch as em

AtLevel: TypeAlias = Literal["segment", "per_item"]


@pytest.fixture(scope="module")
def rated(data: Path) -> Any:
    (only,) = em.read_ratings("summ-realsumm")
    return only


@pytest.fixture(scope="module")
def overlaps(rated: Any) -> Any:
    """ROUGE-1 of every system's summary of every document."""
    systems = len(rated.candidates)
    scores = em.score(
        [text for row in rated.candidates for text in row],
        [list(references) for references in rated.references] * systems,
        "rouge1",
    )
    return np.array([s.value for s in scores.segments]).reshape(systems, -1)


def agreement(rated: Any, level: AtLevel) -> float:
    found = em.correlate("rouge1", [rated], level, "spearman", resamples=1)
    (entry,) = [e for e in found.entries if e.subset == "litepyramid_recall"]
    return float(entry.value)


def test_pooled_takes_all_2400_summaries_as_one_sample(rated: Any, overlaps: Any) -> None:
    assert overlaps.shape == (24, 100)
    expected = stats.spearmanr(overlaps.ravel(), rated.ratings.ravel()).statistic
    assert agreement(rated, "segment") == pytest.approx(expected, abs=1e-12)


def test_per_document_is_the_mean_over_the_100_documents(rated: Any, overlaps: Any) -> None:
    each = [stats.spearmanr(overlaps[:, d], rated.ratings[:, d]).statistic for d in range(100)]
    assert agreement(rated, "per_item") == pytest.approx(np.mean(each), abs=1e-12)
    pooled = stats.spearmanr(overlaps.ravel(), rated.ratings.ravel()).statistic
    assert abs(np.mean(each) - pooled) > 0.02
