"""The card of a metric that was made: what from, how, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.tables import TextTable, table_to_text
from evenmatch.errors import InputError
from evenmatch.scoring.saved import is_metric_path
from evenmatch.version import __version__

CARD_FILE = "README.md"


@dataclass(frozen=True, slots=True)
class MetricCard:
    """A metric in its folder: how it was made, what its scores sign, how it was judged.

    `facts` and `judged` are for people and in the card; `document` has the same for programs.
    """

    folder: Path
    title: str
    signature: str
    facts: Mapping[str, str]
    evaluations: Mapping[str, TextTable]
    document: Mapping[str, Any]

    def __str__(self) -> str:
        parts = [f"{what}\n{table_to_text(table)}" for what, table in self.evaluations.items()]
        facts = "\n".join(f"{name}: {value}" for name, value in self.facts.items())
        return "\n\n".join([*parts, f"{facts}\nto use: {self.metric}"])

    @property
    def metric(self) -> str:
        """The folder as it is named as a metric."""
        plain = str(self.folder)
        return plain if is_metric_path(plain) else f"./{plain}"

    def to_markdown(self) -> str:
        """The card as Markdown."""
        tables = [
            f"## {what}\n\n{_markdown_table(table)}" for what, table in self.evaluations.items()
        ]
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


def write_card(made: MetricCard) -> None:
    """Put the card beside the metric; it is no part of what the signature's hash covers."""
    (made.folder / CARD_FILE).write_text(made.to_markdown(), "utf-8")


def check_output_folder(out: str | PathLike[str]) -> Path:
    """A folder to write to, which must be new or empty."""
    folder = Path(out).expanduser()
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise InputError(f"{folder} is there already; name a new folder for the metric")
    return folder


def _markdown_table(table: TextTable) -> str:
    rows: list[Sequence[str]] = [table[0], ["---"] * len(table[0]), *table[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
