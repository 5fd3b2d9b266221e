"""evenmatch fit: a metric trained on people's ratings."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.making import Epochs, Out, Seed, TrainOn, show
from evenmatch.cli.options import Json, Running, takes_run_options
from evenmatch.data.ratings_reading import read_ratings
from evenmatch.uses.train.fit import fit as make
from evenmatch.uses.train.lesson import Lesson


@takes_run_options()
def fit(
    data: TrainOn,
    out: Out,
    test: Annotated[
        str,
        typer.Option(
            metavar="DATA",
            help="Other ratings to judge the metric by.",
            show_default="a share of the segments, set apart",
        ),
    ] = "",
    subset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Train on these subsets only; may be given several times."
        ),
    ] = None,
    hold_out: Annotated[
        float, typer.Option(metavar="SHARE", help="How many segments to set apart without --test.")
    ] = 0.1,
    model: Annotated[
        str, typer.Option(metavar="MODEL", help="The encoder to start from, by name or folder.")
    ] = "minilm",
    frozen: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many lower blocks stay as they are.")
    ] = 2,
    epochs: Epochs = 1,
    seed: Seed = 0,
    json: Json = False,
    *,
    running: Running,
) -> None:
    """Train a metric on ratings and save it as a folder that can be named as a metric."""
    ratings = read_ratings(data, subsets=subset or ())
    lesson = Lesson(epochs=epochs, seed=seed)
    with running.settings() as settings:
        made = make(
            ratings,
            out,
            test=test or None,
            model=model,
            frozen=frozen,
            lesson=lesson,
            hold_out=hold_out,
            **settings,
        )
    show(made, json)
