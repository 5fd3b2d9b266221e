"""evenmatch distil: a small metric trained to say what a larger one says."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.making import SEEN, Epochs, Out, show
from evenmatch.cli.options import Json, Running, Seed, count, metric_option, several
from evenmatch.scoring.together import as_metric
from evenmatch.uses.train.distil import LESSON
from evenmatch.uses.train.distil import distil as make
from evenmatch.uses.train.lesson import Lesson


@takes_option_groups()
def distil(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Texts: a JSONL, TSV or Parquet file of candidates and references, or a rated "
            "data set's name or folder; ratings are not used.",
        ),
    ],
    out: Out,
    metric: Annotated[str, metric_option("The teacher, by name or spec.")] = "f_disc",
    test: Annotated[
        list[str] | None,
        several("DATA", "Other texts to compare on", "every tenth pair, set apart"),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Whose first blocks to start from; a teacher that aligns vectors has its own.",
        ),
    ] = "minilm",
    blocks: Annotated[int, count("How deep the student is.")] = 2,
    epochs: Epochs = LESSON.epochs,
    seed: Seed = 0,
    json: Json = False,
    *,
    running: Running,
) -> None:
    """Train a small metric to imitate another and save it as a folder to name as a metric."""
    as_metric(metric)  # a mistake in it is said before any data is read
    lesson = Lesson(epochs=epochs, rate=LESSON.rate, seed=seed)
    with running.settings(SEEN) as settings:
        made = make(
            metric,
            data,
            out,
            test=test or (),
            model=model,
            blocks=blocks,
            lesson=lesson,
            **settings,
        )
    show(made, json)
