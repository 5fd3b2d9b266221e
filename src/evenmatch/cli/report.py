"""evenmatch report: write a result as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenmatch.cli.console import print_message
from evenmatch.cli.options import count_option, optional_option
from evenmatch.data.pairs import LineAlignedFiles, PairFile, open_pair_file
from evenmatch.reports.page import check_page_path
from evenmatch.reports.results import read_result, write_report


def report(
    result: Annotated[
        str,
        typer.Argument(
            metavar="RESULT.json",
            help="JSON output of score, compare, meta, audit, keyphrases, tune or study (--json).",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="PAGE.html",
            help="HTML file to write.",
            show_default="RESULT.html in the same folder",
        ),
    ] = "",
    texts: Annotated[
        str,
        optional_option(
            "FILE",
            "For results of score: the file that was scored. The report then shows the worst and "
            "the best texts with their alignments.",
        ),
    ] = "",
    candidates: Annotated[
        str,
        typer.Option(
            "--candidates",
            "-c",
            metavar="FILE",
            help="Like --texts, but for line-aligned files: the candidates.",
            show_default=False,
        ),
    ] = "",
    references: Annotated[
        list[str] | None,
        typer.Option(
            "--references",
            "-r",
            metavar="FILE",
            help="Like --texts, but for line-aligned files: the references; may be given several "
            "times.",
            show_default=False,
        ),
    ] = None,
    examples: Annotated[
        int,
        count_option(
            "Number of texts to show from each end of the ranking: N worst and N best.", least=0
        ),
    ] = 3,
) -> None:
    """Write an HTML report of a result.

    The page has sortable tables, plots, examples and signatures. It is self-contained: it loads no
    other files.
    """
    target = check_page_path(out or Path(result).with_suffix(".html"))
    given = _open_texts(texts, candidates, references or [])
    pairs = None if given is None else list(given)
    written = write_report(read_result(result), target, pairs=pairs, examples=examples)
    print_message(f"wrote {written}")


def _open_texts(file: str, candidates: str, references: list[str]) -> PairFile | None:
    if file and (candidates or references):
        raise typer.BadParameter("give either --texts, or -c and -r, not both")
    if file:
        return open_pair_file(file)
    if bool(candidates) != bool(references):
        raise typer.BadParameter("give both -c and -r: the candidates and their references")
    return LineAlignedFiles(candidates, tuple(references)) if candidates else None
