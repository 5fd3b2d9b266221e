from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.levels import CoefficientName, Level, correlate_panel, prepare_level
from evenmatch.stats.panel import Floats, Panel, make_panel
from tests.support.numbers import NAMES, made, plain

LEVELS: tuple[Level, ...] = ("system", "segment", "per_item", "per_system")


def expected(scores: Panel, level: str, name: str) -> list[float]:
    """Each level by a loop over SciPy's coefficients."""
    value = plain(name)
    human = scores.human
    found = []
    for metric in scores.metrics:
        if level == "system":
            found.append(value(np.nanmean(metric, 1), np.nanmean(human, 1)))
            continue
        if level == "segment":
            found.append(value(metric.ravel(), human.ravel()))
            continue
        rows = zip(metric, human, strict=True)
        if level == "per_item":
            rows = zip(metric.T, human.T, strict=True)
        found.append(float(np.nanmean([value(x, y) for x, y in rows])))
    return found


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_what_its_name_says(level: Level, name: CoefficientName, missing: float) -> None:
    scores = made(3, 8, 12, missing=missing)
    assert_allclose(
        correlate_panel(scores, level=level, method=name), expected(scores, level, name), rtol=1e-12
    )


def test_levels_of_a_hand_worked_example() -> None:
    metric = [[1, 5, 2], [2, 4, 2], [3, 3, 8]]
    human = [[1, 6, 3], [3, 5, 1], [2, 7, 8]]
    scores = make_panel(metric, human)
    found = {x: float(correlate_panel(scores, level=x, method="kendall")[0]) for x in LEVELS}
    # system means 8/3, 8/3, 14/3 against 10/3, 3, 17/3: one pair tied by the metric
    assert found["system"] == pytest.approx(2 / np.sqrt(2 * 3))
    # segments: 1/3; -1/3; (2 - 0) over pairs told apart 2 and 3
    assert found["per_item"] == pytest.approx((1 / 3 - 1 / 3 + 2 / np.sqrt(6)) / 3)
    # systems: 1; two pairs of the metric tied, one agrees and one not; tied 3, 3
    assert found["per_system"] == pytest.approx((1 + 1 / 1 * 2 / np.sqrt(6) + 2 / np.sqrt(6)) / 3)


def test_segments_without_a_correlation_are_left_out_of_the_mean() -> None:
    metric, human = [[1, 5], [2, 5], [3, 5]], [[1, 1], [2, 2], [3, 3]]
    assert correlate_panel(
        make_panel(metric, human), level="per_item", method="pearson"
    ) == pytest.approx(1)


@pytest.mark.parametrize("level", LEVELS)
def test_a_constant_metric_gives_nan(level: Level) -> None:
    scores = make_panel(np.ones((4, 5)), np.arange(20).reshape(4, 5))
    assert np.isnan(correlate_panel(scores, level=level, method="pearson")[0])


def test_each_sides_mean_is_over_the_segments_it_knows() -> None:
    human = [[1, np.nan, np.nan], [np.nan, 5, np.nan], [np.nan, np.nan, 2]]
    metric = [[1, 1, 1], [2, 3, 7], [2, 2, 2]]
    found = correlate_panel(make_panel(metric, human), level="system", method="pearson")
    assert_allclose(found, plain("pearson")([1, 4, 2], [1, 5, 2]))


def test_equal_sums_in_another_order_are_a_tie() -> None:
    human = [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.9, 0.9, 0.9]]
    assert (np.float64(0.1) + 0.2) + 0.3 != (np.float64(0.3) + 0.2) + 0.1
    found = correlate_panel(
        make_panel([[1, 2, 3]] * 2 + [[4, 4, 4]], human), level="system", method="kendall"
    )
    assert found[0] == 1


def test_humans_may_rate_only_systems_at_the_system_level() -> None:
    metric = [[1, 1, 1], [2, 3, 7], [2, 2, 2]]
    found = correlate_panel(make_panel(metric, [1, 5, 2]), level="system", method="pearson")
    assert_allclose(found, plain("pearson")([1, 4, 2], [1, 5, 2]))


def resampled_by_hand(scores: Panel, systems: Floats, segments: Floats) -> Panel:
    """A panel with its systems and segments copied as often as they count."""
    rows = np.repeat(np.arange(scores.systems), systems.astype(int))
    columns = np.repeat(np.arange(scores.segments), segments.astype(int))
    return Panel(scores.metrics[:, rows][:, :, columns], scores.human[rows][:, columns])


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("over", ["systems", "segments", "both"])
@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall", "kendall_c"])
@pytest.mark.parametrize("level", LEVELS)
def test_weights_are_copies_of_systems_and_segments(
    level: Level, name: CoefficientName, over: str, missing: float
) -> None:
    scores = made(2, 7, 9, missing=missing)
    random = np.random.default_rng(4)
    systems = random.integers(0, 3, (5 if over != "segments" else 1, 7)).astype(np.float64)
    segments = random.integers(0, 3, (5 if over != "systems" else 1, 9)).astype(np.float64)
    found = prepare_level(scores, level, name)(systems, segments)
    assert found.shape == (5, 2)
    for b in range(5):
        copied = resampled_by_hand(scores, systems[b % len(systems)], segments[b % len(segments)])
        by_hand = correlate_panel(copied, level=level, method=name)
        assert_allclose(found[b], by_hand, rtol=1e-10, atol=1e-12)


def test_blocks_do_not_change_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = made(2, 7, 30, missing=0.1)
    random = np.random.default_rng(5)
    weights = random.integers(0, 3, (40, 7)) / 1, random.integers(0, 3, (40, 30)) / 1
    for level in LEVELS:
        for name in (*NAMES, "calibrated_accuracy"):
            whole = prepare_level(scores, level, name)(*weights)  # type: ignore[arg-type]  # names
            with monkeypatch.context() as patch:
                patch.setattr("evenmatch.stats.panel._CELLS", 500)
                parts = prepare_level(scores, level, name)(*weights)  # type: ignore[arg-type]  # names
            assert_allclose(parts, whole, rtol=1e-12, err_msg=f"{level} {name}")


def test_an_unknown_level_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="no level is called 'pooled'; known: system, seg"):
        correlate_panel(make_panel([1, 2], [1, 2]), level="pooled", method="pearson")  # type: ignore[arg-type]  # the point


def test_segment_levels_need_both_sides_segments() -> None:
    with pytest.raises(InputError, match="level segment compares segments, got 3 of metrics and 1"):
        correlate_panel(make_panel(np.ones((2, 3)), [1, 2]), level="segment", method="pearson")
