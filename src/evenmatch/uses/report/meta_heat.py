"""How alike metrics are beyond what people explain, as a coloured table."""

from __future__ import annotations

import math
from html import escape

from evenmatch.stats.partial import Linear
from evenmatch.uses.meta.agreement_result import Agreement
from evenmatch.uses.meta.partial import metric_likeness

_HOT = 0.6  # white letters from this depth of colour on


def likeness_part(agreement: Agreement) -> str:
    """Partial correlations of every two metrics given people; nothing for a single metric."""
    metrics, first = agreement.metrics, agreement.entries[0]
    if len(metrics) < 2:
        return ""
    method: Linear = "spearman" if first.method == "spearman" else "pearson"
    by_system = first.level == "system"
    matrix = metric_likeness(agreement.scored, metrics, by_system=by_system, method=method)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in metrics)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>' + "".join(map(_cell, row)) + "</tr>"
        for name, row in zip(metrics, matrix.tolist(), strict=True)
    )
    over = "systems" if by_system else "outputs"
    several = ", averaged over the sets" if len(agreement.scored) > 1 else ""
    return (
        "<section>\n<h2>What metrics share beyond people</h2>\n<p>Partial correlation "
        f"({method}) of two metrics' scores of {over}, given people's ratings{several}.</p>\n"
        '<div class="wide" role="region" tabindex="0" aria-label="partial correlations">'
        f'<table class="heat"><thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{rows}\n'
        "</tbody></table></div>\n</section>"
    )


def _cell(value: float) -> str:
    if math.isnan(value):
        return '<td class="number">-</td>'
    side = "above" if value >= 0 else "below"
    hot = " hot" if abs(value) >= _HOT else ""
    depth = min(abs(value), 1.0)
    return f'<td class="{side}{hot}" style="--s:{depth:.2f}">{round(value, 2) + 0.0:.2f}</td>'
