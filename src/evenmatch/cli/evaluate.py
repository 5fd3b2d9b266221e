"""Commands that evaluate metrics and systems: meta, compare, keyphrases.

meta correlates metrics with human ratings, compare tests differences between systems, and
keyphrases scores predicted keyphrases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from evenmatch.cli import options as opt
from evenmatch.cli.console import print_first, print_message
from evenmatch.data.files import STANDARD_INPUT, display_path, read_lines
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.errors import InputError
from evenmatch.evaluation.agreement import (
    METHODS,
    AgreementLevel,
    AgreementMethod,
    OutlierRule,
    correlate,
)
from evenmatch.evaluation.agreement_result import Agreement
from evenmatch.evaluation.compare import Comparison
from evenmatch.evaluation.compare import compare as compare_systems
from evenmatch.evaluation.keyphrase_scores import DEFAULT_KEYPHRASE_METRICS, score_keyphrases
from evenmatch.evaluation.keyphrase_table import KeyphraseTable
from evenmatch.reports.page import check_page_path
from evenmatch.reports.results import write_report


@opt.expand_option_groups(cache=True)
def meta(
    data: str = opt.RATINGS,
    metric: list[str] | None = opt.metric(
        None, opt.METRIC_HELP, "bertscore, or none with --published"
    ),
    level: AgreementLevel = opt.value(
        "system",
        "LEVEL",
        "Level of the correlation. system: one score per system; segment: all rated outputs "
        "pooled; per_item, per_system: within each segment or system, then averaged.",
    ),
    method: AgreementMethod = opt.value(
        "pearson", "METHOD", f"Measure of agreement: {', '.join(METHODS)}."
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
    confidence: float = opt.CONFIDENCE,
    resamples: int = opt.count(1000, "Number of resamples for intervals and tests."),
    seed: int = opt.SEED,
    out: str = opt.value(
        "",
        "PAGE.html",
        "Also write an HTML report with tables, plots and the outputs on which metrics disagree "
        "most.",
    ),
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
    if out:
        check_page_path(out)
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
    if out:
        print_message(f"wrote {write_report(found, out)}")
    records = [asdict(entry) for entry in found.entries]
    printing.print_result(
        found, document=agreement_document(found), records=records, tables=[found.grid()]
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
    }


@opt.expand_option_groups()
def compare(
    metric: list[str] = opt.METRICS,
    candidates: list[str] = opt.value(
        opt.REQUIRED,
        "--candidates -c FILE",
        "Outputs of one system, one per line; give one file per system, the baseline first. The "
        "file name without suffix is the name of the system.",
    ),
    references: list[str] = opt.repeatable(
        opt.REQUIRED, "--references -r FILE", "File of references, one per line"
    ),
    sources: str = opt.SOURCES,
    *,
    draws: opt.ResamplingOptions,
    printing: opt.OutputOptions,
    running: opt.RunOptions,
) -> None:
    """Compare systems on one test set.

    Prints scores and differences with confidence intervals and significance tests. Every pair of
    systems is tested with the paired bootstrap and approximate randomisation. BLEU, chrF and TER
    are compared by corpus score, other metrics by their mean.
    """
    texts = _read_parallel([*candidates, *references, *([sources] if sources else [])])
    with running.settings() as settings:
        found = compare_systems(
            dict(zip(_system_names(candidates), texts, strict=False)),
            list(map(list, zip(*texts[len(candidates) :][: len(references)], strict=True))),
            list(dict.fromkeys(metric)),
            sources=texts[-1] if sources else None,
            **asdict(draws),
            **settings,
        )
    tables = [found.score_table(), found.gap_table()]
    printing.print_result(
        found, document=comparison_document(found), records=found.rows, tables=tables
    )


def comparison_document(found: Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON document."""
    return {
        "rows": found.rows,
        "systems": [asdict(score) for score in found.scores],
        "higher_is_better": dict(found.higher_is_better),
        "signatures": dict(found.signatures),
        "testing": asdict(found.testing),
    }


def _system_names(candidates: Sequence[str]) -> list[str]:
    """Return the name of each system: its file name without suffixes, or its path if ambiguous."""
    if len(candidates) < 2:
        raise typer.BadParameter("give -c at least twice, with one candidate file per system")
    names = [Path(path).name.removesuffix(".gz") for path in candidates]
    stems = [name.rpartition(".")[0] or name for name in names]
    for names_given in (stems, list(candidates)):
        if len(set(names_given)) == len(names_given):
            return names_given
    raise typer.BadParameter("the same candidate file is given twice; give one file per system")


def _read_parallel(paths: Sequence[str]) -> list[list[str]]:
    """Read the lines of each file; all files must have the same number of lines."""
    if list(paths).count(STANDARD_INPUT) > 1:
        raise InputError("standard input (-) can be used for one file only")
    texts = [list(read_lines(path)) for path in paths]
    for path, lines in zip(paths, texts, strict=True):
        if len(lines) != len(texts[0]):
            raise InputError(
                f"{display_path(paths[0])} has {len(texts[0])} lines but "
                f"{display_path(path)} has {len(lines)}; "
                "give one line per segment in every file"
            )
    return texts


@opt.expand_option_groups()
def keyphrases(
    data: list[str] = opt.argument(
        opt.REQUIRED,
        "DATA",
        "Documents: a JSONL, TSV or Parquet file with the fields title and abstract (or text), "
        "keyphrases, and pred.NAME with the predictions of the system NAME (in JSONL: an object "
        "pred); a folder of such files; or the name of a public data set.",
    ),
    metric: list[str] | None = opt.metric(
        None,
        "Name or spec of a keyphrase metric; may be given several times.",
        ", ".join(DEFAULT_KEYPHRASE_METRICS),
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
    with scaling.settings(running, parts) as settings:
        found = score_keyphrases(
            data,
            list(dict.fromkeys(metric or DEFAULT_KEYPHRASE_METRICS)),
            predictions=pred or (),
            strict=strict,
            mean_seeds=mean_seeds,
            **asdict(draws),
            **settings,
        )
    print_first(found.errors, 5, "warning: ")
    tables = [found.score_table(), *([found.gap_table()] if found.gaps else [])]
    printing.print_result(
        found, document=found.document(), records=_tsv_records(found), tables=tables
    )


def _tsv_records(found: KeyphraseTable) -> list[dict[str, Any]]:
    """Return the rows without their intervals."""
    records = [row.record() for row in found.rows]
    return [{k: v for k, v in each.items() if k != "intervals"} for each in records]
