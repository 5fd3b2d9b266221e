"""evenmatch audit: how biased metrics are, attribute by attribute."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.options import (
    ANY_METRIC,
    Draws,
    Running,
    count,
    metric_option,
    metrics_beside,
    optional,
    several,
)
from evenmatch.cli.output import tell
from evenmatch.cli.printing import Printing
from evenmatch.cli.scale import Parts, Scaling
from evenmatch.uses.fair.audit import audit as audit_metrics
from evenmatch.uses.fair.audit_result import Audit
from evenmatch.uses.report.audit_page import write_audit
from evenmatch.uses.report.whole_page import check_page


@takes_option_groups(cache=True)
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
        list[str] | None, metric_option(ANY_METRIC, "bertscore, or none with --published")
    ] = None,
    attribute: Annotated[
        list[str] | None, several("NAME", "Only this attribute", "all", "--attribute", "-a")
    ] = None,
    published: Annotated[
        bool,
        typer.Option("--published", help="Also the metrics whose scores stand beside the pairs."),
    ] = False,
    worst: Annotated[int, count("How many pairs of each to show.", least=0)] = 1,
    *,
    draws: Draws,
    out: Annotated[
        str,
        optional(
            "PAGE.html", "Also write one page with bars, the table and the worst pairs explained."
        ),
    ] = "",
    printing: Printing,
    parts: Parts = "",
    running: Running,
    scaling: Scaling,
) -> None:
    """Measure social bias: how differently texts score that differ only in whom they speak of."""
    if out:
        check_page(out)
    with scaling.settings(running, parts) as settings:
        found = audit_metrics(
            metrics_beside(metric, published),
            data,
            attributes=attribute or (),
            published=published,
            worst=worst,
            **asdict(draws),
            **settings,
        )
    if out:
        tell(f"wrote {write_audit(found, out)}")
    printing.say(found, document=document(found), records=found.rows, tables=[found.grid()])


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
