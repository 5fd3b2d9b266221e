"""evenmatch study: the papers' experiments, each a command that goes on where it was stopped."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, TypeAlias

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.options import Json, Running, Seed, count, several
from evenmatch.cli.output import tell
from evenmatch.cli.study_output import Out, finish
from evenmatch.cli.study_training import graphs, keyphrases
from evenmatch.data.catalogue import data_set
from evenmatch.data.ratings_reading import read_ratings
from evenmatch.uses.study.cells import study_folder
from evenmatch.uses.study.lisa import ALGORITHMS, LENGTHS, Grid, run_lisa
from evenmatch.uses.study.lisa_advice import worth_report
from evenmatch.uses.study.lisa_gradient import METHODS, Lesson
from evenmatch.uses.study.lisa_lessons import lessons_report, take_lessons
from evenmatch.uses.study.lisa_report import lisa_report
from evenmatch.uses.study.lisa_table import document, rows_of
from evenmatch.uses.study.lisa_worth import Measures, measure_worth
from evenmatch.uses.study.sentences import TRANSLATIONS, Sentences, find_sentences
from evenmatch.vectors.transformer import Transformer

study = typer.Typer(help="The papers' experiments, resumable.", no_args_is_help=True)
study.command("keyphrases")(keyphrases)
study.command("graphs")(graphs)


Data: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Pairs: a .jsonl, .tsv or .parquet file with candidate, reference and perhaps "
        "source. Without it, WMT17's translations where they are, else a small sample.",
        show_default=False,
    ),
]
Pairs: TypeAlias = Annotated[int, count("How many pairs to draw at most.", least=2)]
Encoder: TypeAlias = Annotated[str, typer.Option(metavar="MODEL", help="An encoder.")]


@study.command("lisa")
@takes_option_groups(cache=True)
def lisa(
    data: Data = "",
    out: Out = "lisa-study",
    model: Annotated[
        list[str] | None, several("MODEL", "An encoder by name or folder", "minilm")
    ] = None,
    sources: Annotated[
        bool,
        typer.Option(
            "--sources",
            help="Pair candidates with their sources; needs a multilingual --model.",
        ),
    ] = False,
    pairs: Pairs = 300,
    length: Annotated[
        list[int] | None,
        several("N", "Pad to N pieces, 0 for not at all", ", ".join(map(str, LENGTHS)), least=0),
    ] = None,
    algorithm: Annotated[
        list[str] | None, several("SOLVER", "How to align", ", ".join(ALGORITHMS))
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    *,
    running: Running,
) -> None:
    """LiSAScore: what alignment and padding do to scores, and who tells pairs from negatives."""
    if sources and not model:
        raise typer.BadParameter("sources are in another language; name a multilingual --model")
    grid = Grid(
        models=tuple(model or ("minilm",)),
        lengths=tuple(length or LENGTHS),
        algorithms=tuple(algorithm or ALGORITHMS),
    )
    sentences = _sentences(data, pairs, seed, sources=sources)
    folder = study_folder(out)
    with running.settings() as settings:
        runs = run_lisa(sentences, grid, folder, seed=seed, **settings)
    rows = rows_of(runs)
    finish(lisa_report(runs, rows), out, document(runs, rows) if json else None)


@study.command("lisa-quality")
@takes_option_groups(cache=True)
def lisa_quality(
    data: Data = "",
    out: Out = "lisa-quality",
    model: Encoder = "minilm",
    pairs: Annotated[int, count("How many pairs to align at most.", least=2)] = 1000,
    rounds: Annotated[int, count("Of so many timings the fastest counts.")] = 5,
    seed: Seed = 0,
    json: Json = False,
    *,
    running: Running,
) -> None:
    """LiSAScore: what approximate assignment loses, and what it costs beside the exact one."""
    sentences = _sentences(data, pairs, seed)
    ratings = read_ratings(TRANSLATIONS) if data_set(TRANSLATIONS).present else []
    if not ratings:
        tell(f"agreement with people is left out: {data_set(TRANSLATIONS).absence}")
    with running.settings() as settings:
        worth = measure_worth(
            sentences,
            ratings,
            Transformer(model),
            study_folder(out),
            Measures(rounds=rounds, device=running.device),
            **settings,
        )
    finish(worth_report(worth), out, asdict(worth) if json else None)


@study.command("lisa-gradient")
def lisa_gradient(
    data: Data = "",
    out: Out = "lisa-gradient",
    model: Encoder = "minilm",
    pairs: Pairs = 512,
    steps: Annotated[int, count("How long to train.")] = 200,
    batch: Annotated[int, count("Pairs in a batch.", least=2)] = 16,
    method: Annotated[
        list[str] | None, several("METHOD", "How to take the gradient", ", ".join(METHODS))
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """LiSAScore: train a projection through the metric to tell pairs from in-batch negatives."""
    lessons = [
        Lesson(name, steps=steps, batch=batch, look_every=max(1, steps // 10), seed=seed)
        for name in method or METHODS
    ]
    sentences = _sentences(data, pairs, seed)
    folder = study_folder(out)
    found = take_lessons(sentences, Transformer(model), lessons, folder, told=tell)
    report = lessons_report(found, sentences)
    finish(report, out, {"curves": [asdict(curve) for curve in found]} if json else None)


def _sentences(data: str, pairs: int, seed: int, *, sources: bool = False) -> Sentences:
    found = find_sentences(data, pairs, seed, sources=sources)
    tell(f"{len(found)} pairs of {found.name}")
    return found
