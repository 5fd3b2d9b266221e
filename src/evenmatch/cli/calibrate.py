"""evenmatch calibrate: metrics brought to a human scale, one alone or several as a blend.

evenmatch choose-layer: the layer of a model that agrees best with people.

evenmatch baseline: what unrelated texts score, to rescale by.
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
    count_option,
    expand_option_groups,
    metric_option,
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
from evenmatch.models.layers import BEST_LAYERS
from evenmatch.registry import spec
from evenmatch.scoring.metric import as_metric


@expand_option_groups(cache=True)
def calibrate(
    data: RatingsArgument,
    out: MetricFolderOption,
    metric: Annotated[
        list[str] | None,
        metric_option(
            "One metric gets a monotone map; of several, parts are chosen for a blend.",
            f"a blend of up to {len(DEFAULT_PARTS)} parts of one text pass",
        ),
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC", help="Choose from this metric as well as from the default."),
    ] = None,
    instead: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SUBSET=METRIC",
            help="What gives the last metric's scores on a subset: one fitted without its ratings, "
            "where the last metric was fitted with them; once for each subset.",
        ),
    ] = None,
    test: Annotated[
        str,
        typer.Option(
            metavar="DATA", help="Other ratings to judge the metric by.", show_default="none"
        ),
    ] = "",
    subset: Annotated[
        list[str] | None, repeatable_option("NAME", "Fit to these subsets only")
    ] = None,
    most: Annotated[int, count_option("The most parts of a blend.")] = 16,
    seed: SeedOption = 0,
    json: JsonOption = False,
    *,
    running: RunOptions,
) -> None:
    """Fit one metric, or a blend of several, to the scale of ratings, and save it as a metric."""
    wanted = [*(metric or DEFAULT_PARTS), *(add or [])]
    for each in wanted:
        as_metric(each)  # a mistake is said before any data is read
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
        raise typer.BadParameter(f"say SUBSET=METRIC, got {given!r}", param_hint="--instead")
    return subset, metric


_SegmentLevel = Literal["pooled", "per_item", "per_system"]


_CorrelationMethod = Literal["pearson", "spearman", "kendall"]


@expand_option_groups()
def choose_layer(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Rated outputs: a data set's name, a folder, or one JSONL or TSV table with "
            "system, segment, candidate, references, rating.",
        ),
    ],
    metric: ModelMetricOption = "bertscore",
    subset: Annotated[
        list[str] | None, repeatable_option("NAME", "Take these subsets only")
    ] = None,
    level: Annotated[
        _SegmentLevel, typer.Option(help="Which outputs are correlated together.")
    ] = "pooled",
    method: Annotated[_CorrelationMethod, typer.Option(help="The correlation.")] = "pearson",
    folds: Annotated[int, count_option("How many parts of the segments to hold out.", least=2)] = 5,
    by_subset: Annotated[
        bool, typer.Option("--by-subset", help="Hold out subset by subset instead.")
    ] = False,
    seed: SeedOption = 0,
    store: Annotated[
        bool,
        typer.Option("--store/--no-store", help="Keep the choice for layer='auto' of this model."),
    ] = True,
    json: JsonOption = False,
    *,
    running: RunOptions,
) -> None:
    """Choose the layer of a model whose scores agree best with people, cross-validated."""
    as_metric(metric)  # a mistake in it is said before any data is read
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
    """Say what layer='auto' will be from now on."""
    name = found.model.rpartition("@")[0]
    known = BEST_LAYERS.get(name)
    if known is None:
        print_message(f"layer='auto' is now {found.layer} for {found.model} on this machine")
    else:
        print_message(
            f"layer='auto' stays {known} for {name}, as published; write layer={found.layer}"
        )


@expand_option_groups()
def baseline(
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT",
            help="A file of texts, one a line, of the kind you will score; - is standard input. "
            "Without it, the references of the sample that comes along.",
            show_default=False,
        ),
    ] = "",
    metric: ModelMetricOption = "bertscore",
    pairs: Annotated[int, count_option("How many random pairings to score.")] = 2000,
    seed: SeedOption = 0,
    out: Annotated[
        str,
        optional_option("FILE", "Also write LAYER,P,R,F, which bert_score reads as baseline_path."),
    ] = "",
    json: JsonOption = False,
    *,
    running: RunOptions,
) -> None:
    """Measure the mean score of unrelated texts at every layer, and say how to rescale by it."""
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
    """A baseline as JSON has it."""
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
    print_message("no TEXT given: taking the small sample that comes along; for use, give your own")
    return [pair.references for pair in next(iter(read_everyday_sample().values()))]
