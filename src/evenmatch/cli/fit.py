"""evenmatch fit: a metric trained on people's ratings."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.making import SEEN, Epochs, Out, TrainOn, show
from evenmatch.cli.options import Json, Running, Seed, count, several
from evenmatch.data.ratings_reading import read_ratings
from evenmatch.uses.train.fit import fit as make
from evenmatch.uses.train.keyphrase_fit import USUAL, fit_keyphrases
from evenmatch.uses.train.lesson import Lesson


class Kinds(StrEnum):
    """How a fitted metric reads its two texts."""

    towers = "towers"
    cross = "cross"


@takes_option_groups()
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
    subset: Annotated[list[str] | None, several("NAME", "Train on these subsets only")] = None,
    hold_out: Annotated[
        float, typer.Option(metavar="SHARE", help="How many segments to set apart without --test.")
    ] = 0.1,
    kind: Annotated[
        Kinds,
        typer.Option(
            metavar="KIND",
            help="towers: each text goes through the encoder alone; cross: both side by side.",
        ),
    ] = Kinds.towers,
    model: Annotated[
        str, typer.Option(metavar="MODEL", help="The encoder to start from, by name or folder.")
    ] = "minilm",
    frozen: Annotated[int, count("How many lower blocks stay as they are.", least=0)] = 2,
    keyphrases: Annotated[
        bool,
        typer.Option(
            "--keyphrases",
            help="DATA is documents with predicted keyphrases: train the scorer of phrases that "
            "fb needs, on the scores fg gives.",
        ),
    ] = False,
    epochs: Epochs = 1,
    seed: Seed = 0,
    json: Json = False,
    *,
    running: Running,
) -> None:
    """Train a metric on ratings and save it as a folder that can be named as a metric."""
    how: dict[str, Any] = {"model": model, "frozen": frozen, "hold_out": hold_out}
    lesson = Lesson(epochs=epochs, seed=seed)
    with running.settings(SEEN) as settings:
        if keyphrases:
            if test or subset:
                raise typer.BadParameter("--keyphrases takes neither --test nor --subset")
            paced = replace(lesson, batch=USUAL.batch, rate=USUAL.rate)
            made = fit_keyphrases(data, out, lesson=paced, **how, **settings)
        else:
            ratings = read_ratings(data, subsets=subset or ())
            given = {"test": test or None, "kind": kind.value, **how}
            made = make(ratings, out, lesson=lesson, **given, **settings)
    show(made, json)
