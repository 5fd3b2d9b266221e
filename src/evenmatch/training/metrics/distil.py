"""distil: train a small, fast metric to imitate a larger one.

A teacher that aligns transformer vectors gets a student with a shallower encoder, trained on the
teacher's similarity matrices. Any other teacher gets a bi-encoder trained on its scores. Both are
then compared on held-out pairs, for agreement and for speed.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
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
    HiddenStateMemmap,
    TrainableBiEncoder,
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
    train: Callable[..., None] = _imitate_scores
    backbone = PretrainedBackbone(model)
    if isinstance(vectors, Transformer):
        train, backbone = _imitate_similarities, vectors.backbone
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
    train(teacher_metric, pairs, backbone, blocks, settings, run_settings, checkpoint)
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
        "lesson": ", ".join(f"{k} {v:g}" for k, v in asdict(settings).items()),
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


def _imitate_scores(
    teacher: Metric,
    pairs: Sequence[Pair],
    backbone: PretrainedBackbone,
    blocks: int,
    settings: FitSettings,
    run: Run,
    checkpoint: CheckpointFile,
) -> None:
    """Train a bi-encoder on the scores of the teacher."""
    single = [Pair(pair.candidate, pair.references[:1]) for pair in pairs]
    scores = [score.value for score in score_metrics([teacher], single, run)[0].segments]
    train_bi_encoder(
        backbone,
        make_training_examples(single, scores),
        settings,
        run,
        checkpoint,
        frozen=0,
        height=blocks,
        layers=(blocks,),
        higher_is_better=teacher.higher_is_better,
    )


def _imitate_similarities(
    teacher: AlignMetric,
    pairs: Sequence[Pair],
    backbone: PretrainedBackbone,
    blocks: int,
    settings: FitSettings,
    run: Run,
    checkpoint: CheckpointFile,
) -> None:
    """Train a shallower encoder on the similarity matrices of the teacher."""
    encoder = teacher.vectors
    assert isinstance(encoder, Transformer)
    student = load_partly_frozen(backbone.checkpoint(), 0, run.device, blocks)
    # The targets are not used: the loss compares similarity matrices, not scores.
    examples = make_training_examples(pairs, range(len(pairs)))
    bi_encoder = make_bi_encoder(student, backbone, examples.texts, run)
    states = store_teacher_states(encoder, examples.texts, bi_encoder, run)
    train_student(bi_encoder, states, examples, settings, run, checkpoint)
    save_encoder(student, backbone.checkpoint(), checkpoint.folder)
    vectors = dataclasses.replace(encoder, model=FOLDER_PLACEHOLDER, layer=blocks)
    written = spec(dataclasses.replace(teacher, vectors=vectors))
    write_metric(checkpoint.folder, written.replace(repr(FOLDER_PLACEHOLDER), FOLDER_PLACEHOLDER))


def store_teacher_states(
    encoder: Transformer, texts: Sequence[str], student: TrainableBiEncoder, run: Run
) -> HiddenStateMemmap:
    """Store the hidden states of every text at the teacher's layer.

    They are as wide as those of the student, whose blocks are the teacher's lowest.
    """
    layer, backbone = encoder.layer_index(), encoder.backbone.open(CallContext(run))
    store = HiddenStateMemmap(student.lengths, student.encoder.dim)
    chunks = (backbone.encode(chunk, [layer]) for chunk in iter_chunks(texts))
    for index, states in enumerate(chain.from_iterable(chunks)):
        store.write(index, states.layers[layer])
    return store


def train_student(
    bi_encoder: TrainableBiEncoder,
    teacher: HiddenStateMemmap,
    examples: TrainingExamples,
    settings: FitSettings,
    run: Run,
    checkpoint: CheckpointFile,
) -> None:
    """Train the encoder in place to give the similarity matrices that the teacher gives.

    The loss is the squared difference of the similarities of every candidate token with every
    reference token, so any alignment solver gets the same input from student and teacher.
    """
    import torch

    height = bi_encoder.encoder.height

    def loss(batch: Array) -> Any:
        (x, x_mask), (y, y_mask) = bi_encoder.encode_pairs(examples, batch, [height])
        states, masks = (x[height], y[height]), (x_mask, y_mask)
        targets = [
            _pad_teacher_states(teacher, texts[batch], states[0])
            for texts in (examples.candidates, examples.references)
        ]
        cells = masks[0][:, :, None] & masks[1][:, None, :]
        difference = (_cosine_matrix(*states) - _cosine_matrix(*targets)) ** 2
        similarity_loss = (difference * cells).sum() / cells.sum()
        state_losses = [
            (((a - b) ** 2).mean(-1) * mask).sum() / mask.sum()
            for a, b, mask in zip(states, targets, masks, strict=True)
        ]
        return similarity_loss + _STATE_LOSS_WEIGHT * torch.stack(state_losses).mean()

    groups = [{"params": bi_encoder.encoder.parameters(), "lr": settings.rate}]
    lengths = bi_encoder.pair_lengths(examples).tolist()
    fit_weights(groups, lengths, settings, loss, checkpoint=checkpoint, progress=run.progress)


def _pad_teacher_states(teacher: HiddenStateMemmap, texts: Array, states: Any) -> Any:
    """Return the teacher's hidden states, padded to the shape of the student's."""
    import torch

    found, _ = teacher.read_padded(texts)
    padded = torch.zeros(states.shape)
    padded[:, : found.shape[1]] = torch.from_numpy(found)
    return padded.to(states.device)


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
