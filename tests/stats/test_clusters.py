from __future__ import annotations

import numpy as np

from evenmatch.stats.p_values import rank_clusters


def significant(size: int, *pairs: tuple[int, int]) -> list[list[float]]:
    """P-values of .5, but .01 for the pairs (better, worse)."""
    p = np.full((size, size), 0.5)
    for better, worse in pairs:
        p[better, worse] = 0.01
    return p.tolist()


def test_metrics_that_do_not_differ_share_a_cluster() -> None:
    assert rank_clusters([0.9, 0.8, 0.7], significant(3)) == (1, 1, 1)


def test_a_cluster_ends_where_one_of_it_is_better() -> None:
    # 2 is beaten by 0 alone; 3 by nobody of the second cluster, though by 0
    values, p = [0.9, 0.8, 0.7, 0.6], significant(4, (0, 2), (0, 3))
    assert rank_clusters(values, p) == (1, 1, 2, 2)


def test_clusters_follow_values_and_not_positions() -> None:
    assert rank_clusters([0.6, 0.9, 0.8], significant(3, (1, 0), (2, 0))) == (2, 1, 1)


def test_an_unbeaten_metric_may_be_below_the_first_cluster() -> None:
    values, p = [0.9, 0.8, 0.7], significant(3, (0, 1))
    assert rank_clusters(values, p) == (1, 2, 2)


def test_a_stricter_alpha_merges_clusters() -> None:
    assert rank_clusters([0.9, 0.8], significant(2, (0, 1)), alpha=0.001) == (1, 1)


def test_metrics_without_a_value_come_last() -> None:
    values, p = [np.nan, 0.8, np.nan], np.full((3, 3), np.nan)
    assert rank_clusters(values, p) == (2, 1, 2)
