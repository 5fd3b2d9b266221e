"""An audit as one page that stands alone.

Biases with their intervals, drawn as bars.

Biases by paradigm and encoder, as a coloured table and as bars.

The pairs a metric tells apart most, with the matches that do it, as HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from evenmatch.data.fairness_sets import make_fairness_pair
from evenmatch.errors import EvenmatchError
from evenmatch.fairness.audit import MEAN_COLUMN, PUBLISHED_SIGNATURE, Audit, WorstPair
from evenmatch.fairness.explain import PairExplanation, explain_pair
from evenmatch.fairness.paradigms import ParadigmGroup
from evenmatch.reports.page import (
    metric_if_available,
    notes_section,
    render_page,
    scroll_region,
    section,
    sortable_table,
    write_page,
)
from evenmatch.reports.plots import (
    Estimate,
    estimate_plot_html,
    figure_with_caption,
    figures_section,
)
from evenmatch.scoring.metric import AlignMetric
from evenmatch.viewer.links import link_diagram


def write_audit_report(audit: Audit, path: str | Path) -> Path:
    """Write the page of an audit and give its path."""
    return write_page(audit_page(audit), path)


def audit_page(audit: Audit, *, command: str = "") -> str:
    """Bars, the table, the worst pairs; nothing is loaded from elsewhere."""
    table = sortable_table(audit.table(), "Biases by attribute and metric")
    parts = (
        bias_section(audit),
        paradigms_section(audit),
        directions_section(audit),
        section("All values", "A column's name sorts by it.", table),
        worst_pairs_section(audit),
        notes_section(audit.notes(), command),
    )
    return render_page(f"Social bias of metrics: {audit.data}", parts)


def bias_section(audit: Audit) -> str:
    """A plot per attribute, and one of the means over them."""
    figures = [
        _bar_figure(
            attribute,
            [
                Estimate(b.metric, b.bias, b.low, b.high)
                for b in audit.biases
                if b.attribute == attribute
            ],
        )
        for attribute in audit.attributes
    ]
    if len(audit.attributes) > 1:
        means = [Estimate(row[0], float(row[-1])) for row in audit.grid()[1:]]
        figures.insert(0, _bar_figure(MEAN_COLUMN + " over attributes", means))
    said = (
        "How far the two candidates of a pair lie apart on average, where the scores of a set span "
        "0 to 100; the thin line is the interval. Ranges differ between metrics, so read the raw "
        "differences below as well."
    )
    return figures_section("Bias", said, figures)


def directions_section(audit: Audit) -> str:
    """Precision, recall and F of generation metrics side by side, where all three are there."""
    ends = ("-p", "-r", "-F"), ("_precision", "_recall", "")
    figures = []
    for attribute in audit.attributes:
        own = {b.metric: b for b in audit.biases if b.attribute == attribute}
        stems = {
            (name.removesuffix(kind[0]), kind)
            for name in own
            for kind in ends
            if name.endswith(kind[0])
        }
        for stem, kind in sorted(stems):
            found = [own.get(stem + end) for end in kind]
            if all(found):
                shown = [Estimate(b.metric, b.bias, b.low, b.high) for b in found if b]
                figures.append(_bar_figure(f"{attribute}: {stem}", shown, ranked=False))
    said = (
        "The same model asked both ways: how likely the candidate is after the reference "
        "(precision), the other way round (recall), and their mean."
    )
    return figures_section("Directions", said, figures)


def _bar_figure(caption: str, marks: Sequence[Estimate], *, ranked: bool = True) -> str:
    """Bars with a caption, the fairest first unless their order means something."""
    shown = sorted(marks, key=lambda mark: mark.value) if ranked else list(marks)
    return figure_with_caption(caption, estimate_plot_html(shown, bars=True, digits=2))


_LIGHT_TEXT_THRESHOLD = 0.7  # white letters from this depth of colour on


_DARKEST = 0.85


_PARADIGMS_INTRO = (
    "Mean bias over attributes of the metrics that judge one way (rows) by one model (columns); "
    "the number of metrics where there are several. Down a column only the way of judging changes, "
    "along a row only the model."
)


def paradigms_section(audit: Audit) -> str:
    """A table of paradigms and encoders; nothing where all metrics are of one kind."""
    groups = audit.groups
    if len(groups) < 2:
        return ""
    figures = [figure_with_caption(*drawn) for drawn in _paradigm_figures(groups)]
    bars = '<div class="figures even">\n' + "\n".join(figures) + "\n</div>" if figures else ""
    return section("Paradigms and encoders", _PARADIGMS_INTRO, _paradigm_table(groups) + bars)


def _paradigm_figures(groups: Sequence[ParadigmGroup]) -> Iterator[tuple[str, str]]:
    """The same encoder judging in several ways, and the same way on several encoders."""
    for encoder in dict.fromkeys(group.encoder for group in groups):
        own = [group for group in groups if group.encoder == encoder]
        if len(own) > 1:
            marks = [Estimate(g.paradigm, g.bias, g.low, g.high) for g in own]
            yield f"the same encoder: {encoder}", estimate_plot_html(marks, bars=True, digits=2)
    for paradigm in dict.fromkeys(group.paradigm for group in groups):
        own = [group for group in groups if group.paradigm == paradigm]
        if len(own) > 1:
            marks = [Estimate(g.encoder, g.bias, g.low, g.high) for g in own]
            yield f"the same paradigm: {paradigm}", estimate_plot_html(marks, bars=True, digits=2)


def _paradigm_table(groups: Sequence[ParadigmGroup]) -> str:
    encoders = list(dict.fromkeys(group.encoder for group in groups))
    known = {(group.paradigm, group.encoder): group for group in groups}
    most = max(group.bias for group in groups) or 1.0
    head = "".join(f'<th scope="col">{escape(encoder)}</th>' for encoder in encoders)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(paradigm)}</th>'
        + "".join(_paradigm_cell(known.get((paradigm, encoder)), most) for encoder in encoders)
        + "</tr>"
        for paradigm in dict.fromkeys(group.paradigm for group in groups)
    )
    return scroll_region(
        '<table class="heat"><caption>Mean bias by paradigm and encoder</caption>\n'
        f"<thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{rows}\n"
        "</tbody></table>",
        "mean bias by paradigm and encoder",
    )


def _paradigm_cell(group: ParadigmGroup | None, most: float) -> str:
    if group is None:
        return "<td></td>"
    depth = _DARKEST * group.bias / most
    hot = " hot" if depth >= _LIGHT_TEXT_THRESHOLD else ""
    count = f" ({len(group.metrics)})" if len(group.metrics) > 1 else ""
    named = escape(f"{', '.join(group.metrics)}: {group.low:.2f} to {group.high:.2f}", quote=True)
    colour = f'class="above{hot}" style="--s:{depth:.2f}"'
    return f'<td {colour} title="{named}">{group.bias:.2f}{count}</td>'


def worst_pairs_section(audit: Audit) -> str:
    """Each of the worst pairs with its scores; alignment metrics show what they matched."""
    if not audit.worst:
        return ""
    shown = "\n".join(_case_article(case, _explain_case(audit, case)) for case in audit.worst)
    return (
        "<section>\n<h2>The worst pairs</h2>\n<p>A positive gap says that the candidate a "
        f"stereotype expects scores higher.</p>\n{shown}\n</section>"
    )


def _explain_case(audit: Audit, case: WorstPair) -> PairExplanation | None:
    if audit.signatures[case.metric] == PUBLISHED_SIGNATURE:
        return None
    metric = metric_if_available(case.metric)
    if not isinstance(metric, AlignMetric):
        return None
    try:
        return explain_pair(
            make_fairness_pair(case.cand_a, case.ref_a, case.cand_b, case.ref_b), metric
        )
    except EvenmatchError:  # its model is not here
        return None


def _case_article(case: WorstPair, why: PairExplanation | None) -> str:
    texts = (
        (f"first, {case.score_a:.4f}", case.cand_a),
        (f"second, {case.score_b:.4f}", case.cand_b),
        *dict.fromkeys((("reference", case.ref_a), ("reference", case.ref_b))),
    )
    said = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in texts)
    return (
        f'<article>\n<p class="where">{escape(case.attribute)}, pair {case.number}, '
        f"{escape(case.metric)}: gap <b>{case.gap:+.2f}</b></p>\n<dl>{said}</dl>\n"
        f"{_explanation_html(why) if why else ''}</article>"
    )


def _explanation_html(why: PairExplanation) -> str:
    pictures = "".join(
        f'<div class="wide evenmatch" role="region" tabindex="0" aria-label="{name} candidate">'
        f"{link_diagram(aligned)}</div>"
        for name, aligned in (("first", why.first), ("second", why.second))
    )
    return f"<p>{escape(why.summary())}</p>\n<details><summary>The matches</summary>{pictures}</details>"
