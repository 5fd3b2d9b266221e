"""Markdown for result pages: tables, and the claims of a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenmatch.data.tables import TextTable
from evenmatch.studies.experiment import Claim


def table_lines(table: TextTable) -> Iterator[str]:
    """Yield a Markdown table; the first row is the header."""
    header, *rows = [
        [text.replace("|", "\\|").replace("<", "\\<") for text in row] for row in table
    ]
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def claim_lines(claims: Sequence[Claim], over: str) -> Iterator[str]:
    """Yield a table of claims and whether each is replicated, with the criterion."""
    columns = list(dict.fromkeys(where for claim in claims for where in claim.results))
    rows = [
        [
            claim.statement,
            *(
                f"{claim.results[c][1]} ({100 * claim.results[c][0].value:+.2f})"
                if c in claim.results
                else ""
                for c in columns
            ),
        ]
        for claim in claims
    ]
    yield from table_lines([["claim", *columns], *rows])
    yield ""
    yield (
        f"Replicated: the 95 % interval over {over} and the difference of every seed are above 0. "
        "Reversed: both are below. The number is the mean difference, times 100."
    )
    yield ""
