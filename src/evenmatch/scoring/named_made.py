"""Metrics that were made here and come with evenmatch."""

from __future__ import annotations

from importlib.resources import files

from evenmatch.registry import register
from evenmatch.scoring.blend import Blend
from evenmatch.scoring.saved import read_metric


@register("metric", "wmt_blend")
def wmt_blend() -> Blend:
    """Eleven alignments and n-gram counts, weighed by people's ratings of WMT15 and WMT16 outputs.

    On the scale of those ratings, standardised: 0 is the mean output, 1 a deviation better.
    """
    made: Blend = read_metric(str(files("evenmatch.scoring") / "made" / "wmt_blend"))
    return made
