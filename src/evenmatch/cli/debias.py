"""evenmatch debias: an adapter that makes a metric fairer."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.making import show
from evenmatch.cli.options import Json, Running, Seed, count, metric_option, several
from evenmatch.uses.fair.debias import debias as make
from evenmatch.uses.fair.lesson import Lesson


@takes_option_groups()
def debias(
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="A folder for the adapter, its card included."
        ),
    ],
    metric: Annotated[
        str,
        metric_option(
            "The metric to train through: over alignment, fitted, regression or likelihood."
        ),
    ] = "bertscore",
    sentences: Annotated[
        list[str] | None,
        several(
            "DATA",
            "Sentence pairs to train on: sts-b, sick, snli, or a file of pairs",
            "sts-b, sick and snli",
            "--sentences",
            "-s",
        ),
    ] = None,
    templates: Annotated[
        bool,
        typer.Option(
            "--templates/--no-templates", help="Train on our own sentences about occupations too."
        ),
    ] = True,
    judge_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATA",
            help="Pairs to audit before and after, as evenmatch audit takes them.",
            show_default="the pairs that come with evenmatch",
        ),
    ] = None,
    steps: Annotated[int, count("Steps of training.")] = 400,
    batch: Annotated[int, count("Examples of a kind a step.")] = 16,
    rate: Annotated[float, typer.Option(metavar="RATE", help="The learning rate.")] = 1e-3,
    keep: Annotated[
        float, typer.Option(min=0, metavar="WEIGHT", help="How much other scores must stay.")
    ] = 1.0,
    mind: Annotated[
        float,
        typer.Option(min=0, metavar="WEIGHT", help="How much a wrong gender must go on costing."),
    ] = 1.0,
    factor: Annotated[int, count("How much narrower the bottlenecks are.")] = 16,
    seed: Seed = 0,
    json: Json = False,
    *,
    running: Running,
) -> None:
    """Train an adapter against gender bias; what was interrupted goes on where it was."""
    lesson = Lesson(steps, batch, rate, keep, mind, factor, seed)
    with running.settings() as settings:
        made = make(
            metric,
            out,
            sentences or ["sts-b", "sick", "snli"],
            templates=templates,
            lesson=lesson,
            judge_on=judge_on or [""],
            **settings,
        )
    show(made, json)
