"""An audit as one page that stands alone."""

from __future__ import annotations

from pathlib import Path

from evenmatch.uses.fair.audit_result import Audit
from evenmatch.uses.report.audit_bars import bars_part, directions_part
from evenmatch.uses.report.audit_groups import groups_part
from evenmatch.uses.report.audit_pairs import pairs_part
from evenmatch.uses.report.sorted_table import sorted_table
from evenmatch.uses.report.whole_page import notes_part, section, whole_page, write_page


def write_audit(audit: Audit, path: str | Path) -> Path:
    """Write the page of an audit and give its path."""
    return write_page(audit_page(audit), path)


def audit_page(audit: Audit, *, command: str = "") -> str:
    """Bars, the table, the worst pairs; nothing is loaded from elsewhere."""
    table = sorted_table(audit.table(), "Biases by attribute and metric")
    parts = (
        bars_part(audit),
        groups_part(audit),
        directions_part(audit),
        section("All values", "A column's name sorts by it.", table),
        pairs_part(audit),
        notes_part(audit.notes(), command),
    )
    return whole_page(f"Social bias of metrics: {audit.data}", parts)
