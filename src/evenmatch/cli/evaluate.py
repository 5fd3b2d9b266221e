"""evenmatch meta: how closely metrics agree with people.

evenmatch compare: systems against each other on one test set.

evenmatch keyphrases: keyphrase scores of prediction files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evenmatch.cli.console import print_message
from evenmatch.cli.options import (
    METRIC_HELP,
    ConfidenceOption,
    MetricsOption,
    OutputOptions,
    PartsOption,
    ResamplingOptions,
    RunOptions,
    SeedOption,
    SourcesOption,
    WorkerOptions,
    count_option,
    expand_option_groups,
    metric_option,
    optional_option,
    repeatable_option,
    resolve_metrics,
)
from evenmatch.data.files import STANDARD_INPUT, display_path, read_lines
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.errors import InputError
from evenmatch.evaluation.agreement import correlate
from evenmatch.evaluation.agreement_result import Agreement
from evenmatch.evaluation.compare import Comparison
from evenmatch.evaluation.compare import compare as compare_systems
from evenmatch.evaluation.keyphrase_scores import DEFAULT_KEYPHRASE_METRICS, score_keyphrases
from evenmatch.evaluation.keyphrase_table import KeyphraseTable
from evenmatch.reports.agreement_page import write_report
from evenmatch.reports.page import check_page_path


class LevelChoice(StrEnum):
    """At which level scores and ratings are compared."""

    system = "system"
    segment = "segment"
    per_item = "per_item"
    per_system = "per_system"


class MethodChoice(StrEnum):
    """How agreement is measured."""

    pearson = "pearson"
    spearman = "spearman"
    kendall = "kendall"
    kendall_c = "kendall_c"
    accuracy = "accuracy"
    calibrated_accuracy = "calibrated_accuracy"


class OutlierChoice(StrEnum):
    """Which systems are left out for being far from the rest."""

    listed = "listed"
    mad = "mad"
    keep = "keep"


@expand_option_groups(cache=True)
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
        list[str] | None, metric_option(METRIC_HELP, "bertscore, or none with --official")
    ] = None,
    level: Annotated[
        LevelChoice,
        typer.Option(
            metavar="LEVEL",
            help="What is compared: system means (system), all rated outputs (segment), or "
            "correlations averaged over segments (per_item) or systems (per_system).",
        ),
    ] = LevelChoice.system,
    method: Annotated[
        MethodChoice, typer.Option(metavar="METHOD", help=f"One of {', '.join(MethodChoice)}.")
    ] = MethodChoice.pearson,
    outliers: Annotated[
        OutlierChoice,
        typer.Option(
            metavar="WHICH",
            help="Systems to leave out at the system level: those the organisers listed, by the "
            "rule of median absolute deviations (mad), or none (keep).",
        ),
    ] = OutlierChoice.listed,
    subset: Annotated[
        list[str] | None, repeatable_option("NAME", "A language pair or criterion", "all")
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
    confidence: ConfidenceOption = 0.95,
    resamples: Annotated[int, count_option("Resamples of intervals and tests.")] = 1000,
    seed: SeedOption = 0,
    out: Annotated[
        str,
        optional_option(
            "PAGE.html",
            "Also write one page with the table, plots and the texts metrics disagree on.",
        ),
    ] = "",
    *,
    printing: OutputOptions,
    parts: PartsOption = "",
    running: RunOptions,
    scaling: WorkerOptions,
) -> None:
    """Compare metrics with people's ratings: agreement, intervals, significance clusters."""
    if out:
        check_page_path(out)
    ratings = read_ratings(data, subsets=subset or ())
    with scaling.settings(running, parts) as settings:
        found = correlate(
            resolve_metrics(metric, official),
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
        print_message(f"wrote {write_report(found, out)}")
    records = [asdict(entry) for entry in found.entries]
    printing.print_result(
        found, document=agreement_document(found), records=records, tables=[found.grid()]
    )


def agreement_document(found: Agreement) -> dict[str, Any]:
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


@expand_option_groups()
def compare(
    metric: MetricsOption,
    candidates: Annotated[
        list[str],
        typer.Option(
            "--candidates",
            "-c",
            metavar="FILE",
            help="A system's candidates, one a line; give one file per system, the baseline first. "
            "A system is called as its file is, without the suffix.",
        ),
    ],
    references: Annotated[
        list[str],
        typer.Option(
            "--references",
            "-r",
            metavar="FILE",
            help="References, one a line; may be given several times.",
        ),
    ],
    sources: SourcesOption = "",
    *,
    draws: ResamplingOptions,
    printing: OutputOptions,
    running: RunOptions,
) -> None:
    """Compare systems: scores, differences, intervals, and two tests of every difference.

    The tests are the paired bootstrap and approximate randomisation; BLEU, chrF and TER are
    compared by their corpus scores, other metrics by their means.
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
    """A comparison as JSON has it."""
    return {
        "rows": found.rows,
        "systems": [asdict(score) for score in found.scores],
        "higher_is_better": dict(found.higher_is_better),
        "signatures": dict(found.signatures),
        "testing": asdict(found.testing),
    }


def _system_names(candidates: Sequence[str]) -> list[str]:
    """What each system is called: its file's name without the suffixes."""
    if len(candidates) < 2:
        raise typer.BadParameter("give -c at least twice: one file of candidates per system")
    names = [Path(path).name.removesuffix(".gz") for path in candidates]
    stems = [name.rpartition(".")[0] or name for name in names]
    for names_given in (stems, list(candidates)):
        if len(set(names_given)) == len(names_given):
            return names_given
    raise typer.BadParameter("a file of candidates is given twice; give one per system")


def _read_parallel(paths: Sequence[str]) -> list[list[str]]:
    """The lines of each file, as many of all of them."""
    if list(paths).count(STANDARD_INPUT) > 1:
        raise InputError("standard input (-) can stand for one file only")
    texts = [list(read_lines(path)) for path in paths]
    for path, lines in zip(paths, texts, strict=True):
        if len(lines) != len(texts[0]):
            raise InputError(
                f"{display_path(paths[0])} has {len(texts[0])} lines but {display_path(path)} has {len(lines)}; "
                "give one line per segment in every file"
            )
    return texts


_MAX_WARNINGS = 5


@expand_option_groups()
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
        metric_option(
            "A keyphrase metric's name or spec; may be given several times.",
            ", ".join(DEFAULT_KEYPHRASE_METRICS),
        ),
    ] = None,
    pred: Annotated[
        list[str] | None,
        repeatable_option(
            "FIELD", "A prediction, under pred or in a field of its own", "all under pred", "--pred"
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
    *,
    draws: ResamplingOptions,
    printing: OutputOptions,
    parts: PartsOption = "",
    running: RunOptions,
    scaling: WorkerOptions,
) -> None:
    """Score keyphrases: present, absent and all, with intervals and tests between systems."""
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
    _print_data_warnings(found)
    tables = [found.score_table(), *([found.gap_table()] if found.gaps else [])]
    printing.print_result(
        found, document=found.document(), records=_tsv_records(found), tables=tables
    )


def _print_data_warnings(found: KeyphraseTable) -> None:
    for line in found.errors[:_MAX_WARNINGS]:
        print_message(f"warning: {line}")
    if len(found.errors) > _MAX_WARNINGS:
        print_message(f"warning: and {len(found.errors) - _MAX_WARNINGS} more of the kind")


def _tsv_records(found: KeyphraseTable) -> list[dict[str, Any]]:
    """The rows as TSV has them: without their intervals."""
    records = [row.record() for row in found.rows]
    return [{k: v for k, v in each.items() if k != "intervals"} for each in records]
