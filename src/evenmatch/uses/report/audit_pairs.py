"""The pairs a metric tells apart most, with the matches that do it, as HTML."""

from __future__ import annotations

from html import escape

from evenmatch.data.fair_texts import fair_pair
from evenmatch.errors import EvenmatchError
from evenmatch.scoring.metric import AlignMetric
from evenmatch.uses.fair.audit_result import PUBLISHED, Audit, Worst
from evenmatch.uses.fair.why import Explained, explain_pair
from evenmatch.uses.report.metrics_here import metric_here
from evenmatch.viewer.links import links


def pairs_part(audit: Audit) -> str:
    """Each of the worst pairs with its scores; alignment metrics show what they matched."""
    if not audit.worst:
        return ""
    shown = "\n".join(_case(case, _why(audit, case)) for case in audit.worst)
    return (
        "<section>\n<h2>The worst pairs</h2>\n<p>A positive gap says that the candidate a "
        f"stereotype expects scores higher.</p>\n{shown}\n</section>"
    )


def _why(audit: Audit, case: Worst) -> Explained | None:
    if audit.signatures[case.metric] == PUBLISHED:
        return None
    metric = metric_here(case.metric)
    if not isinstance(metric, AlignMetric):
        return None
    try:
        return explain_pair(fair_pair(case.cand_a, case.ref_a, case.cand_b, case.ref_b), metric)
    except EvenmatchError:  # its model is not here
        return None


def _case(case: Worst, why: Explained | None) -> str:
    texts = (
        (f"first, {case.score_a:.4f}", case.cand_a),
        (f"second, {case.score_b:.4f}", case.cand_b),
        *dict.fromkeys((("reference", case.ref_a), ("reference", case.ref_b))),
    )
    said = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in texts)
    return (
        f'<article>\n<p class="where">{escape(case.attribute)}, pair {case.number}, '
        f"{escape(case.metric)}: gap <b>{case.gap:+.2f}</b></p>\n<dl>{said}</dl>\n"
        f"{_explained(why) if why else ''}</article>"
    )


def _explained(why: Explained) -> str:
    pictures = "".join(
        f'<div class="wide evenmatch" role="region" tabindex="0" aria-label="{name} candidate">'
        f"{links(aligned)}</div>"
        for name, aligned in (("first", why.first), ("second", why.second))
    )
    return (
        f"<p>{escape(why.words())}</p>\n<details><summary>The matches</summary>{pictures}</details>"
    )
