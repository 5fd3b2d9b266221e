"""fit: a metric trained on people's ratings."""

from __future__ import annotations

import time
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evenmatch.data.cards import MetricCard, check_output_folder, write_card
from evenmatch.data.ratings.reading import RatingsLike, as_rated_sets, join_set_names
from evenmatch.errors import UnknownNameError
from evenmatch.metrics.fitted import save_bi_encoder_head
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.models.layers import count_layers
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.saved import FOLDER_PLACEHOLDER, read_metric, write_metric
from evenmatch.training.loop import FitSettings
from evenmatch.training.metrics.bi_encoder import (
    load_partly_frozen,
    make_bi_encoder,
    save_encoder,
    train_bi_encoder,
)
from evenmatch.training.metrics.cross_encoder import train_cross_encoder
from evenmatch.training.metrics.examples import (
    TrainingExamples,
    evaluate_held_out,
    make_training_examples,
    rated_pairs,
    split_ratings,
)
from evenmatch.types import Run

FitArchitecture: TypeAlias = Literal["towers", "cross"]


def fit(
    data: RatingsLike,
    out: str | PathLike[str],
    *,
    test: RatingsLike | None = None,
    kind: FitArchitecture = "towers",
    model: str = "minilm",
    frozen: int = 2,
    lesson: FitSettings = FitSettings(),
    hold_out: float = 0.1,
    **run: Any,
) -> MetricCard:
    """Train a metric on ratings, save it in the folder `out`, and judge it on others.

    `data` and `test` are what `read_ratings` takes or gives; without `test` a share of the
    segments, `hold_out`, is set apart for the judgement. `towers` read each text on its own,
    `cross` both side by side. The encoder's embeddings and first `frozen` blocks stay as they
    are. `run` is as in `score`.
    """
    folder, how = check_output_folder(out), make_run(**run)
    if kind not in _TRAINERS:
        raise UnknownNameError(
            f"no kind of metric is called {kind!r}; known: {', '.join(_TRAINERS)}"
        )
    sets, tests = as_rated_sets(data), as_rated_sets(test or ())
    if test is None:
        sets, tests = split_ratings(sets, hold_out, lesson.seed)
    examples = make_training_examples(*rated_pairs(sets))
    start = time.monotonic()
    _TRAINERS[kind](folder, examples, model, frozen, lesson, how)
    seconds = time.monotonic() - start
    metric: Metric = read_metric(str(folder))
    judged = evaluate_held_out(metric, tests, how, seed=lesson.seed)
    facts = {
        "trained on": f"{join_set_names(sets)} ({len(examples)} rated outputs)",
        "encoder": f"{PretrainedBackbone(model).checkpoint().label}, {frozen} blocks frozen",
        "kind": f"{kind}: {_DESCRIPTIONS[kind]}",
        "lesson": ", ".join(f"{k} {v:g}" for k, v in asdict(lesson).items()),
        "time": f"{seconds:.0f} s",
    }
    made = MetricCard(
        folder,
        "A metric fitted to ratings",
        metric.signature,
        facts,
        {f"Agreement on held-out ratings: {join_set_names(tests)}": judged.table()},
        {"folder": str(folder), "signature": metric.signature, **facts, **judged.document()},
    )
    write_card(made)
    return made


def _train_bi_encoder(
    folder: Path, examples: TrainingExamples, model: str, frozen: int, lesson: FitSettings, run: Run
) -> None:
    body = PretrainedBackbone(model)
    checkpoint = body.checkpoint()
    upper = load_partly_frozen(checkpoint, frozen, run.device)
    last = count_layers(checkpoint)
    # Two thirds up, where encoders know most of words, if anything learns there.
    middle = round(2 * last / 3)
    layers = (middle, last) if frozen < middle < last else (last,)
    towers = make_bi_encoder(upper, body, examples.texts, run)
    head = train_bi_encoder(towers, examples, layers, lesson, run)
    save_encoder(upper, checkpoint, folder)
    save_bi_encoder_head(head, folder)
    write_metric(folder, f"fitted(model={FOLDER_PLACEHOLDER})")


def _train_cross_encoder(
    folder: Path, examples: TrainingExamples, model: str, frozen: int, lesson: FitSettings, run: Run
) -> None:
    train_cross_encoder(PretrainedBackbone(model).checkpoint(), examples, frozen, lesson, run).save(
        folder
    )
    write_metric(folder, f"regression(model={FOLDER_PLACEHOLDER})")


_TRAINERS = {"towers": _train_bi_encoder, "cross": _train_cross_encoder}


_DESCRIPTIONS = {"towers": "each text read alone", "cross": "both texts read side by side"}
