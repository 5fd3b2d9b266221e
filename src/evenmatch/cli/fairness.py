"""Commands about social bias: audit measures it, debias trains an adapter against it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

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
    argument,
    count_option,
    expand_option_groups,
    flag,
    metric_option,
    option,
    optional_option,
    print_metric_card,
    repeatable_option,
    resolve_metrics,
)
from evenmatch.fairness.adapter_training import DebiasSettings
from evenmatch.fairness.audit import Audit
from evenmatch.fairness.audit import audit as audit_metrics
from evenmatch.fairness.debias import debias as debias_metric
from evenmatch.reports.page import check_page_path
from evenmatch.reports.results import write_report


@expand_option_groups(cache=True)
def audit(
    data: Annotated[
        str,
        argument(
            "DATA",
            "Pairs to audit on: metric-fairness (a public data set), a folder of "
            "ATTRIBUTE.jsonl files, or a JSONL file with the fields cand_a and ref_a (the "
            "stereotypical candidate and its reference), cand_b and ref_b (the other candidate).",
            default="the pairs included in evenmatch",
        ),
    ] = "",
    metric: Annotated[
        list[str] | None, metric_option(METRIC_HELP, "bertscore, or none with --published")
    ] = None,
    attribute: Annotated[
        list[str] | None,
        repeatable_option(
            "NAME",
            "Audit only this attribute, for example gender",
            "--attribute",
            "-a",
            default="all",
        ),
    ] = None,
    published: Annotated[
        bool, flag("--published", "Also audit the metric scores published with the data.")
    ] = False,
    worst: Annotated[
        int,
        count_option(
            "Number of pairs with the largest score difference to show, per attribute and metric.",
            least=0,
        ),
    ] = 1,
    *,
    draws: ResamplingOptions,
    out: Annotated[
        str,
        optional_option(
            "PAGE.html",
            "Also write an HTML report with plots, tables and the pairs with the largest score "
            "difference.",
        ),
    ] = "",
    printing: OutputOptions,
    parts: PartsOption = "",
    running: RunOptions,
    scaling: WorkerOptions,
) -> None:
    """Measure the social bias of metrics.

    Bias is the score difference between two texts that differ only in the social group that they
    mention, for example in gender, age or religion.
    """
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
        print_message(f"wrote {write_report(found, out)}")
    printing.print_result(
        found, document=audit_document(found), records=found.rows, tables=[found.grid()]
    )


def audit_document(found: Audit) -> dict[str, Any]:
    """Return an audit as a JSON document."""
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
        str, option("FOLDER", "Folder for the adapter and its card (README).", "--out", "-o")
    ],
    metric: Annotated[
        str,
        metric_option("Metric to debias: an alignment, fitted, regression or likelihood metric."),
    ] = "bertscore",
    sentences: Annotated[
        list[str] | None,
        repeatable_option(
            "DATA",
            "Sentence pairs to train on: sts-b, sick, snli, or a file of pairs",
            "--sentences",
            "-s",
            default="sts-b, sick and snli",
        ),
    ] = None,
    templates: Annotated[
        bool,
        flag("--templates/--no-templates", "Also train on generated sentences about occupations."),
    ] = True,
    judge_on: Annotated[
        list[str] | None,
        option(
            "DATA",
            "Pairs to audit the metric on before and after training (the DATA of evenmatch "
            "audit); may be given several times.",
            default="the pairs included in evenmatch",
        ),
    ] = None,
    steps: Annotated[int, count_option("Number of training steps.")] = 400,
    batch: Annotated[int, count_option("Number of examples of each kind per step.")] = 16,
    rate: Annotated[float, option("RATE", "Learning rate.")] = 1e-3,
    keep: Annotated[
        float, option("WEIGHT", "Weight of the loss that keeps other scores unchanged.", least=0)
    ] = 1.0,
    mind: Annotated[
        float,
        option(
            "WEIGHT",
            "Weight of the loss that keeps the penalty for a wrong gender unchanged.",
            least=0,
        ),
    ] = 1.0,
    factor: Annotated[
        int, count_option("Reduction factor: hidden size divided by adapter bottleneck size.")
    ] = 16,
    seed: SeedOption = 0,
    json: JsonOption = False,
    *,
    running: RunOptions,
) -> None:
    """Train an adapter that reduces the gender bias of a metric.

    Run the same command again to continue an interrupted training.
    """
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
