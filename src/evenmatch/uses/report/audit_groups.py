"""Biases by paradigm and encoder, as a coloured table and as bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from evenmatch.uses.fair.audit_result import Audit
from evenmatch.uses.fair.groups import Group
from evenmatch.uses.report.fluid import Mark, captioned, mark_rows
from evenmatch.uses.report.whole_page import scrolled, section

_HOT = 0.7  # white letters from this depth of colour on
_DEEPEST = 0.85
_SAID = (
    "Mean bias over attributes of the metrics that judge one way (rows) by one model (columns); "
    "the number of metrics where there are several. Down a column only the way of judging changes, "
    "along a row only the model."
)


def groups_part(audit: Audit) -> str:
    """A table of paradigms and encoders; nothing where all metrics are of one kind."""
    groups = audit.groups
    if len(groups) < 2:
        return ""
    figures = [captioned(*drawn) for drawn in _figures(groups)]
    bars = '<div class="figures even">\n' + "\n".join(figures) + "\n</div>" if figures else ""
    return section("Paradigms and encoders", _SAID, _table(groups) + bars)


def _figures(groups: Sequence[Group]) -> Iterator[tuple[str, str]]:
    """The same encoder judging in several ways, and the same way on several encoders."""
    for encoder in dict.fromkeys(group.encoder for group in groups):
        own = [group for group in groups if group.encoder == encoder]
        if len(own) > 1:
            marks = [Mark(g.paradigm, g.bias, g.low, g.high) for g in own]
            yield f"the same encoder: {encoder}", mark_rows(marks, bars=True, digits=2)
    for paradigm in dict.fromkeys(group.paradigm for group in groups):
        own = [group for group in groups if group.paradigm == paradigm]
        if len(own) > 1:
            marks = [Mark(g.encoder, g.bias, g.low, g.high) for g in own]
            yield f"the same paradigm: {paradigm}", mark_rows(marks, bars=True, digits=2)


def _table(groups: Sequence[Group]) -> str:
    encoders = list(dict.fromkeys(group.encoder for group in groups))
    known = {(group.paradigm, group.encoder): group for group in groups}
    most = max(group.bias for group in groups) or 1.0
    head = "".join(f'<th scope="col">{escape(encoder)}</th>' for encoder in encoders)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(paradigm)}</th>'
        + "".join(_cell(known.get((paradigm, encoder)), most) for encoder in encoders)
        + "</tr>"
        for paradigm in dict.fromkeys(group.paradigm for group in groups)
    )
    return scrolled(
        '<table class="heat"><caption>Mean bias by paradigm and encoder</caption>\n'
        f"<thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{rows}\n"
        "</tbody></table>",
        "mean bias by paradigm and encoder",
    )


def _cell(group: Group | None, most: float) -> str:
    if group is None:
        return "<td></td>"
    depth = _DEEPEST * group.bias / most
    hot = " hot" if depth >= _HOT else ""
    count = f" ({len(group.metrics)})" if len(group.metrics) > 1 else ""
    named = escape(f"{', '.join(group.metrics)}: {group.low:.2f} to {group.high:.2f}", quote=True)
    colour = f'class="above{hot}" style="--s:{depth:.2f}"'
    return f'<td {colour} title="{named}">{group.bias:.2f}{count}</td>'
