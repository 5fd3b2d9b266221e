"""fit: train a metric on human ratings.

Two architectures: a bi-encoder (`kind="towers"`), which encodes each text by itself, and a
cross-encoder (`kind="cross"`), which encodes both texts together.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from os import PathLike
from typing import Any, Literal, TypeAlias

from evenmatch.data.cards import MetricCard, write_card
from evenmatch.data.ratings.reading import RatingsLike, as_rated_sets, join_set_names
from evenmatch.errors import UnknownNameError
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.models.checkpoints import count_layers
from evenmatch.protocols import Metric
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import read_metric
from evenmatch.training.checkpoints import CheckpointFile, check_run_folder, content_digest
from evenmatch.training.loop import FitSettings
from evenmatch.training.metrics.bi_encoder import train_bi_encoder
from evenmatch.training.metrics.cross_encoder import train_cross_encoder
from evenmatch.training.metrics.examples import (
    evaluate_held_out,
    make_training_examples,
    rated_pairs,
    split_ratings,
)

FitArchitecture: TypeAlias = Literal["towers", "cross"]

_ARCHITECTURES = {
    "towers": "bi-encoder, each text encoded by itself",
    "cross": "cross-encoder, both texts encoded together",
}


@check_arguments
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
    encoder's embeddings and first `frozen` blocks are not trained. The same call resumes
    interrupted training from the checkpoint in `out`. `run` is as in `score`.
    """
    folder, run_settings = check_run_folder(out), make_run(**run)
    if kind not in _ARCHITECTURES:
        known = ", ".join(_ARCHITECTURES)
        raise UnknownNameError(f"no kind of metric is called {kind!r}; known: {known}")
    sets, tests = as_rated_sets(data), as_rated_sets(test or ())
    if test is None:
        sets, tests = split_ratings(sets, hold_out, settings.seed)
    examples = make_training_examples(*rated_pairs(sets))
    backbone = PretrainedBackbone(model)
    source = backbone.checkpoint()
    recipe = {
        "trainer": f"fit {kind}",
        "model": source.digest,
        "frozen": frozen,
        "settings": asdict(settings),
        "examples": content_digest(examples),
    }
    checkpoint = CheckpointFile(folder, recipe)
    start = time.monotonic()
    training = (examples, settings, run_settings, checkpoint)
    if kind == "cross":
        train_cross_encoder(source, *training, frozen=frozen)
    else:
        last = count_layers(source)
        # Layers two thirds up represent word meaning best; used only if that layer is trained.
        middle = round(2 * last / 3)
        layers = (middle, last) if frozen < middle < last else (last,)
        train_bi_encoder(backbone, *training, frozen=frozen, height=last, layers=layers)
    seconds = time.monotonic() - start
    metric: Metric = read_metric(str(folder))
    agreement = evaluate_held_out(metric, tests, run_settings, seed=settings.seed)
    facts = {
        "trained on": f"{join_set_names(sets)} ({len(examples)} rated outputs)",
        "encoder": f"{source.label}, {frozen} blocks frozen",
        "kind": f"{kind}: {_ARCHITECTURES[kind]}",
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
    checkpoint.remove()
    return card
