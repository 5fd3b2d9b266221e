"""evenmatch audit: how biased metrics are, attribute by attribute.

evenmatch debias: an adapter that makes a metric fairer.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from evenmatch.cli.console import print_message
from evenmatch.cli.options import (
    METRIC_HELP,
    JsonOption,
    OutputOptions,
    PartsOption,
    ResamplingOptions,
    RunOptions,
    SeedOption,
    WorkerOptions,
    count_option,
    expand_option_groups,
    metric_option,
    optional_option,
    print_metric_card,
    repeatable_option,
    resolve_metrics,
)
from evenmatch.fairness.adapter_training import DebiasSettings
from evenmatch.fairness.audit import Audit
from evenmatch.fairness.audit import audit as audit_metrics
from evenmatch.fairness.debias import debias as debias_metric
from evenmatch.reports.audit_page import write_audit_report
from evenmatch.reports.page import check_page_path


@expand_option_groups(cache=True)
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
        list[str] | None, metric_option(METRIC_HELP, "bertscore, or none with --published")
    ] = None,
    attribute: Annotated[
        list[str] | None,
        repeatable_option("NAME", "Only this attribute", "all", "--attribute", "-a"),
    ] = None,
    published: Annotated[
        bool,
        typer.Option("--published", help="Also the metrics whose scores stand beside the pairs."),
    ] = False,
    worst: Annotated[int, count_option("How many pairs of each to show.", least=0)] = 1,
    *,
    draws: ResamplingOptions,
    out: Annotated[
        str,
        optional_option(
            "PAGE.html", "Also write one page with bars, the table and the worst pairs explained."
        ),
    ] = "",
    printing: OutputOptions,
    parts: PartsOption = "",
    running: RunOptions,
    scaling: WorkerOptions,
) -> None:
    """Measure social bias: how differently texts score that differ only in whom they speak of."""
    if out:
        check_page_path(out)
    with scaling.settings(running, parts) as settings:
        found = audit_metrics(
            resolve_metrics(metric, published),
            data,
            attributes=attribute or (),
            published=published,
            worst=worst,
            **asdict(draws),
            **settings,
        )
    if out:
        print_message(f"wrote {write_audit_report(found, out)}")
    printing.print_result(
        found, document=audit_document(found), records=found.rows, tables=[found.grid()]
    )


def audit_document(found: Audit) -> dict[str, Any]:
    """An audit as JSON has it."""
    return {
        "rows": found.rows,
        "groups": [asdict(group) for group in found.groups],
        "worst": [asdict(case) for case in found.worst],
        "data": found.data,
        "signatures": dict(found.signatures),
        "draws": asdict(found.testing),
    }


@expand_option_groups()
def debias(
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="A folder for the adapter, its card included."
        ),
    ],
    metric: Annotated[
        str,
        metric_option(
            "The metric to train through: over alignment, fitted, regression or likelihood."
        ),
    ] = "bertscore",
    sentences: Annotated[
        list[str] | None,
        repeatable_option(
            "DATA",
            "Sentence pairs to train on: sts-b, sick, snli, or a file of pairs",
            "sts-b, sick and snli",
            "--sentences",
            "-s",
        ),
    ] = None,
    templates: Annotated[
        bool,
        typer.Option(
            "--templates/--no-templates", help="Train on our own sentences about occupations too."
        ),
    ] = True,
    judge_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATA",
            help="Pairs to audit before and after, as evenmatch audit takes them.",
            show_default="the pairs that come with evenmatch",
        ),
    ] = None,
    steps: Annotated[int, count_option("Steps of training.")] = 400,
    batch: Annotated[int, count_option("Examples of a kind a step.")] = 16,
    rate: Annotated[float, typer.Option(metavar="RATE", help="The learning rate.")] = 1e-3,
    keep: Annotated[
        float, typer.Option(min=0, metavar="WEIGHT", help="How much other scores must stay.")
    ] = 1.0,
    mind: Annotated[
        float,
        typer.Option(min=0, metavar="WEIGHT", help="How much a wrong gender must go on costing."),
    ] = 1.0,
    factor: Annotated[int, count_option("How much narrower the bottlenecks are.")] = 16,
    seed: SeedOption = 0,
    json: JsonOption = False,
    *,
    running: RunOptions,
) -> None:
    """Train an adapter against gender bias; what was interrupted goes on where it was."""
    training = DebiasSettings(steps, batch, rate, keep, mind, factor, seed)
    with running.settings() as settings:
        made = debias_metric(
            metric,
            out,
            sentences or ["sts-b", "sick", "snli"],
            templates=templates,
            settings=training,
            judge_on=judge_on or [""],
            **settings,
        )
    print_metric_card(made, json)
