"""The edits that TER counts: the number that sacrebleu finds, in a fraction of its time.

TER moves phrases of the candidate as long as that lowers its edit distance to the reference. The
search for moves is sacrebleu's own. Nearly all of its time goes into edit distances, which are
computed here by a bit-parallel algorithm (Hyyrö 2003): two integers hold the differences between
neighbouring cells in a row of the dynamic-programming table, and a word of the candidate takes a
few operations on them.

sacrebleu computes each row only within a beam around the diagonal. Cells outside of it exist here,
but as cells without a match, which grow by 1 per row left of the beam and by 1 per column right of
it. A path through them is never shorter than the shortest path inside, so the distance is the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from evenmatch.metrics.ngram.tokens import import_library

# A row of the table. Two masks say which cells are 1 more and 1 less than their left neighbours; a
# number is the value of the cell left of the beam; two masks say the same of the cells above them.
_Row: TypeAlias = tuple[int, int, int, int, int]

_BEAM_WIDTH = 25  # sacrebleu's: columns to either side of the diagonal


def count_edits(candidate: list[str], reference: list[str]) -> int:
    """Return how many word edits and shifts turn the candidate into the reference.

    >>> count_edits("on the mat sat a cat".split(), "a cat sat on the mat".split())
    2
    """
    if not reference:
        return len(candidate)
    library: Any = import_library("sacrebleu.metrics.lib_ter", package="sacrebleu")
    words, shifts, checked = candidate, 0, 0
    beams = list(_iter_beams(len(candidate), len(reference)))
    while True:
        distance = _EditDistance(words, reference, beams)
        gain, shifted, checked = library._shift(words, reference, distance, checked)
        if gain <= 0 or checked >= library._MAX_SHIFT_CANDIDATES:
            return shifts + distance.start
        words, shifts = shifted, shifts + 1


class _RowBeam(NamedTuple):
    """The columns of one row that sacrebleu computes. Masks have bit j - 1 for column j."""

    first: int
    stop: int
    matches: int  # cells inside that have a cell inside diagonally before them
    left: int  # columns left of the beam
    leaving: int  # those of them that were inside in the row above
    right: int  # columns right of the beam


def _iter_beams(candidate_length: int, reference_length: int) -> Iterator[_RowBeam]:
    """Yield the beam of each row, one per word of the candidate."""
    slope = reference_length / max(candidate_length, 1)
    width = _BEAM_WIDTH
    if width < slope / 2:
        width = math.ceil(slope / 2 + width)
    first, stop = 0, reference_length + 1
    for row in range(1, candidate_length + 1):
        above, above_stop = first, stop
        diagonal = math.floor(row * slope)
        first, stop = max(0, diagonal - width), min(reference_length + 1, diagonal + width)
        if row == candidate_length:
            stop = reference_length + 1
        yield _RowBeam(
            first,
            stop,
            _columns(max(first, above + 1), min(stop, above_stop + 1)),
            _columns(1, first),
            _columns(above, first),
            _columns(stop, reference_length + 1),
        )


def _columns(first: int, stop: int) -> int:
    """Return a mask of the columns from `first` up to `stop`; column 0 has no bit."""
    first = max(first, 1)
    return (1 << stop - 1) - (1 << first - 1) if stop > first else 0


class _EditDistance:
    """Edit distance between rearranged words and a reference, in the place of `BeamEditDistance`.

    sacrebleu calls it with the words it starts from and reads the distance and the edits. Then it
    calls it with these words in other orders and reads only the distance.
    """

    def __init__(self, words: list[str], reference: list[str], beams: list[_RowBeam]) -> None:
        self._words, self._reference, self._beams = words, reference, beams
        self._positions: dict[str, int] = {}
        for index, word in enumerate(reference):
            self._positions[word] = self._positions.get(word, 0) | 1 << index
        top = (_columns(1, len(reference) + 1), 0, 0, 0, 0)
        self._rows = [top, *self._iter_rows(top, words, 0)]
        self.start = self._last_cell(self._rows[-1])

    def __call__(self, words: list[str]) -> tuple[int, str]:
        if words is self._words:
            return self.start, self._trace()
        pairs = enumerate(zip(words, self._words, strict=True))
        same = next((n for n, (new, old) in pairs if new != old), len(words))
        rows = [self._rows[same], *self._iter_rows(self._rows[same], words, same)]
        return self._last_cell(rows[-1]), ""

    def _iter_rows(self, row: _Row, words: list[str], start: int) -> Iterator[_Row]:
        """Yield the rows of the words from `start` on, given the row above them."""
        every, positions = _columns(1, len(self._reference) + 1), self._positions
        plus, minus, base, _, _ = row
        for word, beam in zip(words[start:], self._beams[start:], strict=True):
            _, _, matches, left, leaving, right = beam
            base += 1
            if leaving:
                base += (plus & leaving).bit_count() - (minus & leaving).bit_count()
            match = positions.get(word, 0) & matches
            # The sum carries a match on to the cells to its right that become cheaper by it.
            cheap = (((match & plus) + plus) ^ plus) | match
            higher, lower = minus | ~(cheap | plus) | left, plus & cheap & ~left
            before, cheap = higher << 1 | 1, match | minus  # column 0 grows by 1 per row
            plus, minus = (lower << 1 | ~(cheap | before) | right) & every, before & cheap & ~right
            yield plus, minus, base, higher, lower

    def _last_cell(self, row: _Row) -> int:
        plus, minus, base, _, _ = row
        outside = self._beams[-1].left if self._beams else 0
        return base + (plus & ~outside).bit_count() - (minus & ~outside).bit_count()

    def _trace(self) -> str:
        """Return the edits in order: ' ' for none, 's', 'd' and 'i' (substitute, delete, insert).

        Of several shortest paths this is the one that sacrebleu takes.
        """
        edits = []
        row, column = len(self._words), len(self._reference)
        while row and column:
            first, stop = self._beams[row - 2][:2] if row > 1 else (0, len(self._reference) + 1)
            (plus, minus, *_), (*_, higher, lower) = self._rows[row - 1 : row + 1]
            bit = 1 << column - 1
            rise = bool(higher & bit) - bool(lower & bit)
            diagonal = rise + bool(plus & bit) - bool(minus & bit)
            same = self._words[row - 1] == self._reference[column - 1]
            if first < column <= stop and (same or diagonal == 1):
                edits.append(" " if same else "s")
                row, column = row - 1, column - 1
            elif column < stop and rise == 1:
                edits.append("d")
                row -= 1
            else:
                edits.append("i")
                column -= 1
        return "i" * column + "d" * row + "".join(reversed(edits))
