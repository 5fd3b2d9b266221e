"""evenmatch meta: how closely metrics agree with people."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.options import (
    ANY_METRIC,
    Confidence,
    Running,
    Seed,
    count,
    metric_option,
    metrics_beside,
    optional,
    several,
)
from evenmatch.cli.output import tell
from evenmatch.cli.printing import Printing
from evenmatch.cli.scale import Parts, Scaling
from evenmatch.data.ratings_reading import read_ratings
from evenmatch.uses.meta.agreement import correlate
from evenmatch.uses.meta.agreement_result import Agreement
from evenmatch.uses.report.meta_page import write_report
from evenmatch.uses.report.whole_page import check_page


class AtLevel(StrEnum):
    """At which level scores and ratings are compared."""

    system = "system"
    segment = "segment"
    per_item = "per_item"
    per_system = "per_system"


class Method(StrEnum):
    """How agreement is measured."""

    pearson = "pearson"
    spearman = "spearman"
    kendall = "kendall"
    kendall_c = "kendall_c"
    accuracy = "accuracy"
    calibrated_accuracy = "calibrated_accuracy"


class Outliers(StrEnum):
    """Which systems are left out for being far from the rest."""

    listed = "listed"
    mad = "mad"
    keep = "keep"


@takes_option_groups(cache=True)
def meta(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A public data set by name (see: evenmatch data list), a folder laid out like "
            "WMT's, or a JSONL, TSV or Parquet table of "
            "system, segment, candidate, references, rating.",
        ),
    ],
    metric: Annotated[
        list[str] | None, metric_option(ANY_METRIC, "bertscore, or none with --official")
    ] = None,
    level: Annotated[
        AtLevel,
        typer.Option(
            metavar="LEVEL",
            help="What is compared: system means (system), all rated outputs (segment), or "
            "correlations averaged over segments (per_item) or systems (per_system).",
        ),
    ] = AtLevel.system,
    method: Annotated[
        Method, typer.Option(metavar="METHOD", help=f"One of {', '.join(Method)}.")
    ] = Method.pearson,
    outliers: Annotated[
        Outliers,
        typer.Option(
            metavar="WHICH",
            help="Systems to leave out at the system level: those the organisers listed, by the "
            "rule of median absolute deviations (mad), or none (keep).",
        ),
    ] = Outliers.listed,
    subset: Annotated[
        list[str] | None, several("NAME", "A language pair or criterion", "all")
    ] = None,
    official: Annotated[
        bool,
        typer.Option("--official", help="Also the scores of systems published with the data."),
    ] = False,
    corpus: Annotated[
        bool,
        typer.Option(
            "--corpus/--no-corpus",
            help="A system's score is the corpus score where a metric has one (BLEU, chrF, TER).",
        ),
    ] = True,
    confidence: Confidence = 0.95,
    resamples: Annotated[int, count("Resamples of intervals and tests.")] = 1000,
    seed: Seed = 0,
    out: Annotated[
        str,
        optional(
            "PAGE.html",
            "Also write one page with the table, plots and the texts metrics disagree on.",
        ),
    ] = "",
    *,
    printing: Printing,
    parts: Parts = "",
    running: Running,
    scaling: Scaling,
) -> None:
    """Compare metrics with people's ratings: agreement, intervals, significance clusters."""
    if out:
        check_page(out)
    ratings = read_ratings(data, subsets=subset or ())
    with scaling.settings(running, parts) as settings:
        found = correlate(
            metrics_beside(metric, official),
            ratings,
            level.value,
            method.value,
            outliers=outliers.value,
            corpus=corpus,
            published=official,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
            **settings,
        )
    if out:
        tell(f"wrote {write_report(found, out)}")
    records = [asdict(entry) for entry in found.entries]
    printing.say(found, document=document(found), records=records, tables=[found.grid()])


def document(found: Agreement) -> dict[str, Any]:
    """An agreement as JSON has it."""
    return {
        "rows": found.rows,
        "clusters": [
            {"data": e.data, "subset": e.subset, "metric": e.metric, "cluster": e.cluster}
            for e in found.entries
            if e.cluster is not None
        ],
        "tests": list(found.tests),
        "testing": asdict(found.testing),
        "outliers": found.outliers,
        "signatures": found.signatures,
    }
