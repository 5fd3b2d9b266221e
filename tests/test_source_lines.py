"""The count of source lines that a decision page shows."""

from __future__ import annotations

from pathlib import Path

from tools.source_lines import count_folders, count_lines, format_table

SOURCE = '''"""About
two lines."""

import os
# why
def f():
    """One line."""
    return os  # not a comment line
'''


def test_every_line_is_of_one_kind() -> None:
    counted = {"docstrings": 3, "blank": 1, "imports": 1, "comments": 1, "code": 2}
    assert count_lines(SOURCE) == counted


def test_folders_are_counted_with_what_lies_below_them(tmp_path: Path) -> None:
    (tmp_path / "part" / "inner").mkdir(parents=True)
    for place in ("top.py", "part/one.py", "part/inner/two.py"):
        (tmp_path / place).write_text(SOURCE)
    found = count_folders(tmp_path)
    assert {name: counts.total() for name, counts in found.items()} == {"(top)": 8, "part": 16}
    assert format_table(found).splitlines()[-1] == "| all | 24 | 6 | 3 | 9 | 3 | 3 |"
