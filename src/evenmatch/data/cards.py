"""Model card of a trained metric: its training data, settings and evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.tables import TextTable, table_to_text
from evenmatch.errors import InputError
from evenmatch.scoring.metric import is_metric_path
from evenmatch.version import __version__

CARD_FILE = "README.md"


@dataclass(frozen=True, slots=True)
class MetricCard:
    """A trained metric in its folder, with its signature, settings and evaluation.

    `facts` and `evaluations` are printed in the card; `document` holds the same data for programs.
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
        """The metric's name: its folder, written as a path."""
        plain = str(self.folder)
        return plain if is_metric_path(plain) else f"./{plain}"

    def to_markdown(self) -> str:
        """Format the card as Markdown."""
        tables = [
            f"## {what}\n\n{_markdown_table(table)}" for what, table in self.evaluations.items()
        ]
        facts = "\n".join(f"- {name}: {value}" for name, value in self.facts.items())
        use = (
            f"Made by evenmatch {__version__}. To use it, give this folder as the metric: "
            "`evenmatch score -c CANDIDATES -r REFERENCES -m ./FOLDER`."
        )
        parts = [f"# {self.title}", use, facts, *tables, f"Signature: `{self.signature}`"]
        return "\n\n".join(parts) + "\n"


def write_card(card: MetricCard) -> None:
    """Write the card into the metric's folder; the hash in the signature does not cover it."""
    (card.folder / CARD_FILE).write_text(card.to_markdown(), "utf-8")


def check_output_folder(out: str | PathLike[str]) -> Path:
    """Return the output folder; raise if it is not new or empty."""
    folder = Path(out).expanduser()
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise InputError(f"{folder} already exists; name a new folder for the metric")
    return folder


def _markdown_table(table: TextTable) -> str:
    rows: list[Sequence[str]] = [table[0], ["---"] * len(table[0]), *table[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
