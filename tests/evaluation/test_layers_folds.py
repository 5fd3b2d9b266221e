from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.evaluation.layer_selection import (
    LayerValidation,
    assign_folds,
    best_index,
    cross_validate_layers,
)
from evenmatch.stats.panel import Panel, make_panel


def noisy(segments: int, seed: int, noise: tuple[float, ...] = (2.0, 0.3, 1.0)) -> Panel:
    """Human ratings of one system, and metrics that are the ratings plus noise."""
    rng = np.random.default_rng(seed)
    human = rng.normal(size=(1, segments))
    return make_panel([human + n * rng.normal(size=human.shape) for n in noise], human)


def names(count: int, prefix: str = "") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def test_agreement_is_that_of_the_outputs_in_a_fold_and_of_those_outside() -> None:
    one, two = noisy(40, 0), noisy(30, 1)
    segments = [names(40, "a"), names(30, "b")]
    found = cross_validate_layers(
        [one, two], segments, level="segment", method="pearson", folds=4, seed=3
    )
    folds = assign_folds(segments, 4, 3)
    for fold in range(4):
        for kept, agreement in (
            ([own == fold for own in folds], found.held_out[fold]),
            ([own != fold for own in folds], found.training[fold]),
        ):
            wanted = [
                np.mean([pearson(p, metric, k) for p, k in zip((one, two), kept, strict=True)])
                for metric in range(3)
            ]
            assert agreement == pytest.approx(wanted)
    everything = [np.ones(40, bool), np.ones(30, bool)]
    wanted = [
        np.mean([pearson(p, m, k) for p, k in zip((one, two), everything, strict=True)])
        for m in range(3)
    ]
    assert found.overall == pytest.approx(wanted)


def pearson(given: Panel, metric: int, kept: Any) -> float:
    return float(np.corrcoef(given.metrics[metric, 0, kept], given.human[0, kept])[0, 1])


def test_the_least_noisy_metric_is_chosen_in_every_fold() -> None:
    found = cross_validate_layers(
        [noisy(200, 0)], [names(200)], level="segment", method="kendall", folds=5, seed=0
    )
    assert best_index(found.overall) == 1
    assert found.choices == [1] * 5
    assert found.held_out_mean == pytest.approx(found.held_out[:, 1].mean())


def test_of_equally_noisy_metrics_the_held_out_agreement_is_lower_than_the_best() -> None:
    alike = noisy(60, 5, (1.0,) * 30)
    found = cross_validate_layers(
        [alike], [names(60)], level="segment", method="pearson", folds=6, seed=0
    )
    assert found.held_out_mean < found.overall.max()


def test_folds_are_even_and_a_segment_is_in_one_of_them_whatever_the_subset() -> None:
    one, two = assign_folds([names(11), names(7)], 4, 0)
    assert one[:7].tolist() == two.tolist()
    assert sorted(np.bincount(one)) == [2, 3, 3, 3]
    assert assign_folds([names(11)], 4, 0)[0].tolist() == one.tolist()
    assert assign_folds([names(11)], 4, 1)[0].tolist() != one.tolist()


def test_subsets_can_be_held_out_instead() -> None:
    panels = [noisy(30, 0), noisy(30, 1), noisy(30, 2)]
    found = cross_validate_layers(
        panels, [names(30)] * 3, level="segment", method="pearson", folds="subsets", seed=0
    )
    for i, own in enumerate(panels):
        everything = np.ones(30, bool)
        assert found.held_out[i] == pytest.approx([pearson(own, m, everything) for m in range(3)])
        others = [found.held_out[j] for j in range(3) if j != i]
        assert found.training[i] == pytest.approx(np.mean(others, axis=0))


def test_a_tie_goes_to_the_lower_layer_and_what_is_undefined_is_not_chosen() -> None:
    assert best_index(np.array([0.1, 0.5, 0.5])) == 1
    assert best_index(np.array([np.nan, 0.1])) == 1
    undefined = LayerValidation(np.zeros(2), np.zeros((2, 2)), np.full((2, 2), np.nan))
    assert np.isnan(undefined.held_out_mean)


@pytest.mark.parametrize("folds", [1, 31, 2.5, "segments"])
def test_folds_that_cannot_be_made_are_refused(folds: Any) -> None:
    with pytest.raises(
        em.InputError, match=r"a number from 2 to the number of segments \(30\), got "
    ):
        cross_validate_layers(
            [noisy(30, 0)], [names(30)], level="segment", method="pearson", folds=folds, seed=0
        )


def test_one_subset_cannot_be_held_out() -> None:
    with pytest.raises(
        em.InputError, match="folds='subsets' needs at least two subsets of ratings, got 1"
    ):
        cross_validate_layers(
            [noisy(9, 0)], [names(9)], level="segment", method="pearson", folds="subsets", seed=0
        )
