"""evenmatch fit: a metric trained on people's ratings.

evenmatch distil: a small metric trained to say what a larger one says.

evenmatch tune: fine-tune a generator on cross-entropy mixed with a reward.

evenmatch catseq: train a generator of keyphrases, and let it predict.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evenmatch.cli.console import print_message, print_output, print_text_or_json
from evenmatch.cli.options import (
    PROGRESS_WORD,
    EpochsOption,
    JsonOption,
    MetricFolderOption,
    ProgressOption,
    RatingsArgument,
    RunOptions,
    SeedOption,
    TrainingOptions,
    count_option,
    expand_option_groups,
    metric_option,
    print_metric_card,
    repeatable_option,
    time_limit,
)
from evenmatch.data.documents import Document, read_documents
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.data.scores import atomic_write
from evenmatch.data.tables import format_number, table_to_text
from evenmatch.scoring.metric import as_metric
from evenmatch.training.generator.tune import TuneResult
from evenmatch.training.generator.tune import tune as tune_generator
from evenmatch.training.generator.tune_run import TuneHistory
from evenmatch.training.keyphrases.decoding import load_generator
from evenmatch.training.keyphrases.train_catseq import train_catseq
from evenmatch.training.loop import FitSettings, training_threads
from evenmatch.training.metrics.distil import DISTIL_SETTINGS
from evenmatch.training.metrics.distil import distil as distil_metric
from evenmatch.training.metrics.fit import fit as fit_metric
from evenmatch.training.metrics.phrase_scorer import PHRASE_SCORER_SETTINGS, fit_keyphrases


class FitKindChoice(StrEnum):
    """How a fitted metric reads its two texts."""

    towers = "towers"
    cross = "cross"


@expand_option_groups()
def fit(
    data: RatingsArgument,
    out: MetricFolderOption,
    test: Annotated[
        str,
        typer.Option(
            metavar="DATA",
            help="Other ratings to judge the metric by.",
            show_default="a share of the segments, set apart",
        ),
    ] = "",
    subset: Annotated[
        list[str] | None, repeatable_option("NAME", "Train on these subsets only")
    ] = None,
    hold_out: Annotated[
        float, typer.Option(metavar="SHARE", help="How many segments to set apart without --test.")
    ] = 0.1,
    kind: Annotated[
        FitKindChoice,
        typer.Option(
            metavar="KIND",
            help="towers: each text goes through the encoder alone; cross: both side by side.",
        ),
    ] = FitKindChoice.towers,
    model: Annotated[
        str, typer.Option(metavar="MODEL", help="The encoder to start from, by name or folder.")
    ] = "minilm",
    frozen: Annotated[int, count_option("How many lower blocks stay as they are.", least=0)] = 2,
    keyphrases: Annotated[
        bool,
        typer.Option(
            "--keyphrases",
            help="DATA is documents with predicted keyphrases: train the scorer of phrases that "
            "fb needs, on the scores fg gives.",
        ),
    ] = False,
    epochs: EpochsOption = 1,
    seed: SeedOption = 0,
    json: JsonOption = False,
    *,
    running: RunOptions,
) -> None:
    """Train a metric on ratings and save it as a folder that can be named as a metric."""
    how: dict[str, Any] = {"model": model, "frozen": frozen, "hold_out": hold_out}
    lesson = FitSettings(epochs=epochs, seed=seed)
    with running.settings(PROGRESS_WORD) as settings:
        if keyphrases:
            if test or subset:
                raise typer.BadParameter("--keyphrases takes neither --test nor --subset")
            paced = replace(
                lesson, batch=PHRASE_SCORER_SETTINGS.batch, rate=PHRASE_SCORER_SETTINGS.rate
            )
            made = fit_keyphrases(data, out, lesson=paced, **how, **settings)
        else:
            ratings = read_ratings(data, subsets=subset or ())
            given = {"test": test or None, "kind": kind.value, **how}
            made = fit_metric(ratings, out, lesson=lesson, **given, **settings)
    print_metric_card(made, json)


@expand_option_groups()
def distil(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Texts: a JSONL, TSV or Parquet file of candidates and references, or a rated "
            "data set's name or folder; ratings are not used.",
        ),
    ],
    out: MetricFolderOption,
    metric: Annotated[str, metric_option("The teacher, by name or spec.")] = "f_disc",
    test: Annotated[
        list[str] | None,
        repeatable_option("DATA", "Other texts to compare on", "every tenth pair, set apart"),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Whose first blocks to start from; a teacher that aligns vectors has its own.",
        ),
    ] = "minilm",
    blocks: Annotated[int, count_option("How deep the student is.")] = 2,
    epochs: EpochsOption = DISTIL_SETTINGS.epochs,
    seed: SeedOption = 0,
    json: JsonOption = False,
    *,
    running: RunOptions,
) -> None:
    """Train a small metric to imitate another and save it as a folder to name as a metric."""
    as_metric(metric)  # a mistake in it is said before any data is read
    lesson = FitSettings(epochs=epochs, rate=DISTIL_SETTINGS.rate, seed=seed)
    with running.settings(PROGRESS_WORD) as settings:
        made = distil_metric(
            metric,
            data,
            out,
            test=test or (),
            model=model,
            blocks=blocks,
            lesson=lesson,
            **settings,
        )
    print_metric_card(made, json)


_SECONDS_BETWEEN_LINES = 5.0


def tune(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG.toml",
            help="train, valid and out (a folder), and whatever is not to be as usual: model, "
            "reward, own_embeddings, rl_weight, epochs, batch, rate, seed, [shape], …",
        ),
    ],
    minutes: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="N",
            help="Pause after so many minutes; the same command goes on from there.",
            show_default="until it ends",
        ),
    ] = 0.0,
    progress: ProgressOption = None,
    json: JsonOption = False,
) -> None:
    """Fine-tune an encoder-decoder with a reward; a stopped run goes on where it was."""
    tuned = tune_generator(config, watch=_progress_printer(progress), enough=time_limit(minutes))
    print_text_or_json(_evaluation_lines(tuned), tuned.document, json=json)
    if tuned.history.ended:
        print_message(f"wrote {tuned.model}; name it as a model to go on from it")
    else:
        print_message("paused; the same command goes on from here")


def _evaluation_lines(tuned: TuneResult) -> str:
    """The looks as lines, the best of them marked."""
    best = tuned.history.best[0]
    lines = [
        f"step {row['step']}  BLEU {100 * row['bleu']:.2f}  cross-entropy "
        f"{row['cross_entropy']:.2f}  reward {row['reward']:.3f}  "
        f"baseline {row['baseline']:.3f}{'  best' if row['step'] == best else ''}"
        for row in tuned.document["looks"]
    ]
    return "\n".join(lines) or "no look yet"


def _progress_printer(wanted: bool | None) -> Callable[[TuneHistory], None]:
    """Tell each step: on a terminal in one line that changes, in a log now and then."""
    terminal = sys.stderr.isatty()
    if wanted is False or (wanted is None and not terminal):
        return lambda history: None
    last = time.monotonic()

    def line(history: TuneHistory) -> None:
        nonlocal last
        if terminal:
            sys.stderr.write(f"\r\x1b[K{_step_line(history)}" + ("\n" if history.ended else ""))
            sys.stderr.flush()
        elif history.ended or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            print_message(_step_line(history))
            last = time.monotonic()

    return line


def _step_line(history: TuneHistory) -> str:
    told = history.step_metrics[-1]
    step, bleu = history.best
    looked = f", best BLEU {100 * bleu:.2f} at step {step}" if history.evaluations else ""
    return (
        f"step {len(history.step_metrics)} of {history.steps}: cross-entropy {told.cross_entropy:.2f}, "
        f"reward {told.reward:.3f} against {told.baseline:.3f}{looked}"
    )


catseq = typer.Typer(help="Generate keyphrases: train a model, predict.", no_args_is_help=True)


@catseq.command("train")
@expand_option_groups(minutes=0)
def catseq_train(
    plan: Annotated[
        str, typer.Argument(metavar="CONFIG.toml", help="Documents, sizes and stages.")
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FOLDER", help="Where the generators go.")
    ],
    *,
    pieces: TrainingOptions,
) -> None:
    """Train a generator by likelihood and stages of reward; goes on where it was stopped."""
    enough = time_limit(pieces.minutes)
    with training_threads(pieces.threads):
        found = train_catseq(plan, out, enough=enough)
    rows = [["course", "steps", "before", "best", "at step", "ended"]]
    for each in found:
        step, best = each.history.best
        before = format_number(each.history.looks[0][1])
        ended = "yes" if each.history.ended else "no, run it again"
        rows.append(
            [each.name, str(len(each.history.told)), before, format_number(best), str(step), ended]
        )
    print_output(table_to_text(rows))


@catseq.command("predict")
def catseq_predict(
    model: Annotated[str, typer.Argument(metavar="FOLDER", help="A generator that train wrote.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="Documents, as for keyphrases.")],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE.jsonl", help="Where the predictions go.")
    ],
    name: Annotated[
        str, typer.Option(metavar="NAME", help="What to call the predictions.")
    ] = "catseq",
    beam: Annotated[int, count_option("Beginnings a search keeps; 1 is greedy.")] = 1,
) -> None:
    """Predict keyphrases, into a file that `evenmatch keyphrases` takes."""
    generator = load_generator(model)
    documents = [each for found in read_documents(data) for each in found.documents]
    predicted = generator(documents, beam=beam)
    lines = (
        _prediction_line(document, {name: phrases})
        for document, phrases in zip(documents, predicted, strict=True)
    )
    with atomic_write(out) as place:
        Path(place).write_text("".join(lines), "utf-8")
    print_message(
        f"wrote {len(documents)} documents to {out}; score them: evenmatch keyphrases {out}"
    )


def _prediction_line(document: Document, predictions: dict[str, tuple[str, ...]]) -> str:
    every = {**document.predictions, **predictions}
    record = {"text": document.text, "keyphrases": document.keyphrases, "pred": every}
    return json.dumps(record, ensure_ascii=False) + "\n"
