"""Metrics that were made here and come with evenmatch: a blend, and metrics with an adapter."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from evenmatch.registry import register
from evenmatch.registry.borrowing import with_settings_of
from evenmatch.scoring.blend import Blend
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.named import bertscore, f_disc
from evenmatch.scoring.saved import read_metric

_GENDER = "gender"


@register("metric", "wmt_blend")
def wmt_blend() -> Blend:
    """Eleven alignments and n-gram counts, weighed by people's ratings of WMT15 and WMT16 outputs.

    On the scale of those ratings, standardised: 0 is the mean output, 1 a deviation better.
    """
    made: Blend = read_metric(str(files("evenmatch.scoring") / "made" / "wmt_blend"))
    return made


# The adapter was trained for one model, up to the layer that the metrics read there.
@register("metric", "bertscore_even")
@with_settings_of(bertscore, "model", "layer", "adapter", "trust_remote_code")
def bertscore_even(**settings: Any) -> AlignMetric:
    """BERTScore on the embedded encoder with less gender bias, by the adapter `gender`."""
    return bertscore(adapter=_GENDER, **settings)


@register("metric", "f_disc_even")
@with_settings_of(f_disc, "model", "layer", "adapter", "trust_remote_code")
def f_disc_even(**settings: Any) -> AlignMetric:
    """F_DISC on the embedded encoder with less gender bias, by the adapter `gender`."""
    return f_disc(adapter=_GENDER, **settings)
