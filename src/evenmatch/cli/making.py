"""What the commands that make a metric have in common: options, and how the result is told."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from evenmatch.cli.options import count
from evenmatch.cli.output import say_either, tell
from evenmatch.data.cards import Made

TrainOn: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Rated outputs: a data set's name, a folder, or one JSONL, TSV or Parquet table with "
        "system, segment, candidate, references, rating.",
    ),
]
Out: TypeAlias = Annotated[
    str,
    typer.Option(
        "--out", "-o", metavar="FOLDER", help="A new folder for the metric, its card included."
    ),
]
Epochs: TypeAlias = Annotated[int, count("How often each pair is seen.")]

# What training does with a pair, and judging after it.
SEEN = "seen"


def show(made: Made, json: bool) -> None:
    """Print what was made, for people or for programs, and how to name it as a metric."""
    say_either(made, made.document, json=json)
    tell(f"wrote {made.folder}; name it as a metric: -m {made.metric}")
