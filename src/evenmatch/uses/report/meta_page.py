"""Agreement with people as one page that stands alone."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

from evenmatch.uses.meta.agreement_result import Agreement
from evenmatch.uses.report.meta_heat import likeness_part
from evenmatch.uses.report.meta_intervals import intervals_part
from evenmatch.uses.report.meta_scatter import scatter_part
from evenmatch.uses.report.meta_table import ranking_part, table_part
from evenmatch.uses.report.meta_texts import texts_part
from evenmatch.uses.report.whole_page import notes_part, whole_page, write_page


def write_report(agreement: Agreement, path: str | Path) -> Path:
    """Write the page of an agreement and give its path."""
    return write_page(agreement_page(agreement), path)


def agreement_page(
    agreement: Agreement, *, signatures: Mapping[str, str] | None = None, command: str = ""
) -> str:
    """The table, the ranking, plots and disputed texts; nothing is loaded from elsewhere.

    An agreement without the scores themselves gives what its values tell; then `signatures` are
    the recipes of its metrics.
    """
    first = agreement.entries[0]
    data = ", ".join(dict.fromkeys(entry.data for entry in agreement.entries))
    parts = [
        f"<p>Method {escape(first.method)}, level {escape(first.level)}.</p>",
        ranking_part(agreement),
        intervals_part(agreement),
        table_part(agreement),
    ]
    if agreement.scored:
        parts += [scatter_part(agreement), likeness_part(agreement), texts_part(agreement)]
    notes = [*agreement.notes(), *(f"{name}: {own}" for name, own in (signatures or {}).items())]
    parts.append(notes_part(notes, command))
    return whole_page(f"Agreement with people: {data}", parts)
