"""Format tables of text cells as plain text, TSV or LaTeX.

A `SystemGrid` is the table of systems and metrics that papers show.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeAlias

from evenmatch.data.scores import format_tsv_line

TextTable: TypeAlias = Sequence[Sequence[str]]  # the first row is the header

_GAP = "  "

_INDENT = 4  # characters before the cells of a row that is written as a paragraph

_MIN_WIDTH = 30  # characters of the last column, however narrow the page

_NUMBER = re.compile(r"-|-?\d+(\.\d+)?\** *")  # with stars for significance

_MEASURED = re.compile(r"-|[-+−]?\d")  # begins like a number: no name of a row

_PERCENTILE = re.compile(r"[\d.]+%")  # the header of a bound of the interval of the column before

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


_page_width: ContextVar[int] = ContextVar("page_width", default=0)


@contextmanager
def page_width(width: int) -> Iterator[None]:
    """Make `table_to_text` fit tables into `width` characters in this block; 0 sets no limit."""
    token = _page_width.set(width)
    try:
        yield
    finally:
        _page_width.reset(token)


def table_to_text(table: TextTable, *, width: int = 0) -> str:
    """Format a table with aligned columns; numeric columns are right-aligned.

    With a `width`, the last column is wrapped so that lines fit into it. In a `page_width`, a wider
    table is divided into several with the same rows, each with the columns that name the row.

    >>> print(table_to_text([["metric", "mean"], ["chrf", "0.5"]]))
    metric  mean
    chrf     0.5
    """
    page = _page_width.get()
    if not width and page and _width(table, range(len(table[0]))) > page:
        return _divided_table(table, page)
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


def _width(table: TextTable, columns: Sequence[int]) -> int:
    widths = [max(len(row[n]) for row in table) for n in columns]
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _divided_table(table: TextTable, page: int) -> str:
    """Format a table that is wider than the page: side by side parts below each other.

    If the columns that name the row leave no room for others, every row becomes a paragraph.
    """
    names = 1  # columns of text at the left name the row
    while names < len(table[0]) - 1 and not all(_MEASURED.match(row[names]) for row in table[1:]):
        names += 1
    groups: list[list[int]] = []  # columns that stay together: a value and its interval
    for column in range(names, len(table[0])):
        if groups and _PERCENTILE.fullmatch(table[0][column]):
            groups[-1].append(column)
        else:
            groups.append([column])
    left = [*range(names)]
    if max(_width(table, [*left, *group]) for group in groups) > page:
        return _row_paragraphs(table, names, page)
    parts: list[list[int]] = [[]]
    for group in groups:
        if parts[-1] and _width(table, [*left, *parts[-1], *group]) > page:
            parts.append([])
        parts[-1] += group
    with page_width(0):
        return "\n\n".join(
            table_to_text([[row[n] for n in [*left, *part]] for row in table]) for part in parts
        )


def _row_paragraphs(table: TextTable, names: int, page: int) -> str:
    """Format each row as its names on one line, and the other cells with their headers below."""
    header, *rows = table
    lines = [_GAP.join(header[:names])]
    for row in rows:
        lines.append(_GAP.join(row[:names]))
        indent, line = " " * _INDENT, ""
        for name, cell in list(zip(header, row, strict=True))[names:]:
            shown = f"{name} {cell.strip()}"
            if line and len(indent + line + _GAP + shown) > page:
                lines.append(indent + line)
                line = ""
            line += (_GAP if line else "") + shown
        lines.append(indent + line)
    return "\n".join(lines)


def wrap_prose(text: str) -> str:
    """Wrap the lines of a text to the `page_width`, except those of tables and signatures."""
    width = _page_width.get()
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent=" " * 2, break_on_hyphens=False)
        if 0 < width < len(line) and _GAP not in line.strip() and " · " not in line
        else line
        for line in text.split("\n")
    )


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
    columns = [*zip(*table[1:], strict=True)] or [("",)] * len(table[0])  # a header alone
    return [all(map(_NUMBER.fullmatch, column)) for column in columns]
