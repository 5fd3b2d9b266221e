"""evenmatch score: candidates against references, from files, with one metric or many."""

from __future__ import annotations

import dataclasses
from typing import Annotated, TypeAlias

import typer

from evenmatch.cli.collected import collect
from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.options import Metrics, Running, Sources, optional
from evenmatch.cli.output import say
from evenmatch.cli.printing import Format, Printing
from evenmatch.cli.result import tell_beside
from evenmatch.cli.scale import Scaling
from evenmatch.cli.score_large import check_large, score_large
from evenmatch.data.pairs import LineFiles, PairFile, pair_file
from evenmatch.data.rows import SUFFIXES, appearing, is_row_file
from evenmatch.scoring.everything import chosen
from evenmatch.scoring.settings import make_run

_REPORT_STYLES = {".json": Format.json, ".tex": Format.latex, ".txt": Format.text}


PairRecords: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A .jsonl, .tsv or .parquet file with the fields candidate (or prediction), "
        "references (or reference) and perhaps source; - is JSONL on standard input. "
        "With --on, which needs --out, also a folder of .jsonl and .parquet files.",
        show_default=False,
    ),
]
Candidates: TypeAlias = Annotated[
    str,
    typer.Option(
        "--candidates",
        "-c",
        metavar="FILE",
        help="Candidates, one a line.",
        default_factory=str,
        show_default=False,
    ),
]
References: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--references",
        "-r",
        metavar="FILE",
        help="References, one a line; may be given several times.",
        default_factory=list,
        show_default=False,
    ),
]
Segments: TypeAlias = Annotated[
    bool, typer.Option("--segments", help="Print the score of every pair too.")
]
Out: TypeAlias = Annotated[
    str,
    optional(
        "FILE",
        "Also write a file: every pair's scores to .jsonl, .tsv or .parquet, "
        "the printed result to .json, .tex or .txt.",
    ),
]
Resume: TypeAlias = Annotated[
    bool,
    typer.Option("--resume", help="Go on with the run that --out holds: do what is missing."),
]


@takes_option_groups()
def score(
    candidates: Candidates,
    references: References,
    metric: Metrics,
    file: PairRecords = "",
    sources: Sources = "",
    segments: Segments = False,
    *,
    printing: Printing,
    out: Out = "",
    resume: Resume = False,
    running: Running,
    scaling: Scaling,
) -> None:
    """Score candidates against references.

    Texts come line by line (-c, -r), or as records of one FILE. Files larger than memory are fine.
    -m all takes every metric of texts that needs no download, and says why the others cannot run.
    --on shares a large FILE out to workers, and --resume goes on where an earlier run ended.
    """
    scaling.check(resume)
    if scaling.on is not None:
        check_large(file, out, segments=segments, lines=bool(candidates or references or sources))
        result = score_large(file, out, metric, running, scaling, resume)
        say(result.printed(printing.format))
        return
    _check_out(out)
    pairs = _input(file, candidates, references, sources)
    with running.settings() as settings:
        run = make_run(**settings)
        rows = out if is_row_file(out) else ""
        wanted, reasons = chosen(metric, run)
        result = collect(wanted, pairs, run, keep=segments, out=rows)
    result = dataclasses.replace(result, absent=reasons)
    if report := _report_style(out):
        with appearing(out) as place, open(place, "w", encoding="utf-8") as sheet:
            sheet.write(result.printed(report) + "\n")
    say(result.printed(printing.format))
    tell_beside(result)


def _input(file: str, candidates: str, references: list[str], sources: str) -> PairFile:
    if file and (candidates or references or sources):
        raise typer.BadParameter("give either FILE, or -c and -r; not both")
    if file:
        return pair_file(file)
    if not candidates or not references:
        raise typer.BadParameter("say what to score: FILE, or -c CANDIDATES and -r REFERENCES")
    return LineFiles(candidates, tuple(references), sources)


def _report_style(out: str) -> Format | None:
    return next((style for end, style in _REPORT_STYLES.items() if out.lower().endswith(end)), None)


def _check_out(out: str) -> None:
    if out and not is_row_file(out) and _report_style(out) is None:
        known = ", ".join([*SUFFIXES, *_REPORT_STYLES])
        raise typer.BadParameter(f"cannot tell how to write {out}; its name may end in {known}")
