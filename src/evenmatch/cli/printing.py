"""How results are printed: as text, JSON, TSV or LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Protocol

import typer

from evenmatch.cli.options import Json
from evenmatch.cli.output import as_json, say
from evenmatch.data.tables import Table, as_latex, records_as_tsv


class Format(StrEnum):
    """How a result is printed."""

    text = "text"
    json = "json"
    tsv = "tsv"
    latex = "latex"


class Noted(Protocol):
    """A result that says what it rests on; as text it reads whole."""

    def notes(self) -> Sequence[str]:
        """What the numbers rest on."""


@dataclass(frozen=True)
class Printing:
    """How a command prints its result, as options."""

    style: Annotated[
        Format,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help=f"How to print the result: {', '.join(Format)}.",
        ),
    ] = Format.text
    json: Json = False

    @property
    def format(self) -> Format:
        """The format that is asked for; --json goes before --format."""
        return Format.json if self.json else self.style

    def say(
        self,
        found: Noted,
        *,
        document: Mapping[str, Any],
        records: Sequence[Mapping[str, object]],
        tables: Sequence[Table],
    ) -> None:
        """Print a result as text, its document as JSON, its records as TSV or its tables as LaTeX.

        LaTeX has the notes of the result before the tables, as comments.
        """
        if self.format is Format.json:
            say(as_json(document))
        elif self.format is Format.tsv:
            say(records_as_tsv(records))
        elif self.format is Format.latex:
            say("\n".join([*(f"% {note}" for note in found.notes()), *map(as_latex, tables)]))
        else:
            say(str(found))
