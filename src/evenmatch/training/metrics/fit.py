"""fit: train a metric on human ratings.

Two architectures: a bi-encoder (`kind="towers"`), which encodes each text by itself, and a
cross-encoder (`kind="cross"`), which encodes both texts together.
"""

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
from evenmatch.models.checkpoints import count_layers
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import FOLDER_PLACEHOLDER, read_metric, write_metric
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
    settings: FitSettings = FitSettings(),
    hold_out: float = 0.1,
    **run: Any,
) -> MetricCard:
    """Train a metric on ratings, save it in the folder `out` and evaluate it on held-out ratings.

    `data` and `test` are anything that `read_ratings` takes or returns; without `test`, the share
    `hold_out` of the segments is held out. `kind` is 'towers' for a bi-encoder, which encodes each
    text by itself, or 'cross' for a cross-encoder, which encodes both texts together. The
    encoder's embeddings and first `frozen` blocks are not trained. `run` is as in `score`.
    """
    folder, run_settings = check_output_folder(out), make_run(**run)
    if kind not in _TRAINERS:
        raise UnknownNameError(
            f"no kind of metric is called {kind!r}; known: {', '.join(_TRAINERS)}"
        )
    sets, tests = as_rated_sets(data), as_rated_sets(test or ())
    if test is None:
        sets, tests = split_ratings(sets, hold_out, settings.seed)
    examples = make_training_examples(*rated_pairs(sets))
    start = time.monotonic()
    _TRAINERS[kind](folder, examples, model, frozen, settings, run_settings)
    seconds = time.monotonic() - start
    metric: Metric = read_metric(str(folder))
    agreement = evaluate_held_out(metric, tests, run_settings, seed=settings.seed)
    facts = {
        "trained on": f"{join_set_names(sets)} ({len(examples)} rated outputs)",
        "encoder": f"{PretrainedBackbone(model).checkpoint().label}, {frozen} blocks frozen",
        "kind": f"{kind}: {_DESCRIPTIONS[kind]}",
        "lesson": ", ".join(f"{k} {v:g}" for k, v in asdict(settings).items()),
        "time": f"{seconds:.0f} s",
    }
    card = MetricCard(
        folder,
        "A metric fitted to ratings",
        metric.signature,
        facts,
        {f"Agreement on held-out ratings: {join_set_names(tests)}": agreement.table()},
        {"folder": str(folder), "signature": metric.signature, **facts, **agreement.document()},
    )
    write_card(card)
    return card


def _train_bi_encoder(
    folder: Path,
    examples: TrainingExamples,
    model: str,
    frozen: int,
    settings: FitSettings,
    run: Run,
) -> None:
    backbone = PretrainedBackbone(model)
    checkpoint = backbone.checkpoint()
    encoder = load_partly_frozen(checkpoint, frozen, run.device)
    last = count_layers(checkpoint)
    # Layers two thirds up represent word meaning best; used only if that layer is trained.
    middle = round(2 * last / 3)
    layers = (middle, last) if frozen < middle < last else (last,)
    bi_encoder = make_bi_encoder(encoder, backbone, examples.texts, run)
    head = train_bi_encoder(bi_encoder, examples, layers, settings, run)
    save_encoder(encoder, checkpoint, folder)
    save_bi_encoder_head(head, folder)
    write_metric(folder, f"fitted(model={FOLDER_PLACEHOLDER})")


def _train_cross_encoder(
    folder: Path,
    examples: TrainingExamples,
    model: str,
    frozen: int,
    settings: FitSettings,
    run: Run,
) -> None:
    checkpoint = PretrainedBackbone(model).checkpoint()
    train_cross_encoder(checkpoint, examples, frozen, settings, run).save(folder)
    write_metric(folder, f"regression(model={FOLDER_PLACEHOLDER})")


_TRAINERS = {"towers": _train_bi_encoder, "cross": _train_cross_encoder}
_DESCRIPTIONS = {
    "towers": "bi-encoder, each text encoded by itself",
    "cross": "cross-encoder, both texts encoded together",
}
