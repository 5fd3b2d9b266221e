from __future__ import annotations

import numpy as np
import pytest

from evenmatch.errors import InputError
from evenmatch.stats.panel import make_panel


def test_one_metric_is_a_panel_of_one() -> None:
    assert make_panel(np.ones((3, 4)), np.ones((3, 4))).metrics.shape == (1, 3, 4)


def test_one_number_per_system_is_a_column() -> None:
    made = make_panel([1, 2, 3], [4, 5, 6])
    assert (made.systems, made.segments) == (3, 1)


def test_humans_may_have_rated_only_systems() -> None:
    made = make_panel(np.ones((2, 3, 4)), [1, 2, 3])
    assert (made.systems, made.segments) == (3, 4)


@pytest.mark.parametrize(
    ("metrics", "human"),
    [(np.ones((3, 4)), np.ones((2, 4))), (np.ones((3, 4)), np.ones((3, 5))), (1.0, 2.0)],
)
def test_sides_of_different_systems_or_segments_are_refused(metrics: object, human: object) -> None:
    with pytest.raises(InputError, match="give both as systems × segments, or one number per"):
        make_panel(metrics, human)  # type: ignore[arg-type]  # any array will do here
