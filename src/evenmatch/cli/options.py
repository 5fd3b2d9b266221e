"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer


class Format(StrEnum):
    """How a result is printed."""

    text = "text"
    json = "json"
    tsv = "tsv"
    latex = "latex"


Metrics: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--metric",
        "-m",
        metavar="METRIC",
        help="A metric's name or spec; several share one pass over the texts.",
        default_factory=lambda: ["bertscore"],
        show_default="bertscore",
    ),
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else.")
]
PrintFormat: TypeAlias = Annotated[
    Format,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"How to print the result: {', '.join(Format)}.",
    ),
]
Device: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="Where models run, as torch names it.")
]
Threads: TypeAlias = Annotated[
    int, typer.Option(min=0, metavar="N", help="Threads a model may use; 0 leaves that to torch.")
]
BatchTokens: TypeAlias = Annotated[
    int, typer.Option(min=1, metavar="N", help="The most tokens in one forward pass.")
]
Caching: TypeAlias = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Keep vectors on disk for the next run.")
]
ExactCache: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--exact-cache", help="The same with every bit, in twice the room.", show_default=False
    ),
]
ShowProgress: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Tell progress on standard error; without either, only where that is a terminal.",
        show_default=False,
    ),
]
