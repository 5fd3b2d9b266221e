from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenmatch.stats.levels import Level, correlate_panel
from evenmatch.stats.panel import Panel, make_panel
from evenmatch.stats.permutation import (
    Swap,
    _differences_by_segment,
    _swap_masks,
    permutation_matrix,
    permute_pearson,
    standardise_metrics,
)
from tests.support.numbers import made

METHODS = ("pearson", "spearman", "kendall", "kendall_c", "accuracy", "calibrated_accuracy")
LEVELS = ("system", "segment", "per_item", "per_system")


def all_swaps(scores: Panel, level: Level, swap: Swap) -> float:
    """The exact p-value of the first metric being better, over every way to swap."""
    both = standardise_metrics(scores)
    shape = {"both": (3, 2), "systems": (3, 1)}[swap]
    observed = np.subtract(*correlate_panel(both, level=level, method="pearson"))
    beyond = []
    for flags in product([False, True], repeat=int(np.prod(shape))):
        mask = np.broadcast_to(np.reshape(flags, shape), (3, 2))
        swapped = Panel(np.where(mask, both.metrics[::-1], both.metrics), both.human)
        beyond.append(
            np.subtract(*correlate_panel(swapped, level=level, method="pearson"))
            >= observed - 1e-12
        )
    return float(np.mean(beyond))


@pytest.mark.parametrize("swap", ["both", "systems"])
@pytest.mark.parametrize("level", ["system", "segment", "per_system"])
def test_random_swaps_come_near_to_all_swaps(level: Level, swap: Swap) -> None:
    human = [[1.0, 4.0], [2.0, 2.5], [4.0, 3.0]]
    metrics = [[[1.5, 3.0], [2.0, 2.6], [5.0, 3.5]], [[1.0, 2.0], [3.0, 0.5], [0.0, 3.0]]]
    scores = make_panel(metrics, human)
    found = permutation_matrix(scores, level=level, method="pearson", swap=swap, resamples=4000)
    assert found[0, 1] == pytest.approx(all_swaps(scores, level, swap), abs=0.03)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_metric_is_no_better_than_its_copy(level: Level, method: str) -> None:
    scores = made(1, 6, 5)
    twins = Panel(np.concatenate([scores.metrics, 3 * scores.metrics + 1]), scores.human)
    p = permutation_matrix(twins, level=level, method=method, resamples=30)  # type: ignore[arg-type]  # names
    assert_allclose(p, [[np.nan, 1], [1, np.nan]])


@pytest.mark.parametrize("level", LEVELS)
def test_an_informative_metric_beats_a_random_one(level: Level) -> None:
    random = np.random.default_rng(0)
    human = random.normal(size=(10, 1)) + random.normal(size=(10, 30))
    metrics = [human + 0.3 * random.normal(size=human.shape), random.normal(size=human.shape)]
    p = permutation_matrix(make_panel(metrics, human), level=level, method="pearson", resamples=200)
    assert p[0, 1] < 0.01
    assert p[1, 0] > 0.99


@pytest.mark.parametrize("level", LEVELS)
def test_a_pairs_p_value_does_not_depend_on_other_metrics(level: Level) -> None:
    scores = made(3, 8, 10)
    every = permutation_matrix(scores, level=level, method="pearson", resamples=100)
    two = Panel(scores.metrics[[0, 2]], scores.human)
    alone = permutation_matrix(two, level=level, method="pearson", resamples=100)
    assert every[0, 2] == alone[0, 1]


def test_system_means_are_swapped_output_by_output() -> None:
    """The shortcut for system means gives the same as swapping the outputs."""
    scores = standardise_metrics(made(2, 5, 7, missing=0.2))
    random = np.random.default_rng(0)
    masks = random.integers(2, size=(50, 5, 7), dtype=np.uint8).astype(bool)
    swapped = [
        Panel(np.where(m, scores.metrics[::-1], scores.metrics), scores.human) for m in masks
    ]
    draws = [np.subtract(*correlate_panel(s, level="system", method="pearson")) for s in swapped]
    observed = np.subtract(*correlate_panel(scores, level="system", method="pearson"))
    expected = (1 + (np.array(draws) >= observed).sum()) / 51
    found = permutation_matrix(scores, level="system", method="pearson", resamples=50, seed=0)
    assert found[0, 1] == pytest.approx(expected)


def test_metrics_are_put_on_one_scale() -> None:
    found = standardise_metrics(made(2, 6, 9, missing=0.1)).metrics
    assert_allclose(np.nanmean(found, axis=(1, 2)), 0, atol=1e-12)
    assert_allclose(np.nanstd(found, axis=(1, 2)), 1)


def test_outputs_that_one_metric_lacks_are_left_out_for_all() -> None:
    found = np.isnan(standardise_metrics(made(2, 6, 9, missing=0.1)).metrics)
    assert found.any()
    assert (found[0] == found[1]).all()


def test_a_constant_metric_has_no_p_value() -> None:
    scores = make_panel(np.stack([np.ones((4, 3)), np.eye(4)[:, :3]]), np.arange(12).reshape(4, 3))
    p = permutation_matrix(scores, level="system", method="pearson", resamples=20)
    assert np.isnan(p).all()


@pytest.mark.parametrize("level", ["segment", "per_item", "per_system"])
@pytest.mark.parametrize("swap", ["both", "systems"])
def test_sums_give_the_correlations_that_swapped_scores_give(level: Level, swap: Swap) -> None:
    panel = made(3, 5, 7)
    panel.metrics[1, 2, 3] = panel.human[4, 1] = np.nan
    common = standardise_metrics(panel)
    masks = partial(_swap_masks, common.metrics.shape[1:], swap, 30, seed=1)
    by_sums = list(permute_pearson(common, level, masks()))
    one_by_one = list(_differences_by_segment(common, level, "pearson", masks))
    assert [found[:2] for found in by_sums] == [found[:2] for found in one_by_one]
    np.testing.assert_allclose(
        [found[2] for found in by_sums], [found[2] for found in one_by_one], atol=1e-12
    )
