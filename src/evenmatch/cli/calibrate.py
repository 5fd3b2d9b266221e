"""Commands that adjust metrics: calibrate, choose-layer, baseline.

calibrate maps scores to the scale of human ratings, choose-layer selects the model layer that
correlates best with human ratings, and baseline measures the score of unrelated texts, for
rescaling.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

import typer

from evenmatch.cli import options as opt
from evenmatch.cli.console import print_message, print_text_or_json
from evenmatch.data.files import read_lines
from evenmatch.data.pairs import read_everyday_sample
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.data.scores import replace_file
from evenmatch.evaluation.baseline import Baseline, measure_baseline
from evenmatch.evaluation.calibrate import DEFAULT_PARTS
from evenmatch.evaluation.calibrate import calibrate as calibrate_metric
from evenmatch.evaluation.layer_selection import LayerChoice
from evenmatch.evaluation.layer_selection import choose_layer as select_layer
from evenmatch.models.checkpoints import BEST_LAYERS
from evenmatch.registry import spec
from evenmatch.scoring.metric import as_metric


@opt.expand_option_groups(cache=True)
def calibrate(
    data: str = opt.RATINGS,
    out: str = opt.METRIC_FOLDER,
    metric: list[str] | None = opt.metric(
        None,
        "One metric: its scores are mapped by a monotone function. Several (-m repeated): the best "
        "are selected and combined into a weighted sum.",
        f"select from {len(DEFAULT_PARTS)} metrics that share one pass over the texts",
    ),
    add: list[str] | None = opt.value(
        None,
        "METRIC",
        "Also select from this metric, in addition to those of -m or the default; may be given "
        "several times.",
    ),
    instead: list[str] | None = opt.value(
        None,
        "SUBSET=METRIC",
        "If the last metric was trained on the ratings in DATA, give for each subset the same "
        "metric trained without SUBSET; it scores the outputs of SUBSET.",
    ),
    test: str = opt.value("", "DATA", "Held-out ratings to evaluate the metric on.", shown="none"),
    subset: list[str] | None = opt.repeatable(None, "NAME", "Fit on this subset only", shown="all"),
    most: int = opt.count(16, "Maximum number of metrics in the weighted sum."),
    seed: int = opt.SEED,
    json: bool = opt.JSON,
    *,
    running: opt.RunOptions,
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
    opt.print_metric_card(made, json)


def _parse_substitute(given: str) -> tuple[str, str]:
    subset, sign, metric = given.partition("=")
    if not (subset and sign and metric):
        raise typer.BadParameter(f"expected SUBSET=METRIC, got {given!r}", param_hint="--instead")
    return subset, metric


@opt.expand_option_groups()
def choose_layer(
    data: str = opt.RATINGS,
    metric: str = opt.MODEL_METRIC,
    subset: list[str] | None = opt.repeatable(None, "NAME", "Use only this subset", shown="all"),
    level: Literal["segment", "per_item", "per_system"] = opt.value(
        "segment",
        "LEVEL",
        "Level of the correlation. segment: all rated outputs pooled; per_item, per_system: within "
        "each segment or system, then averaged.",
    ),
    method: Literal["pearson", "spearman", "kendall"] = opt.value(
        "pearson", "METHOD", "Correlation coefficient: pearson, spearman, kendall."
    ),
    folds: int = opt.count(5, "Number of cross-validation folds over segments.", least=2),
    by_subset: bool = opt.flag(
        False, "--by-subset", "Use each subset as a fold, instead of --folds."
    ),
    seed: int = opt.SEED,
    store: bool = opt.flag(
        True,
        "--store/--no-store",
        "Save the layer, so that layer='auto' uses it for this model on this machine.",
    ),
    json: bool = opt.JSON,
    *,
    running: opt.RunOptions,
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


@opt.expand_option_groups()
def baseline(
    text: str = opt.argument(
        "",
        "TEXT",
        "File of texts, one per line, similar to those you will score; - reads standard input. "
        "Default: the references of the sample included in evenmatch.",
    ),
    metric: str = opt.MODEL_METRIC,
    pairs: int = opt.count(2000, "Number of random pairs to score."),
    seed: int = opt.SEED,
    out: str = opt.value(
        "",
        "--out -o FILE",
        "Also write a LAYER,P,R,F file, the format of bert_score's baseline_path.",
    ),
    json: bool = opt.JSON,
    *,
    running: opt.RunOptions,
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
        replace_file(out, found.csv)
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
