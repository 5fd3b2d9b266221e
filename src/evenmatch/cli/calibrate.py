"""evenmatch calibrate: metrics brought to a human scale, one alone or several as a blend."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.making import Out, TrainOn, show
from evenmatch.cli.options import Json, Running, Seed, count, metric_option, several
from evenmatch.data.ratings_reading import read_ratings
from evenmatch.scoring.together import as_metric
from evenmatch.uses.meta.calibrate import PARTS
from evenmatch.uses.meta.calibrate import calibrate as make


@takes_option_groups(cache=True)
def calibrate(
    data: TrainOn,
    out: Out,
    metric: Annotated[
        list[str] | None,
        metric_option(
            "One metric gets a monotone map; of several, parts are chosen for a blend.",
            f"a blend of up to {len(PARTS)} parts of one text pass",
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
    subset: Annotated[list[str] | None, several("NAME", "Fit to these subsets only")] = None,
    most: Annotated[int, count("The most parts of a blend.")] = 16,
    seed: Seed = 0,
    json: Json = False,
    *,
    running: Running,
) -> None:
    """Fit one metric, or a blend of several, to the scale of ratings, and save it as a metric."""
    wanted = [*(metric or PARTS), *(add or [])]
    for each in wanted:
        as_metric(each)  # a mistake is said before any data is read
    stand_ins = dict(_named(each) for each in instead or [])
    ratings = read_ratings(data, subsets=subset or ())
    with running.settings() as settings:
        made = make(
            ratings,
            out,
            wanted,
            test=test or None,
            stand_ins=stand_ins,
            most=most,
            seed=seed,
            **settings,
        )
    show(made, json)


def _named(given: str) -> tuple[str, str]:
    subset, sign, metric = given.partition("=")
    if not (subset and sign and metric):
        raise typer.BadParameter(f"say SUBSET=METRIC, got {given!r}", param_hint="--instead")
    return subset, metric
