"""Write docs/reference/metrics.md: every metric by name, with its options and their defaults."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenmatch.registry import find_entry, kind_of, names, spec
from evenmatch.registry.parts import describe_type, setting_types
from tools.pages.markdown import table_lines

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"

INTRODUCTION = """# Metrics by name

Each name may be used alone or with options: `em.score(candidates, references, "f_disc(layer=6)")`,
`evenmatch score -m "f_disc(layer=6)"`. `evenmatch explain NAME` shows what an option means for the
parts of a metric. This page is written by `python -m tools.pages.metrics`.
"""


def page() -> str:
    """Return the page as Markdown."""
    sections = [INTRODUCTION, *("\n".join(_section(name)) + "\n" for name in names("metric"))]
    return "\n".join(sections)


def _section(name: str) -> Iterator[str]:
    factory = find_entry(name).factory
    yield f"## `{name}`\n"
    yield inspect.getdoc(factory) or ""
    parameters = inspect.signature(factory).parameters
    if parameters:
        hints = setting_types(factory)
        rows = [
            [f"`{each.name}`", _default(each), describe_type(hints[each.name])]
            for each in parameters.values()
        ]
        yield ""
        yield from table_lines([["option", "default", "takes"], *rows])


def _default(parameter: inspect.Parameter) -> str:
    value: Any = parameter.default
    if value is inspect.Parameter.empty:
        return "required"
    return f"`{spec(value) if kind_of(value) else repr(value)}`"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE}")
