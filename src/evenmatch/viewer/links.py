"""Static views of an alignment: link diagram (SVG), similarity matrix (table), and unit labels."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from evenmatch.scoring.aligned import Aligned

MAX_CELLS = 10_000  # of a similarity matrix that is shown in full
MAX_LABEL_LENGTH = 18
FONT_SIZE = 14.0  # pixels, as in style.css
# Top edge of the candidate's first row of boxes, distance to the reference's, height of a box.
_TOP, _BETWEEN, _BOX_HEIGHT = 24.0, 114.0, 26.0
_GAP, _PADDING, _LEADING = 10.0, 7.0, 14.0
_ROW_WIDTH = 900.0  # longer rows are wrapped
_LIGHT_TEXT_THRESHOLD = 0.77  # white numbers from this colour depth on, black ones below
_DENSE = 8  # with more columns, their headers are vertical


def link_diagram(aligned: Aligned) -> str:
    """Draw the link diagram as SVG: candidate above, reference below, one line per pair.

    Wider lines have a larger weight, fainter lines a lower similarity.
    """
    candidate_units, reference_units = aligned.labels
    above = _lay_out_rows(candidate_units, _TOP)
    below = _lay_out_rows(reference_units, _last_row(above, _TOP) + _BOX_HEIGHT + _BETWEEN)
    width = max([box.left + box.width + _GAP for box in (*above, *below)] + [120.0])
    bottom = _last_row(below, _last_row(above, _TOP) + _BOX_HEIGHT + _BETWEEN) + _BOX_HEIGHT
    height = bottom + 24
    lines = "".join(
        _draw_link(aligned, i, j, weight, (above[i], below[j])) for i, j, weight in aligned.pairs
    )
    paired = matched_units(aligned)
    units = _draw_units(candidate_units, above, paired[0])
    units += _draw_units(reference_units, below, paired[1])
    # For screen readers; the table has the details.
    label = f"{len(above)} candidate units, {len(below)} reference units, "
    label += f"{len(aligned.pairs)} pairs between them"
    return (
        f'<svg role="img" aria-label="{label}" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
        f'<text class="side" x="{_GAP}" y="14">candidate</text>'
        f'<text class="side" x="{_GAP}" y="{bottom + 18}">reference</text>'
        f"{lines}{units}</svg>"
    )


def similarity_table(aligned: Aligned) -> str:
    """Create a table of all similarities, or only of the pairs if the matrix is very large."""
    m, n = len(aligned.candidate_units), len(aligned.reference_units)
    return _matrix_table(aligned) if m * n <= MAX_CELLS else _pair_table(aligned)


def matched_units(aligned: Aligned) -> tuple[set[int], set[int]]:
    """Return the indexes of matched candidate units and of matched reference units."""
    pairs = aligned.pairs
    return {i for i, _, _ in pairs}, {j for _, j, _ in pairs}


def unit_label(unit: str) -> str:
    """Return a unit on one line, without control characters, truncated if long.

    >>> unit_label("an extraordinarily long unit"), unit_label("\\t")
    ('an extraordinaril…', '(blank)')
    """
    return truncate(printable(unit), MAX_LABEL_LENGTH)


def printable(unit: str) -> str:
    """Return a unit on one line, without control characters; blank units become "(blank)"."""
    clean = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in unit)
    return " ".join(clean.split()) or "(blank)"


def truncate(text: str, longest: int) -> str:
    """Truncate a text to at most `longest` characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def text_width(text: str) -> float:
    """Estimate the width of a text in multiples of its font size.

    >>> text_width("cat"), text_width("猫")
    (1.8, 1.0)
    """
    return round(sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.6 for c in text), 1)


@dataclass(frozen=True, slots=True)
class UnitBox:
    """Position of the box of a unit, in pixels."""

    left: float
    top: float
    width: float

    @property
    def middle(self) -> float:
        """Centre of the box, where lines start."""
        return self.left + self.width / 2


def _lay_out_rows(units: Sequence[str], top: float) -> list[UnitBox]:
    """Place the units in rows, from this height on."""
    boxes: list[UnitBox] = []
    left = _GAP
    for unit in units:
        width = FONT_SIZE * text_width(unit_label(unit)) + 2 * _PADDING
        if left > _GAP and left + width + _GAP > _ROW_WIDTH:
            left, top = _GAP, top + _BOX_HEIGHT + _LEADING
        boxes.append(UnitBox(left, top, width))
        left += width + _GAP
    return boxes


def _last_row(boxes: Sequence[UnitBox], top: float) -> float:
    return max((box.top for box in boxes), default=top)


def _draw_units(units: Sequence[str], boxes: Sequence[UnitBox], paired: set[int]) -> str:
    drawn = ""
    for i, (unit, box) in enumerate(zip(units, boxes, strict=True)):
        group, more = ("<g>", "") if i in paired else ('<g class="alone">', ", unmatched")
        drawn += (
            f"{group}<title>{escape(printable(unit))}{more}</title>"
            f'<rect x="{box.left:.1f}" y="{box.top}" width="{box.width:.1f}" '
            f'height="{_BOX_HEIGHT}" rx="4"/>'
            f'<text x="{box.middle:.1f}" y="{box.top + 18}">{escape(unit_label(unit))}</text></g>'
        )
    return drawn


def _draw_link(
    aligned: Aligned, i: int, j: int, weight: float, ends: tuple[UnitBox, UnitBox]
) -> str:
    similarity = float(aligned.similarity[i, j])
    start, end = ends[0].top + _BOX_HEIGHT, ends[1].top
    half = (start + end) / 2
    x, y = ends[0].middle, ends[1].middle
    units = printable(aligned.labels[0][i]), printable(aligned.labels[1][j])
    return (
        f'<path d="M{x:.1f} {start}C{x:.1f} {half} {y:.1f} {half} {y:.1f} {end}" '
        f'stroke-width="{0.8 + 3.2 * min(weight, 1.0):.2f}" '
        f'opacity="{0.25 + 0.75 * min(max(similarity, 0.0), 1.0):.2f}">'
        f"<title>{escape(units[0])} – {escape(units[1])}: weight {weight:.2f}, "
        f"similarity {similarity:.2f}</title></path>"
    )


def _matrix_table(aligned: Aligned) -> str:
    weights = {(i, j): weight for i, j, weight in aligned.pairs}
    rows, columns = matched_units(aligned)
    similarity = np.asarray(aligned.similarity, dtype=np.float64)
    # Similarities are scaled to the range 0 to 1; unchanged if all are within it.
    low, high = min(0.0, similarity.min(initial=0.0)), max(1.0, similarity.max(initial=1.0))
    heads = "".join(_head(unit, "col", j in columns) for j, unit in enumerate(aligned.labels[1]))
    body = ""
    for i, unit in enumerate(aligned.labels[0]):
        cells = "".join(
            _cell(
                value,
                (value - low) / (high - low),
                weights.get((i, j), 0.0),
                i in rows and j in columns,
            )
            for j, value in enumerate(similarity[i])
        )
        body += f"<tr>{_head(unit, 'row', i in rows)}{cells}</tr>\n"
    dense = ' class="dense"' if len(aligned.reference_units) > _DENSE else ""
    return (
        f"<table{dense}><caption>Similarity of each unit of the candidate (rows) to each unit of "
        "the reference (columns). Framed cells are pairs; a thicker frame means a larger weight. "
        f"Striped cells belong to unmatched units.</caption>\n<thead><tr><td></td>{heads}</tr>"
        f"</thead>\n<tbody>\n{body}</tbody></table>"
    )


def _head(unit: str, scope: str, paired: bool) -> str:
    text = escape(printable(unit))
    if paired:
        return f'<th scope="{scope}">{text}</th>'
    return f'<th scope="{scope}" class="alone">{text}<span class="unseen">, unmatched</span></th>'


def _cell(value: float, alpha: float, weight: float, paired: bool) -> str:
    names = (
        "heat" + (" hot" if alpha > _LIGHT_TEXT_THRESHOLD else "") + ("" if paired else " alone")
    )
    style, weight_text = f"--s:{alpha:.2f}", ""
    if weight:
        names += " pair"
        style += f";--w:{weight:.2f}"
        weight_text = f'<span class="unseen">, pair of weight {weight:.2f}</span>'
    number = f"{round(float(value), 2) + 0.0:.2f}"
    return f'<td class="{names}" style="{style}">{number}{weight_text}</td>'


def _pair_table(aligned: Aligned) -> str:
    candidate_units, reference_units = aligned.labels
    body = "".join(
        f"<tr><td>{escape(printable(candidate_units[i]))}</td>"
        f"<td>{escape(printable(reference_units[j]))}</td>"
        f"<td>{weight:.2f}</td><td>{aligned.similarity[i, j]:.2f}</td></tr>\n"
        for i, j, weight in aligned.pairs
    )
    size = f"{len(aligned.candidate_units)} by {len(aligned.reference_units)}"
    names = ("candidate", "reference", "weight", "similarity")
    heads = "".join(f'<th scope="col">{name}</th>' for name in names)
    return (
        f"<table><caption>Only the pairs; the full table of {size} similarities is too large "
        f"to show.</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table>"
    )
