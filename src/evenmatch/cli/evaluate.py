"""Commands that evaluate metrics and systems: meta, compare, keyphrases.

meta correlates metrics with human ratings, compare tests differences between systems, and
keyphrases scores predicted keyphrases.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import typer

from evenmatch.cli import options as opt
from evenmatch.cli.console import print_first
from evenmatch.data.pairs import read_system_files
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.data.tables import table_to_latex
from evenmatch.evaluation.agreement import METHODS, OutlierRule, correlate
from evenmatch.evaluation.agreement_result import Agreement
from evenmatch.evaluation.compare import Comparison
from evenmatch.evaluation.compare import compare as compare_systems
from evenmatch.evaluation.keyphrase_scores import (
    ALL_KEYPHRASE_METRICS,
    DEFAULT_KEYPHRASE_METRICS,
    score_keyphrases,
)
from evenmatch.evaluation.selection import measure_selection
from evenmatch.stats.levels import CorrelationMethod, Level


@opt.expand_option_groups(cache=True)
def meta(
    data: str = opt.RATINGS,
    metric: list[str] | None = opt.metric(
        None, opt.METRIC_HELP, "bertscore, or none with --published"
    ),
    level: Level = opt.value(
        "system",
        "LEVEL",
        "Level of the correlation. system: one score per system; segment: all rated outputs "
        "pooled; per_item, per_system: within each segment or system, then averaged.",
    ),
    method: CorrelationMethod = opt.value(
        "pearson",
        "METHOD",
        f"Measure of agreement: {', '.join(METHODS)}. kendall_c: Kendall's tau-c, for ratings with "
        "fewer values than the metric; accuracy: share of pairs that metric and ratings order "
        "alike; untied_accuracy: accuracy without pairs with equal ratings; calibrated_accuracy: "
        "accuracy that counts small differences of the metric as ties and expects ties of pairs "
        "with equal ratings; soft_accuracy: agreement of metric and ratings on how sure it is that "
        "one of two systems is better.",
    ),
    outliers: OutlierRule = opt.value(
        "listed",
        "WHICH",
        "Outlier systems to exclude at the system level. listed: those listed with the data; mad: "
        "by median absolute deviation of the system ratings; keep: none.",
    ),
    subset: list[str] | None = opt.repeatable(
        None, "NAME", "Use only this language pair or criterion", shown="all"
    ),
    published: bool = opt.flag(
        False, "--published", "Also evaluate the metric scores published with the data."
    ),
    corpus: bool = opt.flag(
        True,
        "--corpus/--no-corpus",
        "Score a system by the corpus score if the metric has one (BLEU, chrF, TER), instead of "
        "the mean over segments.",
    ),
    good: float | None = opt.value(
        None,
        "SHARE",
        "Also test each metric as a filter: call the best-rated SHARE of outputs good (for example "
        "0.2) and report precision, recall and F1 of the metric's selection, and how well it picks "
        "the best output of a segment.",
        "no selection",
    ),
    confidence: float = opt.CONFIDENCE,
    resamples: int = opt.count(1000, "Number of resamples for intervals and tests."),
    seed: int = opt.SEED,
    out: str = opt.OUT,
    *,
    printing: opt.OutputOptions,
    parts: str = opt.PARTS,
    running: opt.RunOptions,
    scaling: opt.WorkerOptions,
) -> None:
    """Correlate metrics with human ratings.

    Prints the agreement of each metric on each data set with a confidence interval, and clusters
    of metrics that do not differ significantly.
    """
    opt.check_out(out)
    ratings = read_ratings(data, subsets=subset or ())
    with scaling.settings(running, parts) as settings:
        found = correlate(
            opt.resolve_metrics(metric, published),
            ratings,
            level,
            method,
            outliers=outliers,
            corpus=corpus,
            published=published,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
            **settings,
        )
    if good is not None:
        found = replace(found, selection=tuple(measure_selection(found, good=good)))
    records = [
        {**asdict(entry), "signature": found.signatures[entry.metric]} for entry in found.entries
    ]
    printing.print_result(
        found,
        document=agreement_document(found),
        records=records,
        latex=found.to_latex(),
        out=out,
    )


def agreement_document(found: Agreement) -> dict[str, Any]:
    """Return an agreement as a JSON document."""
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
        **({"selection": [asdict(e) for e in found.selection]} if found.selection else {}),
    }


@opt.expand_option_groups()
def compare(
    metric: list[str] = opt.METRICS,
    candidates: list[str] = opt.value(
        opt.REQUIRED,
        "--candidates -c FILE",
        "Outputs of one system, one per line; give one file per system, the baseline first. The "
        "file name without suffix is the name of the system, or give -c NAME=FILE.",
    ),
    references: list[str] = opt.repeatable(
        opt.REQUIRED, "--references -r FILE", "File of references, one per line"
    ),
    sources: str = opt.SOURCES,
    scale: float = opt.SCALE,
    confidence: float = opt.CONFIDENCE,
    resamples: int | None = opt.value(
        None, "N", "Number of bootstrap resamples.", "enough to reach ***: 10000 or more", least=1
    ),
    trials: int | None = opt.value(
        None, "N", "Number of random permutations.", "enough to reach ***: 10000 or more", least=1
    ),
    seed: int = opt.SEED,
    out: str = opt.OUT,
    *,
    printing: opt.OutputOptions,
    running: opt.RunOptions,
) -> None:
    """Compare systems on one test set.

    Prints a table of systems and metrics, with stars for significant differences from the first
    system, and the difference of every pair of systems with its confidence interval. Pairs are
    tested with the paired bootstrap and approximate randomisation. BLEU, chrF and TER are compared
    by corpus score, other metrics by their mean.
    """
    opt.check_out(out)
    opt.check_scale(scale)
    if len(candidates) < 2:
        raise typer.BadParameter("give -c at least twice, with one candidate file per system")
    systems, several, source_texts = read_system_files(
        opt.system_files(candidates), references, sources
    )
    with running.settings() as settings:
        found = compare_systems(
            systems,
            several,
            list(dict.fromkeys(metric)),
            sources=source_texts,
            confidence=confidence,
            resamples=resamples,
            trials=trials,
            seed=seed,
            **settings,
        ).scaled(scale)
    printing.print_result(
        found,
        document=comparison_document(found),
        records=[{**row, "signature": found.signatures[row["metric"]]} for row in found.rows],
        latex=found.to_latex(),
        out=out,
    )


def comparison_document(found: Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON document."""
    return {
        "rows": found.rows,
        "systems": [asdict(score) for score in found.scores],
        "scale": found.scale,
        "higher_is_better": dict(found.higher_is_better),
        "signatures": dict(found.signatures),
        "testing": asdict(found.testing),
    }


@opt.expand_option_groups()
def keyphrases(
    data: list[str] = opt.argument(
        opt.REQUIRED,
        "DATA",
        "Documents: a JSONL, TSV, CSV or Parquet file with the fields title and abstract (or "
        "text), keyphrases, and pred.NAME with the predictions of the system NAME (in JSONL: an "
        "object pred), or with the fields source, target and prediction; a folder of such files; "
        "or the name of a public data set.",
    ),
    metric: list[str] | None = opt.metric(
        None,
        "Name or spec of a keyphrase metric; may be given several times.",
        ", ".join(DEFAULT_KEYPHRASE_METRICS),
    ),
    everything: bool = opt.flag(
        False,
        "--all",
        f"Score by all of {', '.join(ALL_KEYPHRASE_METRICS)}, and by those of --metric; also print "
        "precision and recall, numbers of phrases, duplicates and self-similarity.",
    ),
    pred: list[str] | None = opt.repeatable(
        None,
        "--pred FIELD",
        "System to score, by its NAME in pred, or another field that contains predictions",
        shown="all systems in pred",
    ),
    mean_seeds: bool = opt.flag(
        False,
        "--mean-seeds",
        "Also report the mean over systems whose names differ only in the number after 'seed'.",
    ),
    strict: bool = opt.flag(
        False,
        "--strict",
        "Stop with an error at a line or field that cannot be read, instead of a warning.",
    ),
    out: str = opt.OUT,
    *,
    draws: opt.ResamplingOptions,
    printing: opt.OutputOptions,
    parts: str = opt.PARTS,
    running: opt.RunOptions,
    scaling: opt.WorkerOptions,
) -> None:
    """Score predicted keyphrases.

    Prints scores of present phrases (those that occur in the document), absent phrases and all,
    with confidence intervals, and significance tests between systems.
    """
    opt.check_out(out)
    metrics = [*(ALL_KEYPHRASE_METRICS if everything else ()), *(metric or ())]
    with scaling.settings(running, parts) as settings:
        found = score_keyphrases(
            data,
            list(dict.fromkeys(metrics)) or None,
            full=everything,
            predictions=pred or (),
            strict=strict,
            mean_seeds=mean_seeds,
            **asdict(draws),
            **settings,
        )
    print_first(found.errors, 5, "warning: ")
    tables = [found.score_table(), *([found.gap_table()] if found.gaps else [])]
    printing.print_result(
        found,
        document=found.document(),
        records=found.flat_records(),
        latex="\n".join(map(table_to_latex, tables)),
        out=out,
    )
