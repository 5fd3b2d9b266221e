"""Commands that adjust metrics: calibrate, choose-layer, baseline.

calibrate maps scores to the scale of human ratings, choose-layer selects the model layer that
correlates best with human ratings, and baseline measures the score of unrelated texts, for
rescaling.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from evenmatch.cli.console import print_message, print_text_or_json
from evenmatch.cli.options import (
    JsonOption,
    MetricFolderOption,
    ModelMetricOption,
    RatingsArgument,
    RunOptions,
    SeedOption,
    argument,
    count_option,
    expand_option_groups,
    flag,
    metric_option,
    option,
    optional_option,
    print_metric_card,
    repeatable_option,
)
from evenmatch.data.files import read_lines
from evenmatch.data.pairs import read_everyday_sample
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.data.scores import atomic_write
from evenmatch.evaluation.baseline import Baseline, measure_baseline
from evenmatch.evaluation.calibrate import DEFAULT_PARTS
from evenmatch.evaluation.calibrate import calibrate as calibrate_metric
from evenmatch.evaluation.layer_selection import LayerChoice
from evenmatch.evaluation.layer_selection import choose_layer as select_layer
from evenmatch.models.checkpoints import BEST_LAYERS
from evenmatch.registry import spec
from evenmatch.scoring.metric import as_metric


@expand_option_groups(cache=True)
def calibrate(
    data: RatingsArgument,
    out: MetricFolderOption,
    metric: Annotated[
        list[str] | None,
        metric_option(
            "One metric: its scores are mapped by a monotone function. Several (-m repeated): the "
            "best are selected and combined into a weighted sum.",
            f"select from {len(DEFAULT_PARTS)} metrics that share one pass over the texts",
        ),
    ] = None,
    add: Annotated[
        list[str] | None,
        option(
            "METRIC",
            "Also select from this metric, in addition to those of -m or the default; may be "
            "given several times.",
        ),
    ] = None,
    instead: Annotated[
        list[str] | None,
        option(
            "SUBSET=METRIC",
            "If the last metric was trained on the ratings in DATA, give for each subset the "
            "same metric trained without SUBSET; it scores the outputs of SUBSET.",
        ),
    ] = None,
    test: Annotated[
        str, option("DATA", "Held-out ratings to evaluate the metric on.", default="none")
    ] = "",
    subset: Annotated[
        list[str] | None, repeatable_option("NAME", "Fit on this subset only", default="all")
    ] = None,
    most: Annotated[int, count_option("Maximum number of metrics in the weighted sum.")] = 16,
    seed: SeedOption = 0,
    json: JsonOption = False,
    *,
    running: RunOptions,
) -> None:
    """Calibrate one or several metrics to human ratings.

    Fits a monotone function of one metric, or a weighted sum of several, and saves it to a folder
    that can be used as a metric: -m ./FOLDER.
    """
    wanted = [*(metric or DEFAULT_PARTS), *(add or [])]
    for each in wanted:
        as_metric(each)  # report a wrong spec before reading any data
    stand_ins = dict(_parse_substitute(each) for each in instead or [])
    ratings = read_ratings(data, subsets=subset or ())
    with running.settings() as settings:
        made = calibrate_metric(
            ratings,
            out,
            wanted,
            test=test or None,
            stand_ins=stand_ins,
            most=most,
            seed=seed,
            **settings,
        )
    print_metric_card(made, json)


def _parse_substitute(given: str) -> tuple[str, str]:
    subset, sign, metric = given.partition("=")
    if not (subset and sign and metric):
        raise typer.BadParameter(f"expected SUBSET=METRIC, got {given!r}", param_hint="--instead")
    return subset, metric


_SegmentLevel = Literal["pooled", "per_item", "per_system"]


_CorrelationMethod = Literal["pearson", "spearman", "kendall"]


@expand_option_groups()
def choose_layer(
    data: RatingsArgument,
    metric: ModelMetricOption = "bertscore",
    subset: Annotated[
        list[str] | None, repeatable_option("NAME", "Use only this subset", default="all")
    ] = None,
    level: Annotated[
        _SegmentLevel,
        typer.Option(
            help="Correlate all outputs together (pooled), or within each segment (per_item) or "
            "system (per_system) and average."
        ),
    ] = "pooled",
    method: Annotated[
        _CorrelationMethod, typer.Option(help="Correlation coefficient.")
    ] = "pearson",
    folds: Annotated[
        int, count_option("Number of cross-validation folds over segments.", least=2)
    ] = 5,
    by_subset: Annotated[
        bool, flag("--by-subset", "Use each subset as a fold, instead of --folds.")
    ] = False,
    seed: SeedOption = 0,
    store: Annotated[
        bool,
        flag(
            "--store/--no-store",
            "Save the layer, so that layer='auto' uses it for this model on this machine.",
        ),
    ] = True,
    json: JsonOption = False,
    *,
    running: RunOptions,
) -> None:
    """Choose the layer that agrees best with human ratings.

    Prints the correlation at every layer of the model, on all ratings and on held-out folds.
    """
    as_metric(metric)  # report a wrong spec before reading any data
    ratings = read_ratings(data, subsets=subset or ())
    with running.settings() as settings:
        found = select_layer(
            ratings,
            metric,
            level=level,
            method=method,
            folds="subsets" if by_subset else folds,
            seed=seed,
            store=store,
            **settings,
        )
    print_text_or_json(found, found.document(), json=json)
    if store:
        _print_auto_layer(found)


def _print_auto_layer(found: LayerChoice) -> None:
    """Print which layer layer='auto' uses from now on."""
    name = found.model.rpartition("@")[0]
    known = BEST_LAYERS.get(name)
    if known is None:
        print_message(f"layer='auto' is now {found.layer} for {found.model} on this machine")
    else:
        print_message(
            f"layer='auto' stays {known} for {name}, as published; to use the chosen layer, give "
            f"layer={found.layer}"
        )


@expand_option_groups()
def baseline(
    text: Annotated[
        str,
        argument(
            "TEXT",
            "File of texts, one per line, similar to those you will score; - reads standard "
            "input. Default: the references of the sample included in evenmatch.",
            default=False,
        ),
    ] = "",
    metric: ModelMetricOption = "bertscore",
    pairs: Annotated[int, count_option("Number of random pairs to score.")] = 2000,
    seed: SeedOption = 0,
    out: Annotated[
        str,
        optional_option(
            "FILE", "Also write a LAYER,P,R,F file, the format of bert_score's baseline_path."
        ),
    ] = "",
    json: JsonOption = False,
    *,
    running: RunOptions,
) -> None:
    """Measure the mean score of unrelated texts.

    Prints the mean at every layer of the model, and the spec of the metric rescaled so that
    unrelated texts score 0.
    """
    with running.settings() as settings:
        found = measure_baseline(
            list(read_lines(text)) if text else _sample_texts(),
            metric,
            pairs=pairs,
            seed=seed,
            **settings,
        )
    if out:
        with atomic_write(out) as place:
            Path(place).write_text(found.csv, "utf-8")
        print_message(f"wrote {out}")
    print_text_or_json(found, baseline_document(found), json=json)


def baseline_document(found: Baseline) -> dict[str, Any]:
    """Return a baseline as a JSON document."""
    return {
        "rows": [asdict(row) for row in found.rows],
        "layer": found.layer,
        "low": found.low,
        "spec": spec(found.rescaled),
        "texts": found.texts,
        "pairs": found.pairs,
        "seed": found.seed,
        "signature": found.signature,
    }


def _sample_texts() -> list[tuple[str, ...]]:
    print_message(
        "no TEXT given: using the small sample included in evenmatch; give your own texts for real "
        "use"
    )
    return [pair.references for pair in next(iter(read_everyday_sample().values()))]
