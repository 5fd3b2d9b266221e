"""Format tables of text cells as plain text, TSV or LaTeX.

A `SystemGrid` is the table of systems and metrics that papers show.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from evenmatch.data.scores import format_tsv_line

TextTable: TypeAlias = Sequence[Sequence[str]]  # the first row is the header

_GAP = "  "

_MIN_WIDTH = 30  # characters of the last column, however narrow the page

_NUMBER = re.compile(r"-|-?\d+(\.\d+)?\** *")  # with stars for significance

_STARRED = re.compile(r"(-?)(\d+(?:\.\d+)?)(\**) *")

_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "↓": r"$\downarrow$",
    **{special: f"\\{special}" for special in "&%$#_{}"},
}


def format_number(value: float | None, scale: float = 1.0) -> str:
    """Format a number with four decimals, with fewer if it is scaled; None becomes a dash.

    >>> format_number(0.28912), format_number(28.912, 100)
    ('0.2891', '28.91')
    """
    decimals = max(0, 4 - round(math.log10(scale)))
    return "-" if value is None else f"{value:.{decimals}f}"


def direction_label(metric: str, higher_is_better: bool) -> str:
    """Return the name of a metric, with an arrow if lower scores are better."""
    return metric if higher_is_better else f"{metric} ↓"


@dataclass(frozen=True)
class SystemGrid:
    """Scores of systems by metric; `marks` are stars for significance, by system and metric.

    `metrics` says of each metric whether higher is better.
    """

    metrics: Mapping[str, bool]
    scores: Mapping[str, Mapping[str, float]]
    marks: Mapping[tuple[str, str], str] = field(default_factory=dict)
    scale: float = 1.0

    def table(self) -> TextTable:
        """Table with a row for each system and a column for each metric."""
        width = {
            m: max([len(self.marks.get((s, m), "")) for s in self.scores]) for m in self.metrics
        }
        rows = [
            [
                system,
                *(
                    format_number(scores[m], self.scale)
                    + self.marks.get((system, m), "").ljust(width[m])
                    for m in self.metrics
                ),
            ]
            for system, scores in self.scores.items()
        ]
        return [["system", *(direction_label(m, up) for m, up in self.metrics.items())], *rows]

    def to_text(self) -> str:
        """Table as plain text."""
        return table_to_text(self.table())

    def to_latex(self) -> str:
        """Table as LaTeX, with the best score of each metric in bold."""
        best = {
            m: (max if up else min)(scores[m] for scores in self.scores.values())
            for m, up in self.metrics.items()
        }
        bold = {
            (row, column)
            for row, scores in enumerate(self.scores.values(), 1)
            for column, m in enumerate(self.metrics, 1)
            if scores[m] == best[m]
        }
        return table_to_latex(self.table(), bold)


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
        first, *more = [row[-1]] if right[-1] else textwrap.wrap(row[-1], room) or [""]
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


def table_to_latex(table: TextTable, bold: Collection[tuple[int, int]] = ()) -> str:
    """Format a table as a LaTeX tabular with booktabs rules; numeric columns are right-aligned.

    Negative numbers get a minus sign, and stars of significance are raised. `bold` are the places
    (row, column) of cells in bold.
    """
    header, *rows = (
        " & ".join(_latex_cell(cell, (n, m) in bold) for m, cell in enumerate(row)) + r" \\"
        for n, row in enumerate(table)
    )
    columns = "".join("r" if right else "l" for right in _numeric_columns(table))
    before = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header, r"\midrule"]
    return "\n".join([*before, *rows, r"\bottomrule", r"\end{tabular}"])


def _latex_cell(cell: str, bold: bool) -> str:
    r"""Format a cell for LaTeX.

    >>> print(_latex_cell("-0.25**", True))
    $-$\textbf{0.25}$^{**}$
    """
    number = _STARRED.fullmatch(cell)
    if not number:
        return escape_latex(cell)
    sign, digits, stars = number.groups()
    shown = rf"\textbf{{{digits}}}" if bold else digits
    return f"{'$-$' if sign else ''}{shown}{f'$^{{{stars}}}$' if stars else ''}"


def escape_latex(text: str) -> str:
    r"""Escape the special characters of LaTeX.

    >>> print(escape_latex("f_disc 100%"))
    f\_disc 100\%
    """
    return "".join(_LATEX_ESCAPES.get(character, character) for character in text)


def _numeric_columns(table: TextTable) -> list[bool]:
    return [all(map(_NUMBER.fullmatch, column)) for column in zip(*table[1:], strict=True)]
