"""Two rows of units with lines between those that are paired, as inline SVG.

The similarity matrix as a table whose cells are coloured and whose pairs are framed.

Units as they are written in pictures and pages: on one line, printable, short.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from evenmatch.scoring.aligned import Aligned

_FONT_SIZE = 14.0  # pixels, as in style.css


_TOP, _BOTTOM, _BOX_HEIGHT = (
    24.0,
    164.0,
    26.0,
)  # where the boxes of the two rows begin, their height


_GAP, _PADDING = 10.0, 7.0


@dataclass(frozen=True, slots=True)
class UnitBox:
    """A unit's place in its row, in pixels."""

    left: float
    width: float

    @property
    def middle(self) -> float:
        """Where its lines begin."""
        return self.left + self.width / 2


def link_diagram(aligned: Aligned) -> str:
    """The link view: candidate above, reference below, a line per pair.

    A line is broader for a larger weight and fainter for a lower similarity.
    """
    above, below = _lay_out_row(aligned.candidate_units), _lay_out_row(aligned.reference_units)
    wide = max([box.left + box.width + _GAP for box in (*above, *below)] + [120.0])
    high = _BOTTOM + _BOX_HEIGHT + 24
    lines = "".join(
        _draw_link(aligned, i, j, weight, (above[i], below[j])) for i, j, weight in aligned.pairs
    )
    rows = {i for i, _, _ in aligned.pairs}, {j for _, j, _ in aligned.pairs}
    drawn = _draw_units(aligned.candidate_units, above, rows[0], _TOP)
    drawn += _draw_units(aligned.reference_units, below, rows[1], _BOTTOM)
    return (
        f'<svg role="img" aria-label="{escape(_alt_text(aligned))}" width="{wide:.0f}" '
        f'height="{high:.0f}" viewBox="0 0 {wide:.0f} {high:.0f}">'
        f'<text class="side" x="{_GAP}" y="14">candidate</text>'
        f'<text class="side" x="{_GAP}" y="{_BOTTOM + _BOX_HEIGHT + 18}">reference</text>'
        f"{lines}{drawn}</svg>"
    )


def _lay_out_row(units: Sequence[str]) -> list[UnitBox]:
    boxes: list[UnitBox] = []
    left = _GAP
    for unit in units:
        boxes.append(UnitBox(left, _FONT_SIZE * text_width(unit_label(unit)) + 2 * _PADDING))
        left += boxes[-1].width + _GAP
    return boxes


def _draw_units(
    units: Sequence[str], boxes: Sequence[UnitBox], paired: set[int], top: float
) -> str:
    return "".join(
        _draw_unit(unit, box, i in paired, top)
        for i, (unit, box) in enumerate(zip(units, boxes, strict=True))
    )


def _draw_unit(unit: str, box: UnitBox, paired: bool, top: float) -> str:
    group, more = ("<g>", "") if paired else ('<g class="alone">', ", no partner")
    return (
        f"{group}<title>{escape(printable(unit))}{more}</title>"
        f'<rect x="{box.left:.1f}" y="{top}" width="{box.width:.1f}" height="{_BOX_HEIGHT}" rx="4"/>'
        f'<text x="{box.middle:.1f}" y="{top + 18}">{escape(unit_label(unit))}</text></g>'
    )


def _draw_link(
    aligned: Aligned, i: int, j: int, weight: float, ends: tuple[UnitBox, UnitBox]
) -> str:
    similarity = float(aligned.similarity[i, j])
    start, end, half = _TOP + _BOX_HEIGHT, _BOTTOM, (_TOP + _BOX_HEIGHT + _BOTTOM) / 2
    x, y = ends[0].middle, ends[1].middle
    units = printable(aligned.candidate_units[i]), printable(aligned.reference_units[j])
    return (
        f'<path d="M{x:.1f} {start}C{x:.1f} {half} {y:.1f} {half} {y:.1f} {end}" '
        f'stroke-width="{0.8 + 3.2 * min(weight, 1.0):.2f}" '
        f'opacity="{0.25 + 0.75 * min(max(similarity, 0.0), 1.0):.2f}">'
        f"<title>{escape(units[0])} – {escape(units[1])}: weight {weight:.2f}, "
        f"similarity {similarity:.2f}</title></path>"
    )


def _alt_text(aligned: Aligned) -> str:
    """The picture in a sentence, for those who do not see it; the table says the rest."""
    counts = len(aligned.candidate_units), len(aligned.reference_units), len(aligned.pairs)
    return "{} candidate units, {} reference units, {} pairs between them".format(*counts)


MAX_CELLS = 10_000


_DENSE = 8  # columns beyond which their heads stand upright


def similarity_table(aligned: Aligned) -> str:
    """Every similarity in its cell; of a very large matrix, the pairs alone."""
    m, n = len(aligned.candidate_units), len(aligned.reference_units)
    return _matrix_table(aligned) if m * n <= MAX_CELLS else _pair_table(aligned)


def _matrix_table(aligned: Aligned) -> str:
    weights = {(i, j): weight for i, j, weight in aligned.pairs}
    rows, columns = {i for i, _ in weights}, {j for _, j in weights}
    alpha = _alpha(aligned)
    heads = "".join(
        _head(unit, "col", j in columns) for j, unit in enumerate(aligned.reference_units)
    )
    body = ""
    for i, unit in enumerate(aligned.candidate_units):
        cells = "".join(
            _cell(value, alpha[i, j], weights.get((i, j), 0.0), i in rows and j in columns)
            for j, value in enumerate(np.asarray(aligned.similarity)[i])
        )
        body += f"<tr>{_head(unit, 'row', i in rows)}{cells}</tr>\n"
    dense = ' class="dense"' if len(aligned.reference_units) > _DENSE else ""
    return (
        f"<table{dense}><caption>How similar each unit of the candidate (rows) is to each unit of "
        "the reference (columns). Framed cells are pairs, a heavier frame a larger weight; striped "
        f"ones belong to units without a partner.</caption>\n<thead><tr><td></td>{heads}</tr>"
        f"</thead>\n<tbody>\n{body}</tbody></table>"
    )


def _alpha(aligned: Aligned) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Similarities between 0 and 1: as they are, unless one lies outside."""
    similarity = np.asarray(aligned.similarity, dtype=np.float64)
    low, high = min(0.0, similarity.min(initial=0.0)), max(1.0, similarity.max(initial=1.0))
    scaled: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = (similarity - low) / (high - low)
    return scaled


def _head(unit: str, scope: str, paired: bool) -> str:
    text = escape(printable(unit))
    if paired:
        return f'<th scope="{scope}">{text}</th>'
    return f'<th scope="{scope}" class="alone">{text}<span class="unseen">, no partner</span></th>'


def _cell(value: float, alpha: float, weight: float, paired: bool) -> str:
    names = ["heat"]
    style, said = f"--s:{alpha:.2f}", ""
    if alpha > 0.55:
        names.append("hot")
    if not paired:
        names.append("alone")
    if weight:
        names.append("pair")
        style += f";--w:{weight:.2f}"
        said = f'<span class="unseen">, pair of weight {weight:.2f}</span>'
    number = f"{round(float(value), 2) + 0.0:.2f}"
    return f'<td class="{" ".join(names)}" style="{style}">{number}{said}</td>'


def _pair_table(aligned: Aligned) -> str:
    body = "".join(
        f"<tr><td>{escape(printable(aligned.candidate_units[i]))}</td>"
        f"<td>{escape(printable(aligned.reference_units[j]))}</td>"
        f"<td>{weight:.2f}</td><td>{aligned.similarity[i, j]:.2f}</td></tr>\n"
        for i, j, weight in aligned.pairs
    )
    size = f"{len(aligned.candidate_units)} by {len(aligned.reference_units)}"
    heads = "".join(
        f'<th scope="col">{h}</th>' for h in ("candidate", "reference", "weight", "similarity")
    )
    return (
        f"<table><caption>The pairs; the whole table of {size} similarities would be too large "
        f"to read.</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table>"
    )


MAX_LABEL_LENGTH = 18


def unit_label(unit: str) -> str:
    """A unit on one line, without control characters, cut where it is long.

    >>> unit_label("an extraordinarily long unit"), unit_label("\\t")
    ('an extraordinaril…', '(blank)')
    """
    return truncate(printable(unit), MAX_LABEL_LENGTH)


def printable(unit: str) -> str:
    """A unit on one line, without control characters, and never nothing at all."""
    clean = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in unit)
    return " ".join(clean.split()) or "(blank)"


def truncate(text: str, longest: int) -> str:
    """The text, cut to so many characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def text_width(text: str) -> float:
    """How wide a text is drawn, in sizes of its font, roughly.

    >>> text_width("cat"), text_width("猫")
    (1.8, 1.0)
    """
    return round(sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.6 for c in text), 1)
