"""The tie threshold of each metric of a panel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenmatch.stats.levels import Level, arranged, check_level, means
from evenmatch.stats.panel import Panel
from evenmatch.stats.ties import sorted_pairs


@dataclass(frozen=True, slots=True)
class Calibration:
    """A metric's greatest pairwise accuracy, and the difference up to which its scores then tie.

    `AccuracyAt(epsilon)` is the method that judges other data with it.
    """

    accuracy: float
    epsilon: float


def calibrate(panel: Panel, *, level: Level) -> tuple[Calibration, ...]:
    """The threshold that makes each metric's pairwise accuracy greatest, the lowest if several.

    >>> from evenmatch.stats.panel import panel
    >>> calibrate(panel([[0.1], [0.2], [0.9]], [[1], [1], [3]]), level="system")
    (Calibration(accuracy=1.0, epsilon=0.1),)
    """
    check_level(panel, level)
    every = np.ones((1, panel.segments))
    if level == "system":
        x, y = means(panel.metrics, every)[:, :, None], means(panel.human, every)[:, None]
    else:
        x, y = arranged(panel.metrics[None], panel.human, level)
    weights = np.ones((1, x.shape[-1])), np.ones((1, x.shape[-2]))
    pairs = [sorted_pairs(metric, y[0]) for metric in x[0]]
    return tuple(
        Calibration(float(p.best(*weights)[0]), float(p.threshold(*weights)[0])) for p in pairs
    )
