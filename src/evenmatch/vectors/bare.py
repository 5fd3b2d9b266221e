"""bare: units without vectors, for similarities that look at words only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.registry import register
from evenmatch.types import Embedded, Units
from evenmatch.vectors.hashed import cut_by_word


@register("encoder", "bare")
@dataclass(frozen=True)
class Bare:
    """No vectors at all: units that all count the same."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """The units as they are, cut into words where the cutting was left to the encoder."""
        return [_plain(cut_by_word(units)) for units in batch]


def _plain(units: Units) -> Embedded:
    count = len(units.groups)
    return Embedded(units, np.zeros((count, 0)), np.ones(count), np.ones(count))
