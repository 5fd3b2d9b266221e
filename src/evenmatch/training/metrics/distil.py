"""distil: train a small, fast metric to imitate a larger one.

A teacher that aligns transformer vectors gets a student with a shallower encoder, trained on the
teacher's similarity matrices. Any other teacher gets a bi-encoder trained on its scores. Both are
then compared on held-out pairs, for agreement and for speed.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np

from evenmatch.api import metric_name
from evenmatch.data.cards import MetricCard, write_card
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.models.tokenizer import iter_chunks
from evenmatch.protocols import Metric
from evenmatch.registry import CallContext, spec
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import (
    FOLDER_PLACEHOLDER,
    AlignMetric,
    as_metric,
    read_metric,
    score_metrics,
    write_metric,
)
from evenmatch.stats.panel import Panel
from evenmatch.training.checkpoints import CheckpointFile, check_run_folder, content_digest
from evenmatch.training.loop import FitSettings, fit_weights
from evenmatch.training.metrics.bi_encoder import (
    TrainableBiEncoder,
    allocate_states,
    load_partly_frozen,
    make_bi_encoder,
    save_encoder,
    train_bi_encoder,
)
from evenmatch.training.metrics.examples import (
    HeldOutAgreement,
    PairSource,
    TrainingExamples,
    correlate_subset,
    make_training_examples,
    split_train_test,
)
from evenmatch.types import Array, Pair, Run
from evenmatch.vectors.transformer import Transformer

DISTIL_SETTINGS = FitSettings(epochs=2, rate=3e-4)

# Weight of the loss on the vectors themselves: similarities alone leave length and rotation free.
_STATE_LOSS_WEIGHT = 0.1


@check_arguments
def distil(
    teacher: str | Metric,
    data: PairSource,
    out: str | PathLike[str],
    *,
    test: Sequence[PairSource] = (),
    model: str = "minilm",
    blocks: int = 2,
    settings: FitSettings = DISTIL_SETTINGS,
    **run: Any,
) -> MetricCard:
    """Train a student of `blocks` blocks to imitate `teacher`, save it in `out`, and compare both.

    A teacher that aligns transformer vectors gets a student that differs only in its encoder; any
    other teacher gets a bi-encoder over the first blocks of `model` that predicts its scores.
    `data`, and each item of `test`, is a list of pairs, a file of pairs, or the name of rated data,
    whose ratings are not used. Without `test`, every tenth pair is held out. The same call resumes
    interrupted training from the checkpoint in `out`. `run` is as in `score`.
    """
    folder, run_settings = check_run_folder(out), make_run(**run)
    teacher_metric = as_metric(teacher)
    pairs, tests = split_train_test(data, test)
    vectors = teacher_metric.vectors if isinstance(teacher_metric, AlignMetric) else None
    backbone = vectors.backbone if isinstance(vectors, Transformer) else PretrainedBackbone(model)
    recipe = {
        "trainer": "distil",
        "teacher": teacher_metric.signature,
        "model": backbone.checkpoint().digest,
        "blocks": blocks,
        "settings": asdict(settings),
        "pairs": content_digest([(pair.candidate, pair.references[0]) for pair in pairs]),
    }
    checkpoint = CheckpointFile(folder, recipe)
    start = time.monotonic()
    training = (settings, run_settings, checkpoint)
    if isinstance(teacher_metric, AlignMetric) and isinstance(vectors, Transformer):
        _imitate_similarities(teacher_metric, vectors, pairs, blocks, *training)
    else:
        single = [Pair(pair.candidate, pair.references[:1]) for pair in pairs]
        (scored,) = score_metrics([teacher_metric], single, run_settings)
        train_bi_encoder(
            backbone,
            make_training_examples(single, [score.value for score in scored.segments]),
            *training,
            frozen=0,
            height=blocks,
            layers=(blocks,),
            higher_is_better=teacher_metric.higher_is_better,
        )
    seconds = time.monotonic() - start
    student: Metric = read_metric(str(folder))
    agreement, times = compare_to_teacher(
        student, teacher_metric, tests, run_settings, seed=settings.seed
    )
    facts = {
        "teacher": metric_name(teacher),
        "teacher's signature": teacher_metric.signature,
        "trained on": f"{len(pairs)} pairs" + (f" of {data}" if isinstance(data, str) else ""),
        "encoder": f"{backbone.checkpoint().label}, its first {blocks} blocks",
        "settings": ", ".join(f"{k} {v:g}" for k, v in asdict(settings).items()),
        "time": f"{seconds:.0f} s",
    }
    card = MetricCard(
        folder,
        f"A small metric that imitates {metric_name(teacher)}",
        student.signature,
        facts,
        {"Agreement with the teacher on held-out texts": agreement.table()},
        {
            "folder": str(folder),
            "signature": student.signature,
            **facts,
            **agreement.document(),
            **times,
            "faster": times["teacher_seconds"] / times["student_seconds"],
        },
    )
    write_card(card)
    checkpoint.remove()
    return card


def _imitate_similarities(
    teacher: AlignMetric,
    encoder: Transformer,
    pairs: Sequence[Pair],
    blocks: int,
    settings: FitSettings,
    run: Run,
    checkpoint: CheckpointFile,
) -> None:
    """Train a shallower encoder on the similarity matrices of the teacher.

    The hidden states of student and teacher are equally wide: the student's blocks are the
    teacher's lowest.
    """
    backbone = encoder.backbone
    student = load_partly_frozen(backbone.checkpoint(), 0, run.device, blocks)
    # The targets are not used: the loss compares similarity matrices, not scores.
    examples = make_training_examples(pairs, range(len(pairs)))
    bi_encoder = make_bi_encoder(student, backbone, examples.texts, run)
    layer, opened = encoder.layer_index(), backbone.open(CallContext(run))
    teacher_states = allocate_states(bi_encoder.lengths, student.dim)
    chunks = (opened.encode(chunk, [layer]) for chunk in iter_chunks(examples.texts))
    for index, states in enumerate(chain.from_iterable(chunks)):
        teacher_states[index][:] = states.layers[layer]
    loss = partial(_similarity_loss, bi_encoder, teacher_states, examples)
    groups = [{"params": student.parameters(), "lr": settings.rate}]
    lengths = bi_encoder.pair_lengths(examples).tolist()
    fit_weights(groups, lengths, settings, loss, checkpoint=checkpoint, progress=run.progress)
    save_encoder(student, backbone.checkpoint(), checkpoint.folder)
    vectors = dataclasses.replace(encoder, model=FOLDER_PLACEHOLDER, layer=blocks)
    written = spec(dataclasses.replace(teacher, vectors=vectors))
    write_metric(checkpoint.folder, written.replace(repr(FOLDER_PLACEHOLDER), FOLDER_PLACEHOLDER))


def _similarity_loss(
    bi_encoder: TrainableBiEncoder,
    teacher_states: list[Array],
    examples: TrainingExamples,
    batch: Array,
) -> Any:
    """Compare the similarities of every candidate token with every reference token.

    So any alignment solver gets the same input from student and teacher.
    """
    import torch

    height = bi_encoder.encoder.height
    (x, x_mask), (y, y_mask) = bi_encoder.encode_pairs(examples, batch, [height])
    states, masks = (x[height], y[height]), (x_mask, y_mask)
    targets = bi_encoder.pad_states(teacher_states, examples, batch).split(len(batch))
    cells = x_mask[:, :, None] & y_mask[:, None, :]
    difference = (_cosine_matrix(*states) - _cosine_matrix(*targets)) ** 2
    similarity_loss = (difference * cells).sum() / cells.sum()
    state_losses = [
        (((a - b) ** 2).mean(-1) * mask).sum() / mask.sum()
        for a, b, mask in zip(states, targets, masks, strict=True)
    ]
    return similarity_loss + _STATE_LOSS_WEIGHT * torch.stack(state_losses).mean()


def _cosine_matrix(x: Any, y: Any) -> Any:
    import torch

    x, y = (torch.nn.functional.normalize(t, dim=-1) for t in (x, y))
    return x @ y.transpose(-1, -2)


def compare_to_teacher(
    student: Metric, teacher: Metric, tests: Mapping[str, Sequence[Pair]], run: Run, *, seed: int
) -> tuple[HeldOutAgreement, dict[str, float]]:
    """Score each set of pairs with both metrics; return correlations, and the seconds of both."""
    rows, seconds = [], {"teacher_seconds": 0.0, "student_seconds": 0.0}
    for name, pairs in tests.items():
        sides = []
        for key, metric in zip(seconds, (teacher, student), strict=True):
            start = time.perf_counter()
            scores = score_metrics([metric], pairs, run)[0]
            seconds[key] += time.perf_counter() - start
            sides.append(np.array([[score.value for score in scores.segments]]))
        rows.append(correlate_subset(name, "", Panel(sides[1][None], sides[0]), len(pairs), seed))
    return HeldOutAgreement(tuple(rows)), seconds
