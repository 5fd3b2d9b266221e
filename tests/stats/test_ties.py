from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from evenmatch.errors import InputError
from evenmatch.stats.levels import Level, correlate_panel, prepare_level
from evenmatch.stats.panel import Floats, Panel, make_panel
from tests.support.numbers import made, share_of_pairs


def mean_accuracy(metric: Floats, human: Floats, epsilon: float) -> float:
    """Accuracy averaged over segments, pair by pair, at one threshold."""
    each = []
    for x, y in zip(metric.T, human.T, strict=True):
        known = ~(np.isnan(x) | np.isnan(y))
        each.append(share_of_pairs(x[known], y[known], epsilon))
    return float(np.nanmean(each))


def calibrated(scores: Panel, level: Level) -> float:
    """The calibrated accuracy of the only metric."""
    (found,) = correlate_panel(scores, level=level, method="calibrated_accuracy")
    return float(found)


def best_by_trial(metric: Floats, human: Floats) -> float:
    """The greatest accuracy of all thresholds that could matter."""
    differences = abs(metric[:, None] - metric[None]).ravel().round(9)
    thresholds = np.unique(np.append(differences[~np.isnan(differences)], 0.0))
    return max(mean_accuracy(metric, human, e + 1e-9) for e in thresholds)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(5))
def test_the_accuracy_is_the_best_of_all_thresholds(seed: int, missing: float) -> None:
    scores = made(1, 6, 8, seed=seed, missing=missing)
    expected = best_by_trial(scores.metrics[0], scores.human)
    assert calibrated(scores, "per_item") == pytest.approx(expected)


@pytest.mark.parametrize("level", ["system", "segment", "per_item", "per_system"])
def test_calibrating_never_loses_accuracy(level: Level) -> None:
    scores = made(3, 6, 8)
    plain = correlate_panel(scores, level=level, method="accuracy")
    assert (
        correlate_panel(scores, level=level, method="calibrated_accuracy") >= plain - 1e-12
    ).all()


def test_a_metric_with_the_human_ties_is_fully_accurate() -> None:
    human = np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 3.0]])
    assert calibrated(make_panel(human * 7, human), "per_item") == 1.0


def test_noise_below_all_differences_is_tied() -> None:
    human = np.array([[1.0], [1.0], [2.0], [3.0]])
    noise = np.array([[0.0], [0.125], [0.0], [0.0]])
    assert calibrated(make_panel(human + noise, human), "segment") == pytest.approx(1.0)


def test_equal_differences_of_decimals_are_one_threshold() -> None:
    # 0.3 - 0.2 is less than 0.2 - 0.1 by a rounding error, and no way to tell pairs apart
    metric, human = [[0.1], [0.2], [0.3]], [[1.0], [2.0], [2.0]]
    assert 0.3 - 0.2 < 0.2 - 0.1
    assert calibrated(make_panel(metric, human), "segment") == pytest.approx(2 / 3)


@given(st.integers(0, 500))
def test_weights_of_segments_are_copies(seed: int) -> None:
    scores = made(1, 5, 6, seed=seed)
    counts = np.random.default_rng(seed).integers(0, 3, (2, 6))
    found = prepare_level(scores, "per_item", "calibrated_accuracy")(np.ones((1, 5)), counts / 1)
    for value, times in zip(found[:, 0], counts, strict=True):
        columns = np.repeat(np.arange(6), times)
        if not columns.size:
            assert np.isnan(value)
            continue
        copied = Panel(scores.metrics[:, :, columns], scores.human[:, columns])
        assert_allclose(
            value, correlate_panel(copied, level="per_item", method="calibrated_accuracy")
        )


def test_weights_of_systems_count_pairs_of_distinct_ones() -> None:
    scores = made(1, 4, 1, seed=3)
    counts = np.array([[2.0, 1.0, 0.0, 1.0]])
    found = prepare_level(scores, "per_item", "calibrated_accuracy")(counts, np.ones((1, 1)))
    x, y = scores.metrics[0, [0, 1, 3], 0], scores.human[[0, 1, 3], 0]
    weights = {(0, 1): 2, (0, 2): 2, (1, 2): 1}

    def accuracy(epsilon: float) -> float:
        right = 0
        for (i, j), times in weights.items():
            metric = 0 if abs(x[i] - x[j]) <= epsilon else np.sign(x[i] - x[j])
            right += times * (metric == np.sign(y[i] - y[j]))
        return right / 5

    thresholds = [0.0, *(abs(x[i] - x[j]) for i, j in weights)]
    assert_allclose(found[0, 0], max(accuracy(e) for e in thresholds))


def test_without_a_pair_there_is_no_accuracy() -> None:
    assert np.isnan(calibrated(make_panel([[1, 2]], [[1, 2]]), "per_item"))


def test_too_many_pairs_are_refused_with_advice() -> None:
    scores = make_panel(np.zeros((5, 1000)), np.zeros((5, 1000)))
    with pytest.raises(InputError, match="12,497,500 pairs, the maximum is 10,000,000; use level"):
        correlate_panel(scores, level="segment", method="calibrated_accuracy")


def test_untied_accuracy_leaves_out_pairs_that_humans_tie() -> None:
    """Humans tie one of three pairs; the metric orders one of the others and ties the last."""
    panel = make_panel([[1.0], [2.0], [2.0]], [[1.0], [1.0], [3.0]])
    assert correlate_panel(panel, level="segment", method="untied_accuracy")[0] == 1 / 2
    assert correlate_panel(panel, level="segment", method="accuracy")[0] == 1 / 3


@given(st.integers(0, 200))
def test_untied_accuracy_equals_a_loop_over_pairs(seed: int) -> None:
    scores = made(1, 5, 4, seed=seed)
    human = np.round(scores.human)
    rates = []
    for x, y in zip(scores.metrics[0].T, human.T, strict=True):
        pairs = [(i, j) for i in range(5) for j in range(i) if y[i] > y[j] or y[i] < y[j]]
        right = [(x[i] - x[j]) * (y[i] - y[j]) > 0 for i, j in pairs]
        rates += [np.mean(right)] if pairs else []
    found = correlate_panel(
        Panel(scores.metrics, human), level="per_item", method="untied_accuracy"
    )
    assert_allclose(found[0], np.mean(rates) if rates else np.nan)


def test_calibrated_accuracy_finds_the_threshold_of_simulated_raters() -> None:
    """Raters tie what differs by less than a just noticeable difference; the metric sees it all.

    The accuracy at the true difference is 1, and without calibration the share of untied pairs.
    """
    truth = np.random.default_rng(5).normal(size=(6, 300))
    human = np.sign(truth) * (abs(truth) > 1)  # three grades: no two of one grade are ordered
    metric = human + np.random.default_rng(6).uniform(-0.2, 0.2, size=truth.shape)
    panel = make_panel(metric, human)
    i, j = np.triu_indices(6, 1)
    untied = (human[i] != human[j]).mean()
    assert calibrated(panel, "per_item") == pytest.approx(1.0)
    plain = correlate_panel(panel, level="per_item", method="accuracy")[0]
    assert plain == pytest.approx(untied)
    # noise that exceeds the grades: no threshold separates ties from differences
    noisy = make_panel(human + np.random.default_rng(7).normal(size=truth.shape), human)
    assert plain < calibrated(noisy, "per_item") < 0.9
