"""Biases with their intervals, drawn as bars."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.uses.fair.audit_result import MEAN, Audit
from evenmatch.uses.report.fluid import Mark, captioned, figures_part, mark_rows


def bars_part(audit: Audit) -> str:
    """A plot per attribute, and one of the means over them."""
    figures = [
        _figure(
            attribute,
            [
                Mark(b.metric, b.bias, b.low, b.high)
                for b in audit.biases
                if b.attribute == attribute
            ],
        )
        for attribute in audit.attributes
    ]
    if len(audit.attributes) > 1:
        means = [Mark(row[0], float(row[-1])) for row in audit.grid()[1:]]
        figures.insert(0, _figure(MEAN + " over attributes", means))
    said = (
        "How far the two candidates of a pair lie apart on average, where the scores of a set span "
        "0 to 100; the thin line is the interval. Ranges differ between metrics, so read the raw "
        "differences below as well."
    )
    return figures_part("Bias", said, figures)


def directions_part(audit: Audit) -> str:
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
                shown = [Mark(b.metric, b.bias, b.low, b.high) for b in found if b]
                figures.append(_figure(f"{attribute}: {stem}", shown, ranked=False))
    said = (
        "The same model asked both ways: how likely the candidate is after the reference "
        "(precision), the other way round (recall), and their mean."
    )
    return figures_part("Directions", said, figures)


def _figure(caption: str, marks: Sequence[Mark], *, ranked: bool = True) -> str:
    """Bars with a caption, the fairest first unless their order means something."""
    shown = sorted(marks, key=lambda mark: mark.value) if ranked else list(marks)
    return captioned(caption, mark_rows(shown, bars=True, digits=2))
