"""evenmatch list: every name that specs can use."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.options import Json
from evenmatch.cli.output import line_width, say, say_json
from evenmatch.data.tables import as_text
from evenmatch.registry import KINDS, entry, names


def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(help=f"Only one kind of part: {', '.join(KINDS)}.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """List the metrics and the parts they can be made of."""
    found = [entry(name) for name in names(kind)]
    found.sort(key=lambda e: (list(KINDS).index(e.kind), e.name))
    rows = [[e.name, e.kind, first_line(e.make.__doc__)] for e in found]
    if json:
        keys = ("name", "kind", "about")
        say_json({"parts": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        say(as_text([["name", "kind", "what it is"], *rows], width=line_width()))


def first_line(docstring: str | None) -> str:
    """What a docstring says first."""
    return (docstring or "").strip().split("\n", 1)[0]
