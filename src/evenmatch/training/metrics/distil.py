"""distil: a small metric trained to say what a larger one says.

A shallow encoder trained to see texts as a deeper one does.

How closely a student says what its teacher says, and how much sooner.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.api import metric_name
from evenmatch.data.cards import MetricCard, check_output_folder, write_card
from evenmatch.data.tables import TextTable
from evenmatch.metrics.fitted import save_bi_encoder_head
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.models.packing import iter_chunks
from evenmatch.protocols import Metric
from evenmatch.registry import spec
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import AlignMetric, as_metric, score_metrics
from evenmatch.scoring.saved import FOLDER_PLACEHOLDER, read_metric, write_metric
from evenmatch.stats.panel import Panel
from evenmatch.training.loop import FitSettings, run_training_loop
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


def distil(
    teacher: str | Metric,
    data: PairSource,
    out: str | PathLike[str],
    *,
    test: Sequence[PairSource] = (),
    model: str = "minilm",
    blocks: int = 2,
    lesson: FitSettings = DISTIL_SETTINGS,
    **run: Any,
) -> MetricCard:
    """Train a student of `blocks` blocks to imitate `teacher`, save it in `out`, and compare them.

    A teacher that aligns vectors of a transformer gets a student that differs in its encoder only;
    any other gets two towers over the first blocks of `model` that predict its scores. `data`, and
    each of `test`, is pairs, a file of them, or rated data by name, whose ratings are not used.
    Without `test` every tenth pair is set apart for it. `run` is as in `score`.
    """
    folder, how, wanted = check_output_folder(out), make_run(**run), as_metric(teacher)
    pairs, tests = split_train_test(data, test)
    start = time.monotonic()
    if isinstance(wanted, AlignMetric) and isinstance(wanted.vectors, Transformer):
        source = wanted.vectors.model
        _train_align_metric(folder, wanted, pairs, blocks, lesson, how)
    else:
        source = model
        _train_bi_encoder(folder, wanted, pairs, model, blocks, lesson, how)
    seconds = time.monotonic() - start
    student: Metric = read_metric(str(folder))
    judged = compare_to_teacher(student, wanted, tests, how, seed=lesson.seed)
    facts = {
        "teacher": metric_name(teacher),
        "teacher's signature": wanted.signature,
        "trained on": f"{len(pairs)} pairs" + (f" of {data}" if isinstance(data, str) else ""),
        "encoder": f"{PretrainedBackbone(source).checkpoint().label}, its first {blocks} blocks",
        "lesson": ", ".join(f"{k} {v:g}" for k, v in asdict(lesson).items()),
        "time": f"{seconds:.0f} s",
    }
    made = MetricCard(
        folder,
        f"A small metric that imitates {metric_name(teacher)}",
        student.signature,
        facts,
        {"Agreement with the teacher on other texts": judged.table()},
        {"folder": str(folder), "signature": student.signature, **facts, **judged.document()},
    )
    write_card(made)
    return made


def _train_align_metric(
    folder: Path,
    teacher: AlignMetric,
    pairs: Sequence[Pair],
    blocks: int,
    lesson: FitSettings,
    run: Run,
) -> None:
    encoder = teacher.vectors
    assert isinstance(encoder, Transformer)
    body = encoder.backbone
    upper = load_partly_frozen(body.checkpoint(), 0, run.device, blocks)
    examples = make_training_examples(
        pairs, range(len(pairs))
    )  # what they score is not learnt from
    towers = make_bi_encoder(upper, body, examples.texts, run)
    states = store_teacher_states(encoder, examples.texts, towers.lengths, run)
    train_student(towers, states, examples, lesson, run)
    save_encoder(upper, body.checkpoint(), folder)
    vectors = dataclasses.replace(encoder, model=FOLDER_PLACEHOLDER, layer=blocks)
    written = spec(dataclasses.replace(teacher, vectors=vectors))
    write_metric(folder, written.replace(repr(FOLDER_PLACEHOLDER), FOLDER_PLACEHOLDER))


def _train_bi_encoder(
    folder: Path,
    teacher: Metric,
    pairs: Sequence[Pair],
    model: str,
    blocks: int,
    lesson: FitSettings,
    run: Run,
) -> None:
    body = PretrainedBackbone(model)
    single = [Pair(pair.candidate, pair.references[:1]) for pair in pairs]
    scores = [score.value for score in score_metrics([teacher], single, run)[0].segments]
    examples = make_training_examples(single, scores)
    upper = load_partly_frozen(body.checkpoint(), 0, run.device, blocks)
    towers = make_bi_encoder(upper, body, examples.texts, run)
    head = train_bi_encoder(towers, examples, (blocks,), lesson, run)
    save_encoder(upper, body.checkpoint(), folder)
    save_bi_encoder_head(
        dataclasses.replace(head, higher_is_better=teacher.higher_is_better), folder
    )
    write_metric(folder, f"fitted(model={FOLDER_PLACEHOLDER})")


# The vectors themselves count as well, if less: similarities leave their lengths and turn free.
_STATE_LOSS_WEIGHT = 0.1


def store_teacher_states(
    encoder: Transformer, texts: Sequence[str], lengths: Array, run: Run
) -> HiddenStateMemmap:
    """The states of every text at the layer the teacher reads."""
    layer = encoder.layer_index()
    kept: HiddenStateMemmap | None = None
    index = 0
    for some in iter_chunks(texts):
        for states in encoder.backbone.encode(some, [layer], run):
            vectors = states.layers[layer]
            kept = kept or HiddenStateMemmap(lengths.tolist(), vectors.shape[1])
            kept.write(index, vectors)
            index += 1
    assert kept is not None
    return kept


def train_student(
    towers: TrainableBiEncoder,
    teacher: HiddenStateMemmap,
    examples: TrainingExamples,
    lesson: FitSettings,
    run: Run,
) -> None:
    """Train the encoder, in place, to compare two texts' pieces as the teacher does.

    The loss is the squared difference of every similarity of a candidate's piece and a
    reference's, so that whatever solver aligns them sees what it would have seen.
    """
    import torch

    height = towers.encoder.height

    def loss(batch: Array) -> Any:
        both = examples.candidates[batch], examples.references[batch]
        (x, x_there), (y, y_there) = towers.encode_groups(*both, layers=[height])
        states, there = ((x[height], y[height]), (x_there, y_there))
        wanted = [
            _pad_teacher_states(teacher, texts, of, towers.device)
            for texts, of in zip(both, states, strict=True)
        ]
        cells = there[0][:, :, None] & there[1][:, None, :]
        difference = (_cosine_matrix(*states) - _cosine_matrix(*wanted)) ** 2
        matches = (difference * cells).sum() / cells.sum()
        apart = [
            (((a - b) ** 2).mean(-1) * real).sum() / real.sum()
            for a, b, real in zip(states, wanted, there, strict=True)
        ]
        return matches + _STATE_LOSS_WEIGHT * torch.stack(apart).mean()

    groups = [{"params": towers.encoder.parameters(), "lr": lesson.rate}]
    run_training_loop(groups, towers.pair_lengths(examples).tolist(), lesson, loss, run.progress)


def _pad_teacher_states(teacher: HiddenStateMemmap, texts: Array, states: Any, device: str) -> Any:
    """The teacher's states, padded as the student's are."""
    import torch

    found, _ = teacher.read_padded(texts)
    padded = torch.zeros(states.shape)
    padded[:, : found.shape[1]] = torch.from_numpy(found)
    return padded.to(device)


def _cosine_matrix(x: Any, y: Any) -> Any:
    import torch

    x, y = (torch.nn.functional.normalize(t, dim=-1) for t in (x, y))
    return x @ y.transpose(-1, -2)


@dataclass(frozen=True, slots=True)
class Imitation:
    """Correlations with the teacher, and how long both took over the same pairs."""

    agreement: HeldOutAgreement
    teacher_seconds: float
    student_seconds: float

    def table(self) -> TextTable:
        """A line per set of texts."""
        return self.agreement.table()

    @property
    def speedup(self) -> float:
        """How many times as fast the student scores, alignment included."""
        return self.teacher_seconds / self.student_seconds

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        times = {"teacher_seconds": self.teacher_seconds, "student_seconds": self.student_seconds}
        return {**self.agreement.document(), **times, "faster": self.speedup}


def compare_to_teacher(
    student: Metric, teacher: Metric, tests: Mapping[str, Sequence[Pair]], run: Run, *, seed: int
) -> Imitation:
    """Both metrics over each set of pairs, correlated."""
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
