from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evenmatch.errors import InputError
from evenmatch.stats.panel import find_outliers, make_panel


def test_one_metric_is_a_panel_of_one() -> None:
    assert make_panel(np.ones((3, 4)), np.ones((3, 4))).metrics.shape == (1, 3, 4)


def test_one_number_per_system_is_a_column() -> None:
    made = make_panel([1, 2, 3], [4, 5, 6])
    assert (made.systems, made.segments) == (3, 1)


def test_humans_may_have_rated_only_systems() -> None:
    made = make_panel(np.ones((2, 3, 4)), [1, 2, 3])
    assert (made.systems, made.segments) == (3, 4)


def test_systems_are_left_out_by_number_or_by_flag() -> None:
    made = make_panel(np.arange(8).reshape(4, 2), [1, 2, 3, 40])
    assert_array_equal(made.without([0, 2]).human[:, 0], [2, 40])
    assert_array_equal(made.without(find_outliers([1, 2, 3, 40]).tolist()).human[:, 0], [1, 2, 3])
    assert_array_equal(made.without([0, 2]).metrics[0], [[2, 3], [6, 7]])


def test_leaving_out_none_changes_nothing() -> None:
    assert make_panel([1, 2], [3, 4]).without([]).systems == 2


@pytest.mark.parametrize(
    ("metrics", "human"),
    [(np.ones((3, 4)), np.ones((2, 4))), (np.ones((3, 4)), np.ones((3, 5))), (1.0, 2.0)],
)
def test_sides_of_different_systems_or_segments_are_refused(metrics: object, human: object) -> None:
    with pytest.raises(InputError, match="give both as systems × segments, or one number per"):
        make_panel(metrics, human)  # type: ignore[arg-type]  # any array will do here


def test_a_system_that_is_not_there_cannot_be_left_out() -> None:
    with pytest.raises(InputError, match=r"no systems \[2\] in a panel of 2; indexes start at 0"):
        make_panel([1, 2], [3, 4]).without([2])


def test_flags_must_be_as_many_as_systems() -> None:
    with pytest.raises(InputError, match="1 flags for 2 systems; give one for each"):
        make_panel([1, 2], [3, 4]).without([True])
