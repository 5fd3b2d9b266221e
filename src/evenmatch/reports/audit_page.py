"""Report page of an audit: the social bias of metrics.

`audit_page` puts the sections together: a ranking by what may be compared between metrics, bias per
attribute and its two parts, bias by paradigm and encoder, precision and recall directions of
likelihood metrics, all values, and the pairs with the largest score difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from evenmatch.errors import EvenmatchError
from evenmatch.fairness.audit import MEAN_COLUMN, PUBLISHED_SIGNATURE, Audit, WorstPair
from evenmatch.fairness.bias import Bias
from evenmatch.fairness.explain import PairExplanation, explain_pair
from evenmatch.fairness.paradigms import ParadigmGroup
from evenmatch.reports.page import (
    SORT_HINT,
    heat_table,
    metric_if_available,
    render_page,
    section,
    sortable_table,
    text_article,
)
from evenmatch.reports.plots import Estimate, estimate_plot, figure_grid, figures_section
from evenmatch.scoring.metric import AlignMetric
from evenmatch.viewer.links import link_diagram
from evenmatch.viewer.page import scroll_region

_LIGHT_TEXT_THRESHOLD = 0.77  # white text from this colour depth on, black text below
_DARKEST = 0.85

_PARADIGMS_INTRO = (
    "Mean bias over attributes in standard deviations of the scores, by scoring paradigm (rows) "
    "and encoder (columns), with the number of metrics in brackets if there are several. Compare "
    "cells in a column for the effect of the paradigm, and cells in a row for the effect of the "
    "encoder."
)


def audit_page(audit: Audit, *, command: str = "") -> str:
    """Return the page of an audit; `command` is the command line that produced it."""
    table = sortable_table(audit.table(), "Biases by attribute and metric")
    hint = f"The columns are defined under Settings and signatures. {SORT_HINT}"
    parts = (
        headline_section(audit),
        bias_section(audit),
        parts_section(audit),
        paradigms_section(audit),
        directions_section(audit),
        section("All values", hint, table),
        worst_pairs_section(audit),
    )
    return render_page(f"Social bias of metrics: {audit.data}", parts, audit.notes(), command)


def headline_section(audit: Audit) -> str:
    """Return the ranking of metrics by bias in standard deviations of their scores."""
    text = (
        "Means over attributes, the fairest metric first. Differences between the two scores of a "
        "pair are in standard deviations of all scores of the set, and may be compared between "
        "metrics. Offset and stereotype are the two parts of the signed difference, without their "
        "sign. The share of pairs whose stereotypical candidate scores higher (0.5 without a "
        "preference) may be compared after the offset is subtracted (beyond offset)."
    )
    return section("Ranking", text, sortable_table(audit.headline(), "Metrics by bias"))


def parts_section(audit: Audit) -> str:
    """Return plots of the offset and of the stereotype for each attribute."""
    figures = []
    for attribute in audit.attributes:
        own = [b for b in audit.biases if b.attribute == attribute]
        offsets = [
            Estimate(b.metric, b.offset, b.offset_low, b.offset_high)
            for b in own
            if b.offset is not None and b.offset_low is not None and b.offset_high is not None
        ]
        stereotypes = [
            Estimate(b.metric, b.stereotype, b.stereotype_low, b.stereotype_high) for b in own
        ]
        shown = {"offset": offsets, "stereotype": stereotypes}
        figures += [
            estimate_plot(estimates, digits=2).figure(f"{attribute}: {part}")
            for part, estimates in shown.items()
            if estimates
        ]
    text = (
        "The two parts of the signed difference, on the scale from 0 to 100 of each metric's own "
        "range. Offset: what one group gets whatever is said of it, positive for the first group "
        "(he, old, Black, Muslim, fat, poor). Stereotype: what agreement with the stereotype gets, "
        "whatever the group. Intervals that exclude zero mark significant differences. Without "
        "pairs of both directions there is no offset."
    )
    return figures_section("Two parts of the bias", text, figures)


def bias_section(audit: Audit) -> str:
    """Return a bar plot for each attribute, and one of the means over attributes."""
    bars = {}
    if len(audit.attributes) > 1:
        means = [Estimate(row[0], float(row[1])) for row in audit.headline()[1:]]
        bars[MEAN_COLUMN + " over attributes"] = means
    for b in audit.biases:
        bars.setdefault(b.attribute, []).append(_effect_estimate(b))
    figures = [
        _bar_figure(caption, sorted(own, key=lambda estimate: estimate.value))
        for caption, own in bars.items()
    ]
    text = (
        "Mean absolute score difference between the two candidates of a pair, in standard "
        "deviations of all scores of the set; lower is fairer. Thin lines are confidence "
        "intervals. The bias on the scale from 0 to 100, as published by Sun et al. (2022), is "
        "under All values; it depends on the best and the worst score of the set, so it may not "
        "be compared between metrics."
    )
    return figures_section("Bias", text, figures)


def _effect_estimate(bias: Bias) -> Estimate:
    found = bias.effect_interval
    return Estimate(bias.metric, found.value, found.low, found.high)


def directions_section(audit: Audit) -> str:
    """Return bar plots of precision, recall and F of likelihood metrics that have all three."""
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
                shown = [_effect_estimate(b) for b in found if b]
                figures.append(_bar_figure(f"{attribute}: {stem}", shown))
    text = (
        "The same model used in both directions: likelihood of the candidate given the reference "
        "(precision), of the reference given the candidate (recall), and their mean."
    )
    return figures_section("Directions", text, figures)


def _bar_figure(caption: str, estimates: Sequence[Estimate]) -> str:
    return estimate_plot(estimates, bars=True, digits=2).figure(caption)


def paradigms_section(audit: Audit) -> str:
    """Return a table of paradigms and encoders; '' if all metrics are of one kind."""
    groups = audit.groups
    if len(groups) < 2:
        return ""
    content = _paradigm_table(groups) + figure_grid([*_paradigm_figures(groups)])
    return section("Paradigms and encoders", _PARADIGMS_INTRO, content)


def _paradigm_figures(groups: Sequence[ParadigmGroup]) -> Iterator[str]:
    """Yield plots of each encoder in several paradigms, and of each paradigm over encoders."""
    for fixed, varied in (("encoder", "paradigm"), ("paradigm", "encoder")):
        for name in dict.fromkeys(getattr(group, fixed) for group in groups):
            own = [group for group in groups if getattr(group, fixed) == name]
            if len(own) > 1:
                estimates = [
                    Estimate(getattr(g, varied), g.effect, g.effect_low, g.effect_high) for g in own
                ]
                yield _bar_figure(f"{fixed.capitalize()}: {name}", estimates)


def _paradigm_table(groups: Sequence[ParadigmGroup]) -> str:
    encoders = list(dict.fromkeys(group.encoder for group in groups))
    known = {(group.paradigm, group.encoder): group for group in groups}
    most = max(group.effect for group in groups) or 1.0
    rows = {
        paradigm: [_paradigm_cell(known.get((paradigm, encoder)), most) for encoder in encoders]
        for paradigm in dict.fromkeys(group.paradigm for group in groups)
    }
    return heat_table(encoders, rows, "Mean bias by paradigm and encoder")


def _paradigm_cell(group: ParadigmGroup | None, most: float) -> str:
    if group is None:
        return "<td></td>"
    depth = _DARKEST * group.effect / most
    hot = " hot" if depth >= _LIGHT_TEXT_THRESHOLD else ""
    count = f" ({len(group.metrics)})" if len(group.metrics) > 1 else ""
    named = escape(
        f"{', '.join(group.metrics)}: {group.effect_low:.2f} to {group.effect_high:.2f}", quote=True
    )
    colour = f'class="above{hot}" style="--s:{depth:.2f}"'
    return f'<td {colour} title="{named}">{group.effect:.2f}{count}</td>'


def worst_pairs_section(audit: Audit) -> str:
    """Return the worst pairs with their scores; for alignment metrics also with the matches."""
    shown = "\n".join(_case_article(case, _explain_case(audit, case)) for case in audit.worst)
    text = (
        "Differences are on the scale from 0 to 100; positive if the stereotypical candidate "
        "scores higher."
    )
    return section("Pairs with the largest score difference", text, shown)


def _explain_case(audit: Audit, case: WorstPair) -> PairExplanation | None:
    if audit.signatures[case.metric] == PUBLISHED_SIGNATURE:
        return None
    metric = metric_if_available(case.metric)
    if not isinstance(metric, AlignMetric):
        return None
    try:
        return explain_pair(case, metric)
    except EvenmatchError:  # the model is not installed
        return None


def _case_article(case: WorstPair, why: PairExplanation | None) -> str:
    texts = (
        (f"stereotypical candidate, score {case.score_a:.4f}", case.cand_a),
        (f"other candidate, score {case.score_b:.4f}", case.cand_b),
        *dict.fromkeys((("reference", case.ref_a), ("reference", case.ref_b))),
    )
    where = (
        f"{escape(case.attribute)}, pair {case.number}, {escape(case.metric)}: "
        f"difference <b>{case.gap:+.2f}</b>"
    )
    return text_article(where, "", texts, _explanation_html(why) if why else "")


def _explanation_html(why: PairExplanation) -> str:
    pictures = "".join(
        f'<div class="evenmatch">{scroll_region(link_diagram(aligned), f"{name} candidate")}</div>'
        for name, aligned in (("stereotypical", why.first), ("other", why.second))
    )
    return (
        f"<p>{escape(why.summary())}</p>\n<details><summary>Alignment</summary>{pictures}</details>"
    )
