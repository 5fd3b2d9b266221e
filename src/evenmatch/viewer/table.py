"""The similarity matrix as a table whose cells are coloured and whose pairs are framed."""

from __future__ import annotations

from html import escape

import numpy as np

from evenmatch.scoring.aligned import Aligned
from evenmatch.viewer.labels import printable

MOST_CELLS = 10_000
_DENSE = 8  # columns beyond which their heads stand upright


def heat_table(aligned: Aligned) -> str:
    """Every similarity in its cell; of a very large matrix, the pairs alone."""
    m, n = len(aligned.candidate_units), len(aligned.reference_units)
    return _matrix(aligned) if m * n <= MOST_CELLS else _pairs(aligned)


def _matrix(aligned: Aligned) -> str:
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


def _pairs(aligned: Aligned) -> str:
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
