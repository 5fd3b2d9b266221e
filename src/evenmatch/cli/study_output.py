"""What every study takes and gives: a folder, and what it found said on standard output."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import typer

from evenmatch.cli.output import say, say_json, tell
from evenmatch.data.tables import as_text
from evenmatch.uses.study.cells import study_folder
from evenmatch.uses.study.page import Report

Out: TypeAlias = Annotated[
    str, typer.Option(metavar="FOLDER", help="Where results, figures and the page go.")
]


def finish(report: Report, out: str, document: dict[str, Any] | None) -> None:
    """Write a study's folder, and say what it found."""
    tell(f"wrote {report.write(study_folder(out))}")
    if document is not None:
        say_json(document)
    else:
        tables = [as_text(table) for table in report.tables.values()]
        say("\n\n".join([*tables, "\n".join(report.findings)]))
