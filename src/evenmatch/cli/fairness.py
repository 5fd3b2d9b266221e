"""Commands about social bias: audit measures it, debias trains an adapter against it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from evenmatch.cli import options as opt
from evenmatch.fairness.adapter_training import DebiasSettings
from evenmatch.fairness.audit import Audit
from evenmatch.fairness.audit import audit as audit_metrics
from evenmatch.fairness.debias import debias as debias_metric


@opt.expand_option_groups(cache=True)
def audit(
    data: str = opt.argument(
        "",
        "DATA",
        "Pairs to audit on: metric-fairness (a public data set), a folder of ATTRIBUTE.jsonl "
        "files, or a JSONL, TSV or CSV file with the fields cand_a and ref_a (the stereotypical "
        "candidate and its reference), cand_b and ref_b (the other candidate).",
        shown="the pairs included in evenmatch",
    ),
    metric: list[str] | None = opt.metric(
        None, opt.METRIC_HELP, "bertscore, or none with --published"
    ),
    attribute: list[str] | None = opt.repeatable(
        None,
        "--attribute -a NAME",
        "Audit only this attribute. The included pairs and metric-fairness have age, gender, "
        "physical-appearance, race, religion and socioeconomic",
        shown="all",
    ),
    published: bool = opt.flag(
        False, "--published", "Also audit the metric scores published with the data."
    ),
    worst: int = opt.count(
        1,
        "Number of pairs with the largest score difference to show, per attribute and metric.",
        least=0,
    ),
    *,
    draws: opt.ResamplingOptions,
    out: str = opt.OUT,
    printing: opt.OutputOptions,
    parts: str = opt.PARTS,
    running: opt.RunOptions,
    scaling: opt.WorkerOptions,
) -> None:
    """Measure the social bias of metrics.

    Bias is the score difference between two texts that differ only in the social group that they
    mention, for example in gender, age or religion.
    """
    opt.check_out(out)
    with scaling.settings(running, parts) as settings:
        found = audit_metrics(
            opt.resolve_metrics(metric, published),
            data,
            attributes=attribute or (),
            published=published,
            worst=worst,
            **asdict(draws),
            **settings,
        )
    printing.print_result(
        found,
        document=audit_document(found),
        records=found.rows,
        latex=found.to_latex(),
        out=out,
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


@opt.expand_option_groups()
def debias(
    out: str = opt.value(
        opt.REQUIRED, "--out -o FOLDER", "Folder for the adapter and its card (README)."
    ),
    metric: str = opt.metric(
        "bertscore", "Metric to debias: an alignment, fitted, regression or likelihood metric."
    ),
    attribute: list[str] | None = opt.repeatable(
        None,
        "--attribute -a NAME",
        "Attribute to debias: gender, race, religion, age, appearance or status",
        shown="gender",
    ),
    sentences: list[str] | None = opt.repeatable(
        None,
        "--sentences -s DATA",
        "Sentence pairs to train on: sts-b, sick, snli, or a file of pairs",
        shown="sts-b, sick and snli",
    ),
    templates: bool = opt.flag(
        True, "--templates/--no-templates", "Also train on sentences generated from templates."
    ),
    judge_on: list[str] | None = opt.value(
        None,
        "DATA",
        "Pairs to audit the metric on before and after training (the DATA of evenmatch audit); may "
        "be given several times.",
        shown="the pairs included in evenmatch",
    ),
    steps: int = opt.count(400, "Number of training steps."),
    batch: int = opt.count(
        16, "Number of counterfactuals per step, with half as many of the others."
    ),
    rate: float = opt.value(1e-3, "RATE", "Learning rate."),
    keep: float = opt.value(
        1.0, "WEIGHT", "Weight of the loss that keeps other scores unchanged.", least=0
    ),
    mind: float = opt.value(
        1.0,
        "WEIGHT",
        "Weight of the loss that keeps the penalty for a wrong group unchanged.",
        least=0,
    ),
    stereotype: float = opt.value(
        1.0,
        "WEIGHT",
        "Weight of the loss against differences between opposite stereotypes.",
        least=0,
    ),
    factor: int = opt.count(
        16, "Reduction factor: hidden size divided by adapter bottleneck size."
    ),
    seed: int = opt.SEED,
    last_block: bool = opt.flag(
        False,
        "--last-block",
        "Put the adapter after the last block only; a step takes a tenth of the time.",
    ),
    examples: int = opt.count(
        0, "Number of counterfactuals to draw from the training data; 0 uses all.", least=0
    ),
    json: bool = opt.JSON,
    *,
    running: opt.RunOptions,
) -> None:
    """Train an adapter that reduces the social bias of a metric.

    Run the same command again to continue an interrupted training.
    """
    training = DebiasSettings(
        steps, batch, rate, keep, mind, stereotype, factor, seed, last_block, examples
    )
    with running.settings() as settings:
        made = debias_metric(
            metric,
            out,
            sentences or ["sts-b", "sick", "snli"],
            attributes=attribute or ["gender"],
            templates=templates,
            settings=training,
            judge_on=judge_on or [""],
            **settings,
        )
    opt.print_metric_card(made, json)
