"""Two rows of units with lines between those that are paired, as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from evenmatch.scoring.aligned import Aligned
from evenmatch.viewer.labels import label, printable, width

_FONT = 14.0  # pixels, as in style.css
_TOP, _BOTTOM, _HIGH = 24.0, 164.0, 26.0  # where the boxes of the two rows begin, their height
_GAP, _PADDING = 10.0, 7.0


@dataclass(frozen=True, slots=True)
class Box:
    """A unit's place in its row, in pixels."""

    left: float
    wide: float

    @property
    def middle(self) -> float:
        """Where its lines begin."""
        return self.left + self.wide / 2


def links(aligned: Aligned) -> str:
    """The link view: candidate above, reference below, a line per pair.

    A line is broader for a larger weight and fainter for a lower similarity.
    """
    above, below = _row(aligned.candidate_units), _row(aligned.reference_units)
    wide = max([box.left + box.wide + _GAP for box in (*above, *below)] + [120.0])
    high = _BOTTOM + _HIGH + 24
    lines = "".join(
        _line(aligned, i, j, weight, (above[i], below[j])) for i, j, weight in aligned.pairs
    )
    rows = {i for i, _, _ in aligned.pairs}, {j for _, j, _ in aligned.pairs}
    drawn = _units(aligned.candidate_units, above, rows[0], _TOP)
    drawn += _units(aligned.reference_units, below, rows[1], _BOTTOM)
    return (
        f'<svg role="img" aria-label="{escape(_said(aligned))}" width="{wide:.0f}" '
        f'height="{high:.0f}" viewBox="0 0 {wide:.0f} {high:.0f}">'
        f'<text class="side" x="{_GAP}" y="14">candidate</text>'
        f'<text class="side" x="{_GAP}" y="{_BOTTOM + _HIGH + 18}">reference</text>'
        f"{lines}{drawn}</svg>"
    )


def _row(units: Sequence[str]) -> list[Box]:
    boxes: list[Box] = []
    left = _GAP
    for unit in units:
        boxes.append(Box(left, _FONT * width(label(unit)) + 2 * _PADDING))
        left += boxes[-1].wide + _GAP
    return boxes


def _units(units: Sequence[str], boxes: Sequence[Box], paired: set[int], top: float) -> str:
    return "".join(
        _unit(unit, box, i in paired, top)
        for i, (unit, box) in enumerate(zip(units, boxes, strict=True))
    )


def _unit(unit: str, box: Box, paired: bool, top: float) -> str:
    group, more = ("<g>", "") if paired else ('<g class="alone">', ", no partner")
    return (
        f"{group}<title>{escape(printable(unit))}{more}</title>"
        f'<rect x="{box.left:.1f}" y="{top}" width="{box.wide:.1f}" height="{_HIGH}" rx="4"/>'
        f'<text x="{box.middle:.1f}" y="{top + 18}">{escape(label(unit))}</text></g>'
    )


def _line(aligned: Aligned, i: int, j: int, weight: float, ends: tuple[Box, Box]) -> str:
    similarity = float(aligned.similarity[i, j])
    start, end, half = _TOP + _HIGH, _BOTTOM, (_TOP + _HIGH + _BOTTOM) / 2
    x, y = ends[0].middle, ends[1].middle
    units = printable(aligned.candidate_units[i]), printable(aligned.reference_units[j])
    return (
        f'<path d="M{x:.1f} {start}C{x:.1f} {half} {y:.1f} {half} {y:.1f} {end}" '
        f'stroke-width="{0.8 + 3.2 * min(weight, 1.0):.2f}" '
        f'opacity="{0.25 + 0.75 * min(max(similarity, 0.0), 1.0):.2f}">'
        f"<title>{escape(units[0])} – {escape(units[1])}: weight {weight:.2f}, "
        f"similarity {similarity:.2f}</title></path>"
    )


def _said(aligned: Aligned) -> str:
    """The picture in a sentence, for those who do not see it; the table says the rest."""
    counts = len(aligned.candidate_units), len(aligned.reference_units), len(aligned.pairs)
    return "{} candidate units, {} reference units, {} pairs between them".format(*counts)
