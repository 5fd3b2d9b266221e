"""Format tables of text cells as plain text, TSV or LaTeX."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from evenmatch.data.scores import format_tsv_line

TextTable: TypeAlias = Sequence[Sequence[str]]  # the first row is the header

_GAP = "  "

_MIN_WIDTH = 30  # characters of the last column, however narrow the page

_NUMBER = re.compile(r"-|-?\d+(\.\d+)?")

_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{special: f"\\{special}" for special in "&%$#_{}"},
}


def format_number(value: float | None) -> str:
    """Format a number with four decimals; None becomes a dash."""
    return "-" if value is None else f"{value:.4f}"


def table_to_text(table: TextTable, *, width: int = 0) -> str:
    """Format a table with aligned columns; numeric columns are right-aligned.

    With a `width`, the last column is wrapped so that lines fit into it.

    >>> print(table_to_text([["metric", "mean"], ["chrf", "0.5"]]))
    metric  mean
    chrf     0.5
    """
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    right = _numeric_columns(table)
    before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    room = max(width - before, _MIN_WIDTH) if width else max(widths[-1], 1)
    lines = []
    for row in table:
        first, *more = textwrap.wrap(row[-1], room) or [""]
        cells = zip([*row[:-1], first], widths, right, strict=True)
        lines.append(_GAP.join(c.rjust(w) if flush else c.ljust(w) for c, w, flush in cells))
        lines += [" " * before + rest for rest in more]
    return "\n".join(line.rstrip() for line in lines)


def table_to_tsv(table: TextTable) -> str:
    """Format a table as TSV, one line per row."""
    return "".join(map(format_tsv_line, table)).removesuffix("\n")


def records_to_tsv(records: Sequence[Mapping[str, object]]) -> str:
    """Format records with the same fields as TSV with a header, in full precision; None is empty.

    >>> records_to_tsv([{"metric": "chrf", "p": None}])
    'metric\\tp\\nchrf\\t'
    """
    cells = (["" if c is None else str(c) for c in record.values()] for record in records)
    return table_to_tsv([list(records[0]), *cells])


def table_to_latex(table: TextTable) -> str:
    """Format a table as a LaTeX tabular with booktabs rules; numeric columns are right-aligned."""
    header, *rows = (" & ".join(map(escape_latex, row)) + r" \\" for row in table)
    columns = "".join("r" if right else "l" for right in _numeric_columns(table))
    before = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header, r"\midrule"]
    return "\n".join([*before, *rows, r"\bottomrule", r"\end{tabular}"])


def escape_latex(text: str) -> str:
    r"""Escape the special characters of LaTeX.

    >>> print(escape_latex("f_disc 100%"))
    f\_disc 100\%
    """
    return "".join(_LATEX_ESCAPES.get(character, character) for character in text)


def _numeric_columns(table: TextTable) -> list[bool]:
    return [all(map(_NUMBER.fullmatch, column)) for column in zip(*table[1:], strict=True)]
