"""evenmatch study: the experiments that train generators, which take their hours in pieces."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.options import several
from evenmatch.cli.output import tell
from evenmatch.cli.study_output import Out, finish
from evenmatch.cli.training import Pieces, time_is_up
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
    list[int] | None, several("N", "Which random numbers", "1, 2, 3", "--seed", least=0)
]


@takes_option_groups()
def keyphrases(
    out: Out = "keyphrase-study",
    arm: Annotated[list[str] | None, several("ARM", "What to train for", ", ".join(ARMS))] = None,
    ablations: Annotated[
        bool,
        typer.Option("--ablations", help="Also 2RL(FG) with each part of FG left out (8 stages)."),
    ] = False,
    seed: Seeds = None,
    *,
    pieces: Pieces,
) -> None:
    """Keyphrases: likelihood, then reinforcement by F1, FG or FB in one stage or two (paper 004).

    Goes on where it was stopped; the tables and figures are of the runs that are done.
    """
    arms = (*(arm or ARMS), *(ABLATIONS if ablations else ()))
    design = Design(arms, tuple(seed or (1, 2, 3)))
    with training_threads(pieces.threads):
        runs = Runs(public_corpus(), design, study_folder(out), time_is_up(pieces.minutes), tell)
        runs()
    finish(keyphrase_report(runs), out, None)


@takes_option_groups()
def graphs(
    out: Out = "graph-study",
    data: Annotated[
        str,
        typer.Option(metavar="DATA", help="webnlg: triples; amr: the Little Prince's graphs."),
    ] = "webnlg",
    arm: Annotated[
        list[str] | None, several("ARM", "What to train for", ", ".join(graph_arms.ARMS))
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            metavar="METRIC", help="One more metric to judge by, such as one that `fit` made."
        ),
    ] = "",
    seed: Seeds = None,
    *,
    pieces: Pieces,
) -> None:
    """Graph to text: cross-entropy alone, or with BLEU, F_BERT, F_CONT, F_DISC (paper 000).

    Goes on where it was stopped; the tables and figures are of the runs that are done.
    """
    if data not in CORPORA:
        raise typer.BadParameter(f"there is no {data!r}; known: {', '.join(CORPORA)}")
    design = graph_arms.design(data, tuple(arm or graph_arms.ARMS), tuple(seed or (1, 2, 3)))
    with training_threads(pieces.threads):
        corpus, enough = CORPORA[data](), time_is_up(pieces.minutes)
        runs = GraphRuns(corpus, design, study_folder(out), enough, tell)
        runs()
        report = graph_report(runs, learnt=metric)
    finish(report, out, None)
