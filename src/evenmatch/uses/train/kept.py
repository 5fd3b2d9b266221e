"""Vectors of many texts in one file that is mapped into memory for as long as they are needed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

import numpy as np

from evenmatch.types import Array


class Kept:
    """The states of each text, (pieces, dim), written once and read many times.

    The file has no name and is gone with the process; what fits in memory stays there.
    """

    def __init__(self, lengths: Sequence[int], dim: int) -> None:
        self._ends = np.cumsum(lengths)
        self._starts = self._ends - np.asarray(lengths)
        rows = max(int(self._ends[-1]) if len(lengths) else 0, 1)
        with tempfile.TemporaryFile() as file:  # the map outlives it
            self._rows = np.memmap(file, dtype=np.float32, mode="w+", shape=(rows, dim))

    def write(self, index: int, states: Array) -> None:
        """Keep the states of one text."""
        self._rows[self._starts[index] : self._ends[index]] = states

    def padded(self, indexes: Array) -> tuple[Array, Array]:
        """The states of some texts, filled up with zeros to one length, and where they are real."""
        lengths = self._ends[indexes] - self._starts[indexes]
        states = np.zeros((len(indexes), int(lengths.max()), self._rows.shape[1]), np.float32)
        for row, index in enumerate(indexes):
            states[row, : lengths[row]] = self._rows[self._starts[index] : self._ends[index]]
        return states, np.arange(states.shape[1]) < lengths[:, None]
