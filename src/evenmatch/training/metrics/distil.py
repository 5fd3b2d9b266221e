"""distil: train a small, fast metric to imitate a larger one.

A teacher that aligns transformer vectors gets a student with a shallower encoder, trained on the
teacher's similarity matrices. Any other teacher gets a bi-encoder trained on its scores. Both are
then compared on held-out pairs, for agreement and for speed.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import numpy as np

from evenmatch.api import metric_name
from evenmatch.data.cards import MetricCard, write_card
from evenmatch.data.tables import TextTable
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.models.tokenizer import iter_chunks
from evenmatch.protocols import Metric
from evenmatch.registry import CallContext, spec
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
    imitation = compare_to_teacher(student, teacher_metric, tests, run_settings, seed=settings.seed)
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
        {"Agreement with the teacher on held-out texts": imitation.table()},
        {"folder": str(folder), "signature": student.signature, **facts, **imitation.document()},
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
    states = store_teacher_states(encoder, examples.texts, bi_encoder.lengths, run)
    train_student(bi_encoder, states, examples, settings, run, checkpoint)
    save_encoder(student, backbone.checkpoint(), checkpoint.folder)
    vectors = dataclasses.replace(encoder, model=FOLDER_PLACEHOLDER, layer=blocks)
    written = spec(dataclasses.replace(teacher, vectors=vectors))
    write_metric(checkpoint.folder, written.replace(repr(FOLDER_PLACEHOLDER), FOLDER_PLACEHOLDER))


def store_teacher_states(
    encoder: Transformer, texts: Sequence[str], lengths: Array, run: Run
) -> HiddenStateMemmap:
    """Store the hidden states of every text at the teacher's layer."""
    layer, backbone = encoder.layer_index(), encoder.backbone.open(CallContext(run))
    store: HiddenStateMemmap | None = None
    index = 0
    for chunk in iter_chunks(texts):
        for states in backbone.encode(chunk, [layer]):
            vectors = states.layers[layer]
            store = store or HiddenStateMemmap(lengths.tolist(), vectors.shape[1])
            store.write(index, vectors)
            index += 1
    assert store is not None
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
        both = examples.candidates[batch], examples.references[batch]
        (x, x_mask), (y, y_mask) = bi_encoder.encode_groups(*both, layers=[height])
        states, masks = ((x[height], y[height]), (x_mask, y_mask))
        targets = [
            _pad_teacher_states(teacher, texts, of, bi_encoder.device)
            for texts, of in zip(both, states, strict=True)
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


def _pad_teacher_states(teacher: HiddenStateMemmap, texts: Array, states: Any, device: str) -> Any:
    """Return the teacher's hidden states, padded to the shape of the student's."""
    import torch

    found, _ = teacher.read_padded(texts)
    padded = torch.zeros(states.shape)
    padded[:, : found.shape[1]] = torch.from_numpy(found)
    return padded.to(device)


def _cosine_matrix(x: Any, y: Any) -> Any:
    import torch

    x, y = (torch.nn.functional.normalize(t, dim=-1) for t in (x, y))
    return x @ y.transpose(-1, -2)


def compare_to_teacher(
    student: Metric, teacher: Metric, tests: Mapping[str, Sequence[Pair]], run: Run, *, seed: int
) -> Imitation:
    """Score each set of pairs with both metrics, and correlate and time them."""
    rows, spent = [], [0.0, 0.0]
    for name, pairs in tests.items():
        sides = []
        for number, metric in enumerate((teacher, student)):
            start = time.perf_counter()
            scores = score_metrics([metric], pairs, run)[0]
            spent[number] += time.perf_counter() - start
            sides.append(np.array([[score.value for score in scores.segments]]))
        rows.append(correlate_subset(name, "", Panel(sides[1][None], sides[0]), len(pairs), seed))
    return Imitation(HeldOutAgreement(tuple(rows)), *spent)


@dataclass(frozen=True, slots=True)
class Imitation:
    """Correlations of the student with its teacher, and the time both took on the same pairs."""

    agreement: HeldOutAgreement
    teacher_seconds: float
    student_seconds: float

    def table(self) -> TextTable:
        """Return a table with one row per test set."""
        return self.agreement.table()

    @property
    def speedup(self) -> float:
        """How many times faster the student scores, alignment included."""
        return self.teacher_seconds / self.student_seconds

    def document(self) -> dict[str, Any]:
        """Return correlations and times as JSON-compatible values."""
        times = {"teacher_seconds": self.teacher_seconds, "student_seconds": self.student_seconds}
        return {**self.agreement.document(), **times, "faster": self.speedup}
