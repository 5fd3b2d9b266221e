"""Ground truth by simulation: coverage of intervals, false positives of tests."""

from __future__ import annotations

import time

import numpy as np
import pytest

from evenmatch.stats.bootstrap import correlation_intervals, difference_interval, percentile_bounds
from evenmatch.stats.levels import CoefficientName, Level, correlate_panel
from evenmatch.stats.paired import (
    approximate_randomisation,
    bootstrap_p_value,
    mean_counts,
    mean_score,
    resample_scores,
    williams_matrix,
)
from evenmatch.stats.panel import Panel, make_panel
from evenmatch.stats.permutation import Swap, permutation_matrix
from tests.support.numbers import made

pytestmark = pytest.mark.slow

# data and resamples must not come from the same stream of random numbers
DATA = 1_000_000


def within_binomial_error(found: float, trials: int, expected: float = 0.05) -> bool:
    """Whether a rate is within the 99 % interval of such simulations."""
    return abs(found - expected) <= 2.58 * float(np.sqrt(expected * (1 - expected) / trials))


def truth_of_normals(name: CoefficientName, rho: float) -> float:
    """The coefficient of two normal variables with correlation rho."""
    if name == "spearman":
        return float(6 / np.pi * np.arcsin(rho / 2))
    return float(2 / np.pi * np.arcsin(rho)) if name == "kendall" else rho


@pytest.mark.parametrize("rho", [0.5, 0.9])
@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall"])
def test_intervals_over_systems_hold_the_truth(name: CoefficientName, rho: float) -> None:
    held = []
    for seed in range(500):
        random = np.random.default_rng(DATA + seed)
        human, noise = random.normal(size=(2, 30))
        scores = make_panel(rho * human + np.sqrt(1 - rho**2) * noise, human)
        (found,) = correlation_intervals(
            scores, level="system", method=name, resamples=500, seed=seed
        )
        held.append(found.low <= truth_of_normals(name, rho) <= found.high)
    assert 0.92 <= np.mean(held) <= 0.98


def segments_of_ten_systems(segments: int, seed: int) -> Panel:
    """Systems of fixed quality, a metric biased towards some of them, new segments."""
    random = np.random.default_rng(DATA + seed)
    quality = np.linspace(-1, 1, 10)[:, None]
    bias = np.tile([0.4, -0.4], 5)[:, None]
    human = quality + random.normal(size=(10, segments))
    return make_panel(0.7 * human + quality + bias + random.normal(size=(10, segments)), human)


@pytest.mark.parametrize(
    ("level", "name"),
    [
        ("system", "pearson"),
        ("segment", "pearson"),
        ("per_item", "pearson"),
        ("per_item", "kendall"),
        ("per_system", "pearson"),
    ],
)
def test_intervals_over_segments_hold_the_truth(level: Level, name: CoefficientName) -> None:
    many = segments_of_ten_systems(50_000, 999_999)
    truth = float(correlate_panel(many, level=level, method=name)[0])
    held = []
    for seed in range(400):
        scores = segments_of_ten_systems(200, seed)
        (found,) = correlation_intervals(scores, level=level, method=name, resamples=400, seed=seed)
        held.append(found.low <= truth <= found.high)
    assert 0.92 <= np.mean(held) <= 0.98


def test_intervals_of_differences_hold_the_truth() -> None:
    held = []
    for seed in range(500):
        random = np.random.default_rng(DATA + seed)
        human, *noise = random.normal(size=(3, 40))
        metrics = [0.9 * human + np.sqrt(0.19) * noise[0], 0.7 * human + np.sqrt(0.51) * noise[1]]
        found = difference_interval(
            make_panel(np.array(metrics)[:, :, None], human),
            0,
            1,
            level="system",
            method="pearson",
            resamples=500,
            seed=seed,
        )
        held.append(found.low <= 0.2 <= found.high)
    assert 0.92 <= np.mean(held) <= 0.98


def test_intervals_of_scores_hold_the_truth() -> None:
    held = []
    for seed in range(1000):
        scores = np.random.default_rng(DATA + seed).exponential(1.0, 200)
        found = resample_scores(
            {0: mean_counts(scores)}, {0: mean_score}, resamples=500, trials=0, seed=seed
        )
        low, high = percentile_bounds(found[0].resamples, 0.95)
        held.append(low <= 1.0 <= high)
    assert 0.92 <= np.mean(held) <= 0.98


def test_williams_has_five_percent_false_positives() -> None:
    found = []
    for seed in range(2000):
        random = np.random.default_rng(DATA + seed)
        human = random.normal(size=15)
        metrics = human + 0.6 * random.normal(size=(2, 15))
        p = williams_matrix(make_panel(metrics[:, :, None], human))
        found.append(np.nanmin(p) <= 0.025)  # two-sided
    assert within_binomial_error(float(np.mean(found)), 2000)


@pytest.mark.parametrize(
    ("swap", "level", "system_bias"),
    [
        ("both", "system", 0.0),
        ("both", "segment", 0.0),
        ("both", "per_item", 0.0),
        ("systems", "system", 1.0),
    ],
)
def test_swapping_has_five_percent_false_positives(
    swap: Swap, level: Level, system_bias: float
) -> None:
    found = [_swapped(seed, swap, level, system_bias, 20) for seed in range(1000)]
    assert within_binomial_error(float(np.mean(found)), 1000)


def test_swapping_outputs_is_blind_to_biases_towards_systems() -> None:
    """Why `systems` is there: metrics that differ by such biases alone."""
    found = [_swapped(seed, "both", "system", 1.0, 10) for seed in range(200)]
    assert np.mean(found) > 0.3


def _swapped(seed: int, swap: Swap, level: Level, system_bias: float, systems: int) -> bool:
    random = np.random.default_rng(DATA + seed)
    human = random.normal(size=(systems, 1)) + random.normal(size=(systems, 8))
    metrics = human + random.normal(size=(2, systems, 8))
    metrics += system_bias * random.normal(size=(2, systems, 1))
    p = permutation_matrix(
        make_panel(metrics, human),
        level=level,
        method="pearson",
        swap=swap,
        resamples=199,
        seed=seed,
    )
    return bool(np.nanmin(p) <= 0.025)  # two-sided


def test_comparing_systems_has_five_percent_false_positives() -> None:
    bootstrap, randomisation = [], []
    for seed in range(2000):
        random = np.random.default_rng(DATA + seed)
        one, two = map(mean_counts, random.normal(size=200) + random.normal(size=(2, 200)))
        scores = resample_scores(
            {0: one, 1: two}, dict.fromkeys((0, 1), mean_score), resamples=400, trials=0, seed=seed
        )
        bootstrap.append(bootstrap_p_value(scores[0], scores[1]) <= 0.05)
        p = approximate_randomisation(one, two, mean_score, resamples=400, seed=seed)
        randomisation.append(p <= 0.05)
    assert within_binomial_error(float(np.mean(bootstrap)), 2000)
    assert within_binomial_error(float(np.mean(randomisation)), 2000)


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall"])
@pytest.mark.parametrize("level", ["system", "per_item"])
def test_twenty_metrics_of_ten_pairs_take_seconds(level: Level, name: CoefficientName) -> None:
    pairs = [made(20, 15, 200, seed=seed) for seed in range(10)]
    started = time.process_time()
    for scores in pairs:
        correlation_intervals(scores, level=level, method=name, resamples=1000)
    assert time.process_time() - started < 20
