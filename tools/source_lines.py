"""Count the lines of src by folder: python -m tools.source_lines [FOLDER]."""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

KINDS = ("code", "imports", "docstrings", "comments", "blank")
_OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count_lines(source: str) -> Counter[str]:
    """Count the lines of a module by kind; every line has one."""
    kinds = [
        "blank" if not line.strip() else "comments" if line.strip()[0] == "#" else "code"
        for line in source.splitlines()
    ]
    for node in ast.walk(ast.parse(source)):
        first: ast.AST = node
        if isinstance(node, _OWNERS) and ast.get_docstring(node, clean=False) is not None:
            kind, first = "docstrings", node.body[0]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            kind = "imports"
        else:
            continue
        assert isinstance(first, ast.stmt)
        stop = first.end_lineno or first.lineno
        kinds[first.lineno - 1 : stop] = [kind] * (stop - first.lineno + 1)
    return Counter(kinds)


def count_folders(root: Path) -> dict[str, Counter[str]]:
    """Count the lines of the modules below each folder, and of those in none."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root).parts
        folder = inside[0] if len(inside) > 1 else "(top)"
        found[folder] += count_lines(path.read_text("utf-8"))
    return found


def format_table(found: Mapping[str, Counter[str]]) -> str:
    """A Markdown table with a row per folder, the longest first, and their sum."""
    rows = sorted(found.items(), key=lambda row: -row[1].total())
    rows.append(("all", sum(found.values(), Counter())))
    lines = [f"| folder | lines | {' | '.join(KINDS)} |", "|---" + "|--:" * 6 + "|"]
    for name, counts in rows:
        cells = [f"{n:,}" for n in (counts.total(), *(counts[kind] for kind in KINDS))]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "src/evenmatch")
    print(format_table(count_folders(root)))
