"""The metrics of a result, where they can be asked again: pages may be made elsewhere."""

from __future__ import annotations

from evenmatch.errors import EvenmatchError
from evenmatch.scoring.together import as_metric
from evenmatch.types import Metric


def metric_here(name: str) -> Metric | None:
    """The metric of that name; None where it, or what it is made of, is not here."""
    try:
        return as_metric(name)
    except EvenmatchError:
        return None
