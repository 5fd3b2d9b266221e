"""The card of a metric that was made: what from, how, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.tables import Table, as_text
from evenmatch.errors import InputError
from evenmatch.scoring.saved import is_path
from evenmatch.version import __version__

CARD = "README.md"


@dataclass(frozen=True, slots=True)
class Made:
    """A metric in its folder: how it was made, what its scores sign, how it was judged.

    `facts` and `judged` are for people and in the card; `document` has the same for programs.
    """

    folder: Path
    title: str
    signature: str
    facts: Mapping[str, str]
    judged: Mapping[str, Table]
    document: Mapping[str, Any]

    def __str__(self) -> str:
        parts = [f"{what}\n{as_text(table)}" for what, table in self.judged.items()]
        facts = "\n".join(f"{name}: {value}" for name, value in self.facts.items())
        return "\n\n".join([*parts, f"{facts}\nto use: {self.metric}"])

    @property
    def metric(self) -> str:
        """The folder as it is named as a metric."""
        plain = str(self.folder)
        return plain if is_path(plain) else f"./{plain}"

    def card(self) -> str:
        """The card as Markdown."""
        tables = [f"## {what}\n\n{_markdown(table)}" for what, table in self.judged.items()]
        facts = "\n".join(f"- {name}: {value}" for name, value in self.facts.items())
        return (
            "\n\n".join(
                [
                    f"# {self.title}",
                    f"Made by evenmatch {__version__}. To use it, name this folder as the metric: "
                    "`evenmatch score -c CANDIDATES -r REFERENCES -m ./FOLDER`.",
                    facts,
                    *tables,
                    f"Signature: `{self.signature}`",
                ]
            )
            + "\n"
        )


def write_card(made: Made) -> None:
    """Put the card beside the metric; it is no part of what the signature's hash covers."""
    (made.folder / CARD).write_text(made.card(), "utf-8")


def check_out(out: str | PathLike[str]) -> Path:
    """A folder to write to, which must be new or empty."""
    folder = Path(out).expanduser()
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise InputError(f"{folder} is there already; name a new folder for the metric")
    return folder


def _markdown(table: Table) -> str:
    rows: list[Sequence[str]] = [table[0], ["---"] * len(table[0]), *table[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
