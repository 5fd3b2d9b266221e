"""evenmatch keyphrases: keyphrase scores of prediction files."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.options import (
    Confidence,
    Format,
    Json,
    PrintFormat,
    Resamples,
    Running,
    Seed,
    Trials,
    takes_run_options,
)
from evenmatch.cli.output import as_json, say, tell
from evenmatch.cli.scale import Parts, Scaling, takes_scale_options
from evenmatch.data.tables import as_latex, as_tsv
from evenmatch.uses.keyphrases.scores import USUAL, score_keyphrases
from evenmatch.uses.keyphrases.table import KeyphraseTable

_TROUBLE_TOLD = 5


@takes_scale_options
@takes_run_options()
def keyphrases(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="Documents: JSONL, TSV or Parquet with title, abstract (or text), keyphrases, "
            "and predictions under pred.NAME; a folder of such; or a public data set by name.",
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="METRIC",
            help="A keyphrase metric's name or spec; may be given several times.",
            show_default=", ".join(USUAL),
        ),
    ] = None,
    pred: Annotated[
        list[str] | None,
        typer.Option(
            "--pred",
            metavar="FIELD",
            help="A prediction, under pred or in a field of its own; may be given several times.",
            show_default="all under pred",
        ),
    ] = None,
    mean_seeds: Annotated[
        bool,
        typer.Option("--mean-seeds", help="Also the mean of systems that differ in their seed."),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse a file with a line or field that cannot be read."),
    ] = False,
    confidence: Confidence = 0.95,
    resamples: Resamples = 1000,
    trials: Trials = 10_000,
    seed: Seed = 0,
    style: PrintFormat = Format.text,
    json: Json = False,
    parts: Parts = "",
    *,
    running: Running,
    scaling: Scaling,
) -> None:
    """Score keyphrases: present, absent and all, with intervals and tests between systems."""
    with running.settings() as settings, scaling.elsewhere(running.threads, parts) as on:
        found = score_keyphrases(
            data,
            list(dict.fromkeys(metric or USUAL)),
            predictions=pred or (),
            strict=strict,
            mean_seeds=mean_seeds,
            confidence=confidence,
            resamples=resamples,
            trials=trials,
            seed=seed,
            on=on,
            **settings,
        )
    _tell_trouble(found)
    say(printed(found, Format.json if json else style))


def _tell_trouble(found: KeyphraseTable) -> None:
    for line in found.trouble[:_TROUBLE_TOLD]:
        tell(f"warning: {line}")
    if len(found.trouble) > _TROUBLE_TOLD:
        tell(f"warning: and {len(found.trouble) - _TROUBLE_TOLD} more of the kind")


def printed(found: KeyphraseTable, style: Format) -> str:
    """A table of keyphrase scores as a person or a program reads it."""
    if style is Format.json:
        return as_json(found.document())
    if style is Format.tsv:
        records = [row.record() for row in found.rows]
        cells = [{k: v for k, v in each.items() if k != "intervals"} for each in records]
        return as_tsv([list(cells[0]), *([str(v) for v in each.values()] for each in cells)])
    if style is Format.latex:
        notes = [f"% {note}" for note in found.notes()]
        tables = [found.score_table(), *([found.gap_table()] if found.gaps else [])]
        return "\n".join([*notes, *map(as_latex, tables)])
    return str(found)
