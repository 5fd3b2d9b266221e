"""evenmatch study: the experiments that train generators, which take their hours in pieces."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, TypeAlias

import typer

from evenmatch.cli.output import tell
from evenmatch.cli.study_output import Out, finish
from evenmatch.uses.study import graph_arms
from evenmatch.uses.study.cells import study_folder
from evenmatch.uses.study.graph_corpus import CORPORA
from evenmatch.uses.study.graph_report import graph_report
from evenmatch.uses.study.graph_runs import Runs as GraphRuns
from evenmatch.uses.study.keyphrase_arms import ABLATIONS, ARMS, Design
from evenmatch.uses.study.keyphrase_corpus import public_corpus
from evenmatch.uses.study.keyphrase_report import keyphrase_report
from evenmatch.uses.study.keyphrase_runs import Runs
from evenmatch.uses.train.threads import training_threads

Seeds: TypeAlias = Annotated[
    list[int] | None,
    typer.Option(
        "--seed",
        min=0,
        metavar="N",
        help="Which random numbers; may be given several times.",
        show_default="1, 2, 3",
    ),
]
Minutes: TypeAlias = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Pause after so long, 0 for never; then run again."),
]
Threads: TypeAlias = Annotated[int, typer.Option(min=1, metavar="N", help="Threads to train with.")]


def keyphrases(
    out: Out = "keyphrase-study",
    arm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARM",
            help="What to train for; may be given several times.",
            show_default=", ".join(ARMS),
        ),
    ] = None,
    ablations: Annotated[
        bool,
        typer.Option("--ablations", help="Also 2RL(FG) with each part of FG left out (8 stages)."),
    ] = False,
    seed: Seeds = None,
    minutes: Minutes = 40,
    threads: Threads = 1,
) -> None:
    """Keyphrases: likelihood, then reinforcement by F1, FG or FB in one stage or two (paper 004).

    Goes on where it was stopped; the tables and figures are of the runs that are done.
    """
    arms = (*(arm or ARMS), *(ABLATIONS if ablations else ()))
    design = Design(arms, tuple(seed or (1, 2, 3)))
    with training_threads(threads):
        runs = Runs(public_corpus(), design, study_folder(out), _after(minutes), tell)
        runs()
    finish(keyphrase_report(runs), out, None)


def graphs(
    out: Out = "graph-study",
    data: Annotated[
        str,
        typer.Option(metavar="DATA", help="webnlg: triples; amr: the Little Prince's graphs."),
    ] = "webnlg",
    arm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARM",
            help="What to train for; may be given several times.",
            show_default=", ".join(graph_arms.ARMS),
        ),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            metavar="METRIC", help="One more metric to judge by, such as one that `fit` made."
        ),
    ] = "",
    seed: Seeds = None,
    minutes: Minutes = 40,
    threads: Threads = 1,
) -> None:
    """Graph to text: cross-entropy alone, or with BLEU, F_BERT, F_CONT, F_DISC (paper 000).

    Goes on where it was stopped; the tables and figures are of the runs that are done.
    """
    if data not in CORPORA:
        raise typer.BadParameter(f"there is no {data!r}; known: {', '.join(CORPORA)}")
    design = graph_arms.design(data, tuple(arm or graph_arms.ARMS), tuple(seed or (1, 2, 3)))
    with training_threads(threads):
        runs = GraphRuns(CORPORA[data](), design, study_folder(out), _after(minutes), tell)
        runs()
        report = graph_report(runs, learnt=metric)
    finish(report, out, None)


def _after(minutes: int) -> Callable[[], bool]:
    """Whether so many minutes have passed from now on; 0 never do."""
    start = time.monotonic()
    return lambda: bool(minutes) and time.monotonic() - start > 60 * minutes
