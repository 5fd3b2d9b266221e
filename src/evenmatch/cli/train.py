"""Commands that train models: fit, distil, tune, catseq; and generate, which uses one.

fit trains a metric on human ratings, distil a small metric on the scores of a larger one, tune a
text generator with a reward, and catseq a keyphrase generator. generate writes texts with a tuned
generator.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import typer

from evenmatch.cli import options as opt
from evenmatch.cli.console import print_message, print_output, print_text_or_json
from evenmatch.data.documents import Document, read_documents
from evenmatch.data.files import is_json
from evenmatch.data.graphs import GraphText, read_graphs
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.data.scores import replace_file
from evenmatch.data.tables import format_number, table_to_text
from evenmatch.scoring.metric import as_metric
from evenmatch.training.generator.decoding import generate as generate_texts
from evenmatch.training.generator.loss import StepMetrics
from evenmatch.training.generator.tune import TuneResult
from evenmatch.training.generator.tune import tune as tune_generator
from evenmatch.training.keyphrases.decoding import load_generator
from evenmatch.training.keyphrases.train_catseq import train_catseq
from evenmatch.training.loop import FitSettings, History, training_threads
from evenmatch.training.metrics.distil import DISTIL_SETTINGS
from evenmatch.training.metrics.distil import distil as distil_metric
from evenmatch.training.metrics.fit import FitArchitecture
from evenmatch.training.metrics.fit import fit as fit_metric
from evenmatch.training.metrics.phrase_scorer import PHRASE_SCORER_SETTINGS, fit_keyphrases

_SECONDS_BETWEEN_LINES = 5.0


@opt.expand_option_groups()
def fit(
    data: str = opt.RATINGS,
    out: str = opt.METRIC_FOLDER,
    test: str = opt.value(
        "",
        "DATA",
        "Ratings to evaluate the metric on.",
        shown="segments held out from DATA, see --hold-out",
    ),
    subset: list[str] | None = opt.repeatable(
        None, "NAME", "Train on this subset only", shown="all"
    ),
    hold_out: float = opt.value(
        0.1, "FRACTION", "Fraction of the segments to hold out for the evaluation, without --test."
    ),
    kind: FitArchitecture = opt.value(
        "towers",
        "KIND",
        "Architecture. towers: a bi-encoder, which encodes each text separately; cross: a "
        "cross-encoder, which encodes both texts together; adapter: a bi-encoder of which only "
        "a small adapter is trained; projection: nothing of the encoder is trained.",
    ),
    model: str = opt.value("minilm", "MODEL", "Pretrained encoder, by name or folder."),
    frozen: int = opt.count(2, "Number of lower transformer blocks that are not trained.", least=0),
    also: list[str] | None = opt.repeatable(
        None, "DATA", "Train on these ratings too, with --kind adapter or projection", shown="none"
    ),
    part: list[str] | None = opt.repeatable(
        None, "METRIC", "Metric whose score is a feature, with --kind adapter", shown="none"
    ),
    start: str = opt.value(
        "", "FOLDER", "Continue from this metric, with --kind adapter.", shown="the encoder"
    ),
    segment_share: float = opt.value(
        1.0,
        "SHARE",
        "Share of the differences between segments that is kept, where a segment has several "
        "rated outputs, with --kind adapter or projection.",
    ),
    ranking: float = opt.value(
        0.0,
        "WEIGHT",
        "Weight of a loss on the order of the outputs of a segment, with --kind projection.",
    ),
    most: int = opt.count(
        0, "Largest number of rated outputs to train on, at random; 0 is all.", least=0
    ),
    rate: float | None = opt.value(
        None,
        "RATE",
        "Learning rate of the encoder, adapter or projection.",
        "1e-4, small kinds: 1e-3",
    ),
    keyphrases: bool = opt.flag(
        False,
        "--keyphrases",
        "Train the phrase scorer of the metric fb on scores of the metric fg. DATA is then "
        "documents with predicted keyphrases.",
    ),
    epochs: int = opt.count(1, "Number of passes over the training pairs."),
    seed: int = opt.SEED,
    json: bool = opt.JSON,
    *,
    running: opt.RunOptions,
) -> None:
    """Train a metric on human ratings.

    The metric is saved to a folder that can be used as a metric: -m ./FOLDER.
    """
    how: dict[str, Any] = {"model": model, "frozen": frozen, "hold_out": hold_out}
    training = FitSettings(
        epochs=epochs,
        seed=seed,
        rate=rate or (1e-3 if kind in ("adapter", "projection") else FitSettings().rate),
    )
    with running.settings(opt.PROGRESS_WORD) as run:
        if keyphrases:
            if test or subset:
                raise typer.BadParameter("--keyphrases takes neither --test nor --subset")
            paced = replace(
                training, batch=PHRASE_SCORER_SETTINGS.batch, rate=PHRASE_SCORER_SETTINGS.rate
            )
            made = fit_keyphrases(data, out, settings=paced, **how, **run)
        else:
            ratings = read_ratings(data, subsets=subset or ())
            ratings += [each for other in also or () for each in read_ratings(other)]
            given = {"test": test or None, "kind": kind, **how}
            given |= {"parts": part or (), "start": start, "most": most}
            given |= {"segment_share": segment_share, "ranking": ranking}
            made = fit_metric(ratings, out, settings=training, **given, **run)
    opt.print_metric_card(made, json)


@opt.expand_option_groups()
def distil(
    data: str = opt.argument(
        opt.REQUIRED,
        "DATA",
        "Texts: a JSONL, TSV, CSV or Parquet file of candidates and references, or the name or "
        "folder of a data set with ratings (the ratings are not used).",
    ),
    out: str = opt.METRIC_FOLDER,
    metric: str = opt.metric("f_disc", "Teacher: the metric to imitate, by name or spec."),
    test: list[str] | None = opt.repeatable(
        None,
        "DATA",
        "Texts on which to compare student and teacher",
        shown="every tenth pair, held out",
    ),
    model: str = opt.value(
        "minilm",
        "MODEL",
        "Pretrained encoder whose first blocks initialise the student; an alignment metric as "
        "teacher uses its own encoder.",
    ),
    blocks: int = opt.count(2, "Number of transformer blocks of the student."),
    epochs: int = opt.count(DISTIL_SETTINGS.epochs, "Number of passes over the training pairs."),
    seed: int = opt.SEED,
    json: bool = opt.JSON,
    *,
    running: opt.RunOptions,
) -> None:
    """Train a small metric to imitate another one.

    The metric is saved to a folder that can be used as a metric: -m ./FOLDER.
    """
    as_metric(metric)  # report a wrong spec before reading any data
    training = FitSettings(epochs=epochs, rate=DISTIL_SETTINGS.rate, seed=seed)
    with running.settings(opt.PROGRESS_WORD) as run:
        made = distil_metric(
            metric,
            data,
            out,
            test=test or (),
            model=model,
            blocks=blocks,
            settings=training,
            **run,
        )
    opt.print_metric_card(made, json)


def tune(
    config: str = opt.argument(
        opt.REQUIRED,
        "CONFIG.toml",
        "File of settings. Required: train and valid (data files, JSONL with source (or triples, "
        "or amr) and references), out (folder for the results). Optional: model, reward (a "
        "metric), rl_weight (weight of the reward in the loss), epochs, batch, rate, lora_rank, "
        "bf16, seed and others; all fields: docs/reference/tune-settings.md.",
    ),
    minutes: float = opt.value(
        0.0,
        "N",
        "Pause after N minutes; run the same command again to continue.",
        shown="no limit",
        least=0.0,
    ),
    progress: bool | None = opt.PROGRESS,
    json: bool = opt.JSON,
) -> None:
    """Fine-tune a text generator with a reward.

    The model is an encoder-decoder or a causal language model; the loss is a weighted sum of
    cross-entropy and a reinforcement learning loss. Run the same command again to continue a
    stopped run.
    """
    tuned = tune_generator(
        config, on_step=_progress_printer(progress), should_stop=opt.time_limit(minutes)
    )
    print_text_or_json(_evaluation_lines(tuned), tuned.document, json=json)
    if not tuned.history.ended:
        print_message(f"{tuned.ending}; run the same command again to continue")
    elif not tuned.new_steps:
        print_message(f"{tuned.ending}; the best model is {tuned.model}")
    else:
        print_message(tuned.ending)
        print_message(
            f"wrote {tuned.model}; to write texts with it: evenmatch generate {tuned.model} DATA "
            "-o FILE.jsonl; to train further, give it as model in the settings"
        )


def _evaluation_lines(tuned: TuneResult) -> str:
    """Return one line per evaluation, with the best one marked."""
    best = tuned.history.best[0]
    lines = [
        f"step {row['step']}  BLEU {format_number(row['bleu'])}  cross-entropy "
        f"{row['cross_entropy']:.2f}  reward {row['reward']:.3f}  "
        f"baseline {row['baseline']:.3f}{'  best' if row['step'] == best else ''}"
        for row in tuned.document["looks"]
    ]
    return "\n".join(lines) or "no evaluation yet"


def _progress_printer(wanted: bool | None) -> Callable[[History[StepMetrics]], None]:
    """Return a callback that shows each step: on a terminal as one updated line, else as a log.

    By default, the log has a line for each evaluation.
    """
    terminal = sys.stderr.isatty()
    if wanted is False:
        return lambda history: None
    last, evaluations = time.monotonic(), -1

    def line(history: History[StepMetrics]) -> None:
        nonlocal last, evaluations
        if wanted is None and not terminal:
            if len(history.evaluations) > evaluations >= 0:
                print_message(_step_line(history))
            evaluations = len(history.evaluations)
        elif terminal:
            sys.stderr.write(f"\r\x1b[K{_step_line(history)}" + ("\n" if history.ended else ""))
            sys.stderr.flush()
        elif history.ended or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            print_message(_step_line(history))
            last = time.monotonic()

    return line


def _step_line(history: History[StepMetrics]) -> str:
    last = history.step_metrics[-1]
    step, bleu = history.best
    best = f", best BLEU {format_number(bleu)} at step {step}" if history.evaluations else ""
    return (
        f"step {len(history.step_metrics)} of {history.steps}: cross-entropy "
        f"{last.cross_entropy:.2f}, reward {last.reward:.3f}, baseline {last.baseline:.3f}{best}"
    )


def generate(
    model: str = opt.argument(
        opt.REQUIRED, "MODEL", "Folder written by evenmatch tune, or another language model."
    ),
    data: str = opt.argument(
        opt.REQUIRED, "DATA", "Graphs or lines, as for evenmatch tune; references are optional."
    ),
    out: str = opt.value("", "--out -o FILE.jsonl", "File for the texts.", shown="print them"),
    batch_size: int = opt.count(64, "Number of texts that are decoded together."),
    beams: int = opt.count(1, "Number of beams of the search; 1 decodes greedily."),
    threads: int = opt.count(0, "Number of CPU threads; 0 uses PyTorch's default.", least=0),
) -> None:
    """Write texts with a tuned generator.

    References in DATA are kept, so that `evenmatch score` can score the texts.
    """
    if out and not is_json(out):
        raise typer.BadParameter(f"the texts are JSON lines; name the file .jsonl, not {out}")
    graphs = read_graphs(data, need_texts=False)
    sources = [each.graph.line for each in graphs]
    with training_threads(threads) if threads else nullcontext():
        texts = generate_texts(model, sources, batch_size=batch_size, beams=beams)
    lines = "".join(map(_generated_line, graphs, texts))
    if not out:
        print_output(lines.removesuffix("\n"))
        return
    replace_file(out, lines)
    told = f"wrote {len(texts)} texts to {out}"
    if all(each.references for each in graphs):
        told += f"; to score them: evenmatch score {out}"
    print_message(told)


def _generated_line(each: GraphText, text: str) -> str:
    record: dict[str, Any] = {"id": each.id} if each.id else {}
    record |= {"source": each.graph.line, "candidate": text}
    if each.references:
        record["references"] = each.references
    return json.dumps(record, ensure_ascii=False) + "\n"


catseq = typer.Typer(
    help="Train a keyphrase generator (catSeq) and predict with it.", no_args_is_help=True
)


@catseq.command("train")
@opt.expand_option_groups(minutes=0)
def catseq_train(
    plan: str = opt.argument(
        opt.REQUIRED, "CONFIG.toml", "Settings: documents, model size and training stages."
    ),
    out: str = opt.value(opt.REQUIRED, "--out -o FOLDER", "Folder for the trained generators."),
    *,
    training: opt.TrainingOptions,
) -> None:
    """Train a keyphrase generator.

    Training is by maximum likelihood, then by stages of reinforcement learning with a reward. Run
    the same command again to continue a stopped run.
    """
    should_stop = opt.time_limit(training.minutes)
    with training_threads(training.threads):
        found = train_catseq(plan, out, should_stop=should_stop, log=print_message)
    rows = [["run", "steps", "first", "best", "at step", "finished"]]
    for each in found:
        history, evaluations = each.history, each.history.evaluations
        values = ["-"] * 3
        if evaluations:
            step, best = history.best
            values = [format_number(evaluations[0][1]), format_number(best), str(step)]
        steps, ended = len(history.step_metrics), "yes" if history.ended else "no, run again"
        rows.append([each.name, str(steps), *values, ended])
    print_output(table_to_text(rows))


@catseq.command("predict")
def catseq_predict(
    model: str = opt.argument(
        opt.REQUIRED, "FOLDER", "Generator written by: evenmatch catseq train."
    ),
    data: str = opt.argument(
        opt.REQUIRED,
        "DATA",
        "Documents, as for: evenmatch keyphrases; they need no gold keyphrases.",
    ),
    out: str = opt.value(
        "", "--out -o FILE.jsonl", "File for the predictions.", shown="print them"
    ),
    name: str = opt.value("catseq", "NAME", "Name of the predictions in the file."),
    beams: int = opt.count(1, "Number of beams of the search; 1 decodes greedily."),
) -> None:
    """Predict keyphrases and write a file for `evenmatch keyphrases`."""
    generator = load_generator(model)
    documents = [each for found in read_documents(data, gold=False) for each in found.documents]
    predicted = generator(documents, beam=beams)
    lines = "".join(
        _prediction_line(document, {name: phrases})
        for document, phrases in zip(documents, predicted, strict=True)
    )
    if not out:
        print_output(lines.removesuffix("\n"))
        return
    replace_file(out, lines)
    print_message(
        f"wrote {len(documents)} documents to {out}; to score them: evenmatch keyphrases {out}"
    )


def _prediction_line(document: Document, predictions: dict[str, tuple[str, ...]]) -> str:
    every = {**document.predictions, **predictions}
    gold = document.variants or document.keyphrases
    record = {"text": document.text, "keyphrases": gold, "pred": every}
    return json.dumps(record, ensure_ascii=False) + "\n"
