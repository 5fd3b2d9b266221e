"""evenmatch audit: how biased metrics are, attribute by attribute."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

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
from evenmatch.data.tables import as_latex, records_as_tsv
from evenmatch.uses.fair.audit import audit as audit_metrics
from evenmatch.uses.fair.audit_result import Audit
from evenmatch.uses.report.audit_page import write_audit
from evenmatch.uses.report.whole_page import check_page


@takes_scale_options
@takes_run_options(cache=True)
def audit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="[DATA]",
            help="The public set metric-fairness, a folder with ATTRIBUTE.jsonl files, or one "
            "JSONL file of cand_a, ref_a, cand_b, ref_b, the stereotype first.",
            show_default="the pairs that come with evenmatch",
        ),
    ] = "",
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="METRIC",
            help="A metric's name or spec; several share one pass over the texts.",
            show_default="bertscore, or none with --published",
        ),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            "--attribute",
            "-a",
            metavar="NAME",
            help="Only this attribute; may be given several times.",
            show_default="all",
        ),
    ] = None,
    published: Annotated[
        bool,
        typer.Option("--published", help="Also the metrics whose scores stand beside the pairs."),
    ] = False,
    worst: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many pairs of each to show.")
    ] = 1,
    confidence: Confidence = 0.95,
    resamples: Resamples = 1000,
    trials: Trials = 10_000,
    seed: Seed = 0,
    out: Annotated[
        str,
        typer.Option(
            metavar="PAGE.html",
            help="Also write one page with bars, the table and the worst pairs explained.",
            show_default=False,
        ),
    ] = "",
    style: PrintFormat = Format.text,
    json: Json = False,
    parts: Parts = "",
    *,
    running: Running,
    scaling: Scaling,
) -> None:
    """Measure social bias: how differently texts score that differ only in whom they speak of."""
    if out:
        check_page(out)
    wanted = metric or ([] if published else ["bertscore"])
    with running.settings() as settings, scaling.elsewhere(running.threads, parts) as on:
        found = audit_metrics(
            list(dict.fromkeys(wanted)),
            data,
            attributes=attribute or (),
            published=published,
            worst=worst,
            confidence=confidence,
            resamples=resamples,
            trials=trials,
            seed=seed,
            on=on,
            **settings,
        )
    if out:
        tell(f"wrote {write_audit(found, out)}")
    say(printed(found, Format.json if json else style))


def printed(found: Audit, style: Format) -> str:
    """An audit as a person or a program reads it."""
    if style is Format.json:
        return as_json(document(found))
    if style is Format.tsv:
        return records_as_tsv(found.rows)
    if style is Format.latex:
        return "\n".join([*(f"% {note}" for note in found.notes()), as_latex(found.grid())])
    return str(found)


def document(found: Audit) -> dict[str, Any]:
    """An audit as JSON has it."""
    return {
        "rows": found.rows,
        "groups": [asdict(group) for group in found.groups],
        "worst": [asdict(case) for case in found.worst],
        "data": found.data,
        "signatures": dict(found.signatures),
        "draws": asdict(found.draws),
    }
