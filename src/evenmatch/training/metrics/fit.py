"""fit: train a metric on human ratings.

Two architectures: a bi-encoder (`kind="towers"`), which encodes each text by itself, and a
cross-encoder (`kind="cross"`), which encodes both texts together. A third kind, `adapter`, is a
bi-encoder of which only small bottlenecks and the head are trained, so that a metric is a file of
two megabytes; scores of other metrics may be features of the head. With `projection` nothing of the
encoder is trained: the head learns to change its token vectors and to weight tokens.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias

import numpy as np

from evenmatch.data.cards import MetricCard, write_card
from evenmatch.data.ratings.reading import RatingsLike, as_rated_sets, join_set_names
from evenmatch.errors import InputError, UnknownNameError
from evenmatch.metrics.fitted import FittedMetric, head_metadata, save_projections
from evenmatch.models.adapters import Adapter, find_adapter, load_adapter, save_adapter
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.models.checkpoints import count_layers
from evenmatch.protocols import Metric
from evenmatch.registry import spec
from evenmatch.registry.parts import check_arguments, check_at_least
from evenmatch.scoring.ensembles import Blend
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import (
    FOLDER_PLACEHOLDER,
    as_metric,
    read_metric,
    score_metrics,
    write_metric,
)
from evenmatch.training.checkpoints import CheckpointFile, check_run_folder, content_digest
from evenmatch.training.loop import FitSettings
from evenmatch.training.metrics.bi_encoder import (
    AdapterStart,
    train_adapter_head,
    train_bi_encoder,
)
from evenmatch.training.metrics.cross_encoder import train_cross_encoder
from evenmatch.training.metrics.examples import (
    TrainingExamples,
    evaluate_held_out,
    make_training_examples,
    rated_pairs,
    split_ratings,
    standardise_ratings,
)
from evenmatch.training.metrics.projection import train_projection
from evenmatch.types import Run

FitArchitecture: TypeAlias = Literal["towers", "cross", "adapter", "projection"]

_ARCHITECTURES = {
    "towers": "bi-encoder, each text encoded by itself",
    "cross": "cross-encoder, both texts encoded together",
    "adapter": "bi-encoder with an adapter",
    "projection": "projections of the token vectors of a pretrained encoder",
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
    parts: Sequence[str | Metric] = (),
    start: str | PathLike[str] = "",
    segment_share: float = 1.0,
    ranking: float = 0.0,
    most: int = 0,
    **run: Any,
) -> MetricCard:
    """Train a metric on ratings, save it in the folder `out` and evaluate it on held-out ratings.

    `data` and `test` are anything that `read_ratings` takes or returns; without `test`, the share
    `hold_out` of the segments is held out. `kind` is 'towers' for a bi-encoder, which encodes each
    text by itself, or 'cross' for a cross-encoder, which encodes both texts together. The
    encoder's embeddings and first `frozen` blocks are not trained. The same call resumes
    interrupted training from the checkpoint in `out`. `run` is as in `score`.

    The kind 'adapter' trains bottlenecks inside the other blocks instead of the blocks, and
    'projection' a change of the token vectors at the layer that is best for words and two below it.
    Their ratings are standardised: `segment_share` is the share of the differences between segments
    that is kept where a segment has several rated outputs. `most` is the largest number of outputs
    trained on, at random; 0 is all. For 'adapter', `parts` are metrics whose scores are features of
    the head, so that the result is a blend, and `start` is a folder of the same kind to continue
    from, with its parts. For 'projection', `ranking` is the weight of a loss on the order of the
    outputs that have the same reference, and error counts (ratings none of which is above 0) are
    replaced by minus their roots.
    """
    folder, run_settings = check_run_folder(out), make_run(**run)
    if kind not in _ARCHITECTURES:
        known = ", ".join(_ARCHITECTURES)
        raise UnknownNameError(f"no kind of metric is called {kind!r}; known: {known}")
    sets, tests = as_rated_sets(data), as_rated_sets(test or ())
    if test is None:
        sets, tests = split_ratings(sets, hold_out, settings.seed)
    small = kind in ("adapter", "projection")
    check_at_least(0, most=most, ranking=ranking)
    if not small and (segment_share != 1.0 or most):
        raise InputError("segment_share and most are settings of kind='adapter' and 'projection'")
    if kind != "adapter" and (parts or start):
        raise InputError("parts and start are settings of kind='adapter'")
    if kind != "projection" and ranking:
        raise InputError("ranking is a setting of kind='projection'")
    given = sets
    if small:
        given = standardise_ratings(sets, segment_share, roots=kind == "projection")
    examples = make_training_examples(*rated_pairs(given))
    if 0 < most < len(examples):
        examples = examples.sample(most, settings.seed)
    backbone = PretrainedBackbone(model)
    source = backbone.checkpoint()
    recipe = {
        "trainer": f"fit {kind}",
        "model": source.digest,
        "frozen": frozen,
        "settings": asdict(settings),
        "examples": content_digest(examples),
    }
    if small:
        recipe |= {"ranking": ranking, "parts": [str(part) for part in parts], "start": str(start)}
    checkpoint = CheckpointFile(folder, recipe)
    began = time.monotonic()
    training = (examples, settings, run_settings, checkpoint)
    if kind == "cross":
        train_cross_encoder(source, *training, frozen=frozen)
    else:
        last = count_layers(source)
        # Layers two thirds up represent word meaning best; used only if that layer is trained.
        middle = round(2 * last / 3)
        layers = (middle, last) if frozen < middle < last else (last,)
    if kind == "adapter":
        _fit_adapter(backbone, *training, parts=parts, start=start, frozen=frozen, layers=layers)
    elif kind == "towers":
        train_bi_encoder(backbone, *training, frozen=frozen, height=last, layers=layers)
    elif kind == "projection":
        pair = (max(1, middle - 2), middle)
        head = train_projection(backbone, *training, layers=pair, ranking=ranking)
        save_projections(head, folder)
        write_metric(folder, f"fitted(model={backbone.model!r}, adapter={FOLDER_PLACEHOLDER})")
    seconds = time.monotonic() - began
    metric: Metric = read_metric(str(folder))
    agreement = evaluate_held_out(metric, tests, run_settings, seed=settings.seed)
    facts = {
        "trained on": f"{join_set_names(sets)} ({len(examples)} rated outputs)",
        "encoder": f"{source.label}, {'all' if kind == 'projection' else frozen} blocks frozen",
        "kind": f"{kind}: {_ARCHITECTURES[kind]}",
        "settings": ", ".join(f"{k} {v:g}" for k, v in asdict(settings).items()),
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


def _fit_adapter(
    backbone: PretrainedBackbone,
    examples: TrainingExamples,
    settings: FitSettings,
    run: Run,
    checkpoint: CheckpointFile,
    *,
    parts: Sequence[str | Metric],
    start: str | PathLike[str],
    frozen: int,
    layers: tuple[int, ...],
) -> None:
    """Train an adapter, its head and the weights of `parts`; save them as a metric."""
    metrics, begin = [as_metric(part) for part in parts], AdapterStart()
    if start:
        metrics, begin = _read_start(fspath(start), backbone.model)
        layers = begin.layers
    scores = np.zeros((len(examples), 0))
    if metrics:
        found = score_metrics(metrics, examples.pairs(), run)
        scores = np.array([each.values for each in found]).T
    adapter, head, weights = train_adapter_head(
        backbone,
        examples,
        settings,
        run,
        checkpoint,
        start=begin,
        frozen=frozen,
        layers=layers,
        scores=scores,
    )
    save_adapter(adapter, checkpoint.folder, head_metadata(head))
    written = f"fitted(model={backbone.model!r}, adapter={FOLDER_PLACEHOLDER})"
    if metrics:
        specs = ", ".join([written, *map(spec, metrics)])
        numbers = [1.0, *(float(f"{weight:.6g}") for weight in weights)]
        written = f"blend(parts=[{specs}], weights={numbers})"
    write_metric(checkpoint.folder, written)


def _read_start(folder: str, model: str) -> tuple[list[Metric], AdapterStart]:
    """Read a metric that `_fit_adapter` saved: its other parts, and what training begins with."""
    metric = read_metric(folder)
    blend = metric if isinstance(metric, Blend) else Blend((metric,), (1.0,))
    first = blend.parts[0]
    if not isinstance(first, FittedMetric) or not first.adapter or first.model != model:
        raise InputError(
            f"training cannot continue from {folder}; give a folder that "
            f"fit(kind='adapter', model={model!r}) wrote"
        )
    head, loaded = first.head(), load_adapter(find_adapter(first.adapter))
    copied = Adapter({name: weight.clone() for name, weight in loaded.weights.items()})
    weights = np.concatenate([head.weights, blend.weights[1:]])
    return list(blend.parts[1:]), AdapterStart(copied, weights, head.bias, layers=head.layers)
