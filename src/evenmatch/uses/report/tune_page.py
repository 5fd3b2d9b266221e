"""A run of training as one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenmatch.uses.report.fluid import captioned, curve_field, figures_part
from evenmatch.uses.report.sorted_table import record_table, sorted_table
from evenmatch.uses.report.whole_page import notes_part, section, whole_page

_CURVES = (
    ("BLEU on the texts held out", ("bleu",)),
    ("Cross-entropy", ("cross_entropy",)),
    ("Reward of texts drawn, and of the likeliest ones", ("reward", "baseline")),
)


def tune_page(document: Mapping[str, Any]) -> str:
    """What was seen at each look: BLEU, cross-entropy and rewards as curves and in a table."""
    looks = document["looks"]
    table = sorted_table(record_table(looks), "Looks at the run") if looks else ""
    parts = (
        figures_part("The course of training", "", _figures(looks)),
        section("All looks", "Means of the steps since the look before.", table),
        notes_part(_notes(document), document.get("command", "")),
    )
    return whole_page("Fine-tuning with a reward", parts)


def _figures(looks: Sequence[Mapping[str, float]]) -> list[str]:
    figures = []
    for caption, names in _CURVES:
        lines = {
            name.replace("_", "-"): [(look["step"], look[name]) for look in looks]
            for name in names
            if looks and name in looks[0]
        }
        if lines:
            figures.append(captioned(caption, curve_field(("step", ", ".join(lines)), lines)))
    return figures


def _notes(document: Mapping[str, Any]) -> list[str]:
    best = document["best"]
    return [
        f"{document['steps']} steps, {'to the end' if document['ended'] else 'paused'}",
        f"best: BLEU {100 * best['bleu']:.2f} at step {best['step']}" if best else "no look yet",
    ]
