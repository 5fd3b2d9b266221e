"""The texts two metrics disagree on most, as HTML."""

from __future__ import annotations

from html import escape

from evenmatch.uses.meta.agreement_result import Agreement
from evenmatch.uses.meta.texts import Disputed, disputed, furthest_metrics

_LONGEST = 1200  # characters of a text


def texts_part(agreement: Agreement) -> str:
    """Texts for the pairs of metrics that go together least; nothing without scored texts."""
    pairs = furthest_metrics(agreement.scored)
    parts = []
    for first, second in pairs:
        found = disputed(agreement.scored, first, second)
        if found:
            shown = "\n".join(_text(text, (first, second)) for text in found)
            parts.append(f"<h3>{escape(first)} and {escape(second)}</h3>\n{shown}")
    if not parts:
        return ""
    return (
        "<section>\n<h2>Where metrics disagree most</h2>\n<p>A place is the share of the set's "
        "outputs that are judged worse. Shown are the metrics that go together least.</p>\n"
        + "\n".join(parts)
        + "\n</section>"
    )


def _text(text: Disputed, metrics: tuple[str, str]) -> str:
    judged = [
        f"{escape(metric)} <b>{score:.3f}</b>, place {place:.0%}"
        for metric, score, place in zip(metrics, text.scores, text.places, strict=True)
    ]
    if text.rating is not None and text.rating_place is not None:
        judged.append(f"people <b>{text.rating:.3f}</b>, place {text.rating_place:.0%}")
    else:
        judged.append("people: not rated")
    where = " · ".join(filter(None, (text.data, text.subset, text.system, text.segment)))
    references = "\n".join(f"<dt>reference</dt><dd>{_cut(r)}</dd>" for r in text.references)
    return (
        f'<article><p class="where">{escape(where)}</p>\n<p>{" — ".join(judged)}</p>\n'
        f"<dl><dt>candidate</dt><dd>{_cut(text.candidate)}</dd>\n{references}</dl></article>"
    )


def _cut(text: str) -> str:
    """The text, escaped, and its end left out where it is very long."""
    return escape(text if len(text) <= _LONGEST else text[:_LONGEST] + " …")
