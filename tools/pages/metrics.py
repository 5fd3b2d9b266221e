"""Write docs/reference/metrics.md: every metric by name, with its options and their defaults."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from evenmatch.registry import KINDS, find_entry, kind_of, names, spec
from evenmatch.registry.parts import describe_type, setting_types
from tools.pages.markdown import table_lines

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"

INTRODUCTION = """# Metrics by name

Each name may be used alone or with options: `em.score(candidates, references, "f_disc(layer=6)")`,
`evenmatch score -m "f_disc(layer=6)"`. `evenmatch explain NAME` shows what an option means for the
parts of a metric. This page is written by `python -m tools.pages.metrics`.
"""


def page(built_in: Collection[str]) -> str:
    """Return the page of these metrics as Markdown."""
    found = [name for name in names("metric") if name in built_in]
    return "\n".join([INTRODUCTION, *("\n".join(_section(name)) + "\n" for name in found)])


def _section(name: str) -> Iterator[str]:
    factory = find_entry(name).factory
    yield f"## `{name}`\n"
    yield inspect.getdoc(factory) or ""
    parameters = inspect.signature(factory).parameters
    if parameters:
        hints = setting_types(factory)
        rows = [
            [f"`{each.name}`", _default(each), _accepted(hints[each.name])]
            for each in parameters.values()
        ]
        yield ""
        yield from table_lines([["option", "default", "takes"], *rows])


def _accepted(hint: Any) -> str:
    # the names of all parts of a kind would make the table too wide
    return next((f"a part: `{kind}`" for kind, own in KINDS.items() if hint is own), "") or (
        describe_type(hint)
    )


def _default(parameter: inspect.Parameter) -> str:
    value: Any = parameter.default
    if value is inspect.Parameter.empty:
        return "required"
    return f"`{spec(value) if kind_of(value) else repr(value)}`"


if __name__ == "__main__":
    PAGE.write_text(page(names("metric")), "utf-8")
    print(f"wrote {PAGE}")
