"""Tables of text cells as plain text, TSV and LaTeX."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from evenmatch.data.scores import format_tsv_line

TextTable: TypeAlias = Sequence[Sequence[str]]  # the first row is the header


_GAP = "  "


_MIN_WIDTH = 30


_NUMBER = re.compile(r"-|-?\d+(\.\d+)?")


_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{special: f"\\{special}" for special in "&%$#_{}"},
}


def format_number(value: float | None) -> str:
    """A number with four decimals; a dash where there is none."""
    return "-" if value is None else f"{value:.4f}"


def table_to_text(table: TextTable, *, width: int = 0) -> str:
    """Columns in line, those of numbers to the right.

    Given a `width`, the last column is folded so that lines keep to it.

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
    """One line per row."""
    return "".join(map(format_tsv_line, table)).removesuffix("\n")


def records_to_tsv(records: Sequence[Mapping[str, object]]) -> str:
    """Records of the same fields as TSV with a header, every digit kept; nothing for None.

    >>> records_to_tsv([{"metric": "chrf", "p": None}])
    'metric\\tp\\nchrf\\t'
    """
    cells = (["" if c is None else str(c) for c in record.values()] for record in records)
    return table_to_tsv([list(records[0]), *cells])


def table_to_latex(table: TextTable) -> str:
    """A tabular with the rules of the booktabs package, columns of numbers to the right."""
    header, *rows = (" & ".join(map(escape_latex, row)) + r" \\" for row in table)
    columns = "".join("r" if right else "l" for right in _numeric_columns(table))
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            header,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def escape_latex(text: str) -> str:
    r"""Text as LaTeX prints it.

    >>> print(escape_latex("f_disc 100%"))
    f\_disc 100\%
    """
    return "".join(_LATEX_ESCAPES.get(character, character) for character in text)


def _numeric_columns(table: TextTable) -> list[bool]:
    return [all(map(_NUMBER.fullmatch, column)) for column in zip(*table[1:], strict=True)]
