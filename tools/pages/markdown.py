"""Markdown for result pages."""

from __future__ import annotations

from collections.abc import Iterator

from evenmatch.data.tables import TextTable


def table_lines(table: TextTable) -> Iterator[str]:
    """Yield a Markdown table; the first row is the header."""
    header, *rows = [
        [text.replace("|", "\\|").replace("<", "\\<") for text in row] for row in table
    ]
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
