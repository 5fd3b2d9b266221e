from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from evenmatch.errors import InputError
from evenmatch.stats.bootstrap import (
    bootstrap_counts,
    correlation_intervals,
    difference_interval,
)
from evenmatch.stats.levels import Level, correlate_panel, correlation, prepare_level
from evenmatch.stats.panel import Panel, make_panel
from tests.support.numbers import made

METHODS = ("pearson", "spearman", "kendall", "kendall_c", "accuracy", "calibrated_accuracy")
LEVELS = ("system", "segment", "per_item", "per_system")


@pytest.mark.parametrize("level", LEVELS)
def test_a_resample_is_the_panel_with_drawn_systems_and_segments(level: Level) -> None:
    scores = made(2, 7, 9)
    rng = np.random.default_rng(5)
    systems, segments = bootstrap_counts(7, 4, rng), bootstrap_counts(9, 4, rng)
    found = prepare_level(scores, level, "pearson")(systems, segments)
    for b in range(4):
        rows = np.repeat(np.arange(7), systems[b].astype(int))
        columns = np.repeat(np.arange(9), segments[b].astype(int))
        drawn = Panel(scores.metrics[:, rows][:, :, columns], scores.human[rows][:, columns])
        assert_allclose(found[b], correlate_panel(drawn, level=level, method="pearson"), rtol=1e-9)


def test_a_resample_draws_as_many_as_there_are() -> None:
    assert (bootstrap_counts(7, 20, np.random.default_rng(0)).sum(1) == 7).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("level", LEVELS)
def test_an_interval_holds_its_value(level: Level, method: str) -> None:
    found = correlation_intervals(
        made(2, 10, 20),
        level=level,
        method=method,  # type: ignore[arg-type]  # one of the names
        resamples=200,
    )
    for interval in found:
        assert interval.low <= interval.value <= interval.high


def test_the_same_seed_gives_the_same_interval() -> None:
    scores = made(1, 10, 20)
    one, again, other = (
        correlation_intervals(scores, level="segment", method="pearson", resamples=50, seed=s)
        for s in (1, 1, 2)
    )
    assert one == again
    assert one != other


def test_an_interval_over_systems_agrees_with_scipys() -> None:
    scores = made(1, 25, 1, seed=7)
    (found,) = correlation_intervals(scores, level="system", method="pearson", resamples=20_000)
    theirs = stats.bootstrap(
        (scores.metrics[0, :, 0], scores.human[:, 0]),
        lambda x, y, axis: correlation(x, y, "pearson"),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        method="BCa",
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert_allclose([found.low, found.high], theirs, atol=0.02)


def test_rounding_in_the_last_bits_does_not_move_an_interval() -> None:
    """With six segments, many resamples repeat the data, summed in another order."""
    plain = made(1, 2, 6)
    found = []
    for seed in range(20):
        noise = 1 + np.random.default_rng(seed).normal(0, 2e-16, plain.metrics.shape)
        scores = Panel(plain.metrics * noise, plain.human)
        found.append(correlation_intervals(scores, level="segment", method="pearson")[0].low)
    assert max(found) - min(found) < 1e-9


def test_a_wider_confidence_gives_a_wider_interval() -> None:
    scores = made(1, 10, 20)
    wide, narrow = (
        correlation_intervals(scores, level="system", method="pearson", confidence=c)[0]
        for c in (0.99, 0.8)
    )
    assert wide.low < narrow.low < narrow.high < wide.high


def test_a_difference_of_two_metrics_is_paired() -> None:
    scores = made(1, 12, 30)
    twins = Panel(np.concatenate([scores.metrics, scores.metrics * 2]), scores.human)
    found = difference_interval(twins, 0, 1, level="system", method="pearson")
    assert_allclose([found.value, found.low, found.high], 0, atol=1e-12)


def test_a_difference_is_the_first_less_the_second() -> None:
    scores = made(3, 12, 30)
    values = correlate_panel(scores, level="segment", method="spearman")
    found = difference_interval(scores, 2, 0, level="segment", method="spearman", resamples=200)
    assert found.value == pytest.approx(values[2] - values[0])
    assert found.low <= found.value <= found.high


def test_a_metric_without_a_correlation_has_no_interval() -> None:
    (found,) = correlation_intervals(
        make_panel([1, 1, 1, 1], [1, 2, 3, 4]), level="system", method="pearson"
    )
    assert np.isnan([found.value, found.low, found.high]).all()


def test_resamples_without_a_correlation_do_not_count() -> None:
    # of three systems every ninth resample holds a single one
    (found,) = correlation_intervals(
        make_panel([1, 2, 4], [1, 3, 4]), level="system", method="pearson"
    )
    assert -1 <= found.low <= found.high <= 1


def test_scores_per_system_cannot_be_resampled_over_segments() -> None:
    with pytest.raises(InputError, match="over segments needs scores per segment, got one per sy"):
        correlation_intervals(make_panel([1, 2, 3], [1, 2, 3]), level="segment", method="pearson")


def test_no_resamples_are_refused() -> None:
    with pytest.raises(InputError, match="0 resamples; give at least 1"):
        correlation_intervals(made(1, 3, 3), level="system", method="pearson", resamples=0)


def test_a_confidence_that_is_no_share_is_refused() -> None:
    with pytest.raises(InputError, match="confidence 95; give a share between 0 and 1, such as"):
        correlation_intervals(made(1, 3, 3), level="system", method="pearson", confidence=95)
