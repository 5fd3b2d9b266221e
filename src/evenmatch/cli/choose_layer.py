"""evenmatch choose-layer: the layer of a model that agrees best with people."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.options import Json, ModelMetric, Running, Seed, count, several
from evenmatch.cli.output import say_either, tell
from evenmatch.data.ratings_reading import read_ratings
from evenmatch.scoring.together import as_metric
from evenmatch.uses.meta.layers_choice import LayerChoice
from evenmatch.uses.meta.layers_choosing import choose_layer as choose
from evenmatch.vectors.layers import GOOD_LAYERS

_SEGMENT_LEVELS = Literal["pooled", "per_item", "per_system"]
_METHODS = Literal["pearson", "spearman", "kendall"]


@takes_option_groups()
def choose_layer(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Rated outputs: a data set's name, a folder, or one JSONL or TSV table with "
            "system, segment, candidate, references, rating.",
        ),
    ],
    metric: ModelMetric = "bertscore",
    subset: Annotated[list[str] | None, several("NAME", "Take these subsets only")] = None,
    level: Annotated[
        _SEGMENT_LEVELS, typer.Option(help="Which outputs are correlated together.")
    ] = "pooled",
    method: Annotated[_METHODS, typer.Option(help="The correlation.")] = "pearson",
    folds: Annotated[int, count("How many parts of the segments to hold out.", least=2)] = 5,
    by_subset: Annotated[
        bool, typer.Option("--by-subset", help="Hold out subset by subset instead.")
    ] = False,
    seed: Seed = 0,
    store: Annotated[
        bool,
        typer.Option("--store/--no-store", help="Keep the choice for layer='auto' of this model."),
    ] = True,
    json: Json = False,
    *,
    running: Running,
) -> None:
    """Choose the layer of a model whose scores agree best with people, cross-validated."""
    as_metric(metric)  # a mistake in it is said before any data is read
    ratings = read_ratings(data, subsets=subset or ())
    with running.settings() as settings:
        found = choose(
            ratings,
            metric,
            level=level,
            method=method,
            folds="subsets" if by_subset else folds,
            seed=seed,
            store=store,
            **settings,
        )
    say_either(found, found.document(), json=json)
    if store:
        _tell_use(found)


def _tell_use(found: LayerChoice) -> None:
    """Say what layer='auto' will be from now on."""
    name = found.model.rpartition("@")[0]
    known = GOOD_LAYERS.get(name)
    if known is None:
        tell(f"layer='auto' is now {found.layer} for {found.model} on this machine")
    else:
        tell(f"layer='auto' stays {known} for {name}, as published; write layer={found.layer}")
