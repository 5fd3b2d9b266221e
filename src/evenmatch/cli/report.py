"""evenmatch report: a result as one page that can be mailed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenmatch.cli.console import print_message
from evenmatch.cli.options import count_option, optional_option
from evenmatch.data.pairs import LineAlignedFiles, PairFile, open_pair_file
from evenmatch.reports.page import check_page_path, write_page
from evenmatch.reports.results import read_result, result_page


def report(
    result: Annotated[
        str,
        typer.Argument(
            metavar="RESULT.json",
            help="What score, compare, meta, audit, keyphrases, tune or study printed with --json.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="PAGE.html",
            help="Where the page goes.",
            show_default="beside the result",
        ),
    ] = "",
    texts: Annotated[
        str,
        optional_option(
            "FILE",
            "The file that was scored; then the worst and the best texts are shown, with "
            "their alignments.",
        ),
    ] = "",
    candidates: Annotated[
        str,
        typer.Option(
            "--candidates",
            "-c",
            metavar="FILE",
            help="The same as lines: the candidates.",
            show_default=False,
        ),
    ] = "",
    references: Annotated[
        list[str] | None,
        typer.Option(
            "--references",
            "-r",
            metavar="FILE",
            help="The same as lines: the references; may be given several times.",
            show_default=False,
        ),
    ] = None,
    examples: Annotated[int, count_option("How many of the worst, and of the best.", least=0)] = 3,
) -> None:
    """Make one page of a result: tables that sort, plots, examples, and how it was made.

    The page loads nothing from elsewhere, so it can be mailed or put beside a paper.
    """
    place = check_page_path(out or Path(result).with_suffix(".html"))
    given = _open_texts(texts, candidates, references or [])
    page = result_page(
        read_result(result), pairs=None if given is None else list(given), examples=examples
    )
    print_message(f"wrote {write_page(page, place)}")


def _open_texts(file: str, candidates: str, references: list[str]) -> PairFile | None:
    if file and (candidates or references):
        raise typer.BadParameter("give either --texts, or -c and -r; not both")
    if file:
        return open_pair_file(file)
    if bool(candidates) != bool(references):
        raise typer.BadParameter("-c and -r go together: the candidates and their references")
    return LineAlignedFiles(candidates, tuple(references)) if candidates else None
