"""Training through the metric: a projection learns to tell aligned pairs from in-batch negatives.

LiSAScore's authors leave the gradient of their approximations to future work. Here a linear map on
a frozen encoder's vectors is trained with a contrastive loss on the alignment score itself.

Every way to train through the metric, each a cell, with the curves of its losses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from evenmatch.alignment.assignment import Greedy, Lsa
from evenmatch.alignment.differentiable import FixedAlignment, Gumbel, StraightThrough, TensorSolver
from evenmatch.data.tables import TextTable
from evenmatch.errors import InputError
from evenmatch.protocols import Encoder
from evenmatch.registry import spec
from evenmatch.reports.plots import line_plot_svg
from evenmatch.reports.study_page import StudyReport
from evenmatch.scoring.reducers import precision_recall
from evenmatch.studies.experiment import ResultStore
from evenmatch.studies.sentences import SentencePairs
from evenmatch.types import Array
from evenmatch.units.text import Pieces

VectorPair: TypeAlias = tuple[
    Array, Array
]  # the vectors of a candidate's units and of its reference's


# What aligns in a given step; the one that draws is given other noise every time.
METHODS: Mapping[str, Callable[[int], TensorSolver]] = {
    "straight_through": lambda step: StraightThrough(),
    "gumbel": lambda step: Gumbel(seed=step),
    "held_lsa": lambda step: FixedAlignment(Lsa()),
    "held_greedy": lambda step: FixedAlignment(Greedy()),
}


_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class GradientSettings:
    """How long and how fast to train; `sharpness` multiplies scores before the loss's softmax."""

    method: str = "straight_through"
    steps: int = 200
    batch: int = 16
    rate: float = 3e-4
    sharpness: float = 10.0
    look_every: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"there is no method {self.method!r}; known: {', '.join(METHODS)}")
        if self.batch < 2:
            raise InputError(f"a batch needs 2 pairs to have a negative, got {self.batch}")


@dataclass(frozen=True, slots=True)
class HeldOutEvaluation:
    """The loss on pairs held out, and the share of them told from all their negatives."""

    step: int
    loss: float
    right: float


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """What training did: the loss of every step, and looks at the pairs held out."""

    lesson: GradientSettings
    losses: tuple[float, ...]
    held_out: tuple[HeldOutEvaluation, ...]


def embed_pairs(
    candidates: Sequence[str], references: Sequence[str], encoder: Encoder
) -> list[VectorPair]:
    """The vectors of each pair's units; pairs with an empty side are left out."""
    cut = Pieces()
    sides = [
        [e.vectors for e in encoder([cut(t) for t in side])] for side in (candidates, references)
    ]
    return [(x, y) for x, y in zip(*sides, strict=True) if len(x) and len(y)]


def train_projection(
    pairs: Sequence[VectorPair], held_out: Sequence[VectorPair], lesson: GradientSettings
) -> LearningCurve:
    """Train a linear map on `pairs`, from the identity on, and look at `held_out` meanwhile."""
    import torch

    for name, some in (("train on", pairs), ("hold out", held_out)):
        if len(some) < lesson.batch:
            raise InputError(
                f"{len(some)} pairs to {name} are less than a batch of {lesson.batch}; give more"
            )
    projection = torch.eye(pairs[0][0].shape[1]).requires_grad_()
    optimizer = torch.optim.Adam([projection], lr=lesson.rate)
    losses: list[float] = []
    looks = [_evaluate(held_out, projection, lesson, 0)]
    for step, batch in enumerate(_batches(pairs, lesson), 1):
        scores = score_all_pairs(batch, projection, METHODS[lesson.method](step))
        loss = contrastive_loss(scores * lesson.sharpness)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % lesson.look_every == 0 or step == lesson.steps:
            looks.append(_evaluate(held_out, projection, lesson, step))
    return LearningCurve(lesson, tuple(losses), tuple(looks))


def score_all_pairs(batch: Sequence[VectorPair], projection: Any, solver: TensorSolver) -> Any:
    """F of every candidate against every reference of a batch: (candidates, references)."""
    (x, x_there), (y, y_there) = (
        _project_and_pad([s[k] for s in batch], projection) for k in (0, 1)
    )
    similarity = x[:, None] @ y[None, :].transpose(-1, -2)
    present = x_there[:, None, :, None] & y_there[None, :, None, :]
    alignment = solver(similarity, present)
    weights = x_there[:, None].to(x.dtype), y_there[None, :].to(x.dtype)
    precision, recall = precision_recall(similarity, alignment, *weights)
    return 2 * precision * recall / (precision + recall).clamp(min=_EPSILON)


def contrastive_loss(scores: Any) -> Any:
    """How badly the diagonal stands out from its row and its column (InfoNCE, both ways)."""
    import torch

    own = torch.arange(len(scores), device=scores.device)
    loss = torch.nn.functional.cross_entropy
    return (loss(scores, own) + loss(scores.T, own)) / 2


def _project_and_pad(side: Sequence[Array], projection: Any) -> tuple[Any, Any]:
    """Projected vectors of unit length, and which of them are there."""
    import torch

    vectors = [torch.as_tensor(np.asarray(v, dtype=np.float32)) for v in side]
    stacked = torch.nn.utils.rnn.pad_sequence(vectors, batch_first=True)
    lengths = torch.tensor([len(v) for v in vectors])
    there = torch.arange(stacked.shape[1]) < lengths[:, None]
    return torch.nn.functional.normalize(stacked @ projection, dim=-1), there


def _batches(pairs: Sequence[VectorPair], lesson: GradientSettings) -> Iterator[list[VectorPair]]:
    """As many batches as there are steps, each pair once before any comes again."""
    random = np.random.default_rng(lesson.seed)
    order: list[int] = []
    for _ in range(lesson.steps):
        if len(order) < lesson.batch:
            order = random.permutation(len(pairs)).tolist()
        yield [pairs[order.pop()] for _ in range(lesson.batch)]


def _evaluate(
    held_out: Sequence[VectorPair], projection: Any, lesson: GradientSettings, step: int
) -> HeldOutEvaluation:
    """Without noise: what was learnt by drawing is judged by the method it drew from."""
    import torch

    method = "straight_through" if lesson.method == "gumbel" else lesson.method
    losses, right = [], []
    with torch.no_grad():
        for start in range(0, len(held_out) - lesson.batch + 1, lesson.batch):
            batch = held_out[start : start + lesson.batch]
            scores = score_all_pairs(batch, projection, METHODS[method](0))
            losses.append(contrastive_loss(scores * lesson.sharpness).item())
            right.append((scores.argmax(1) == torch.arange(len(scores))).double().mean().item())
    return HeldOutEvaluation(step, float(np.mean(losses)), float(np.mean(right)))


def train_projections(
    sentences: SentencePairs,
    encoder: Encoder,
    lessons: Sequence[GradientSettings],
    folder: str | Path,
    *,
    told: Callable[[str], None] | None = None,
) -> list[LearningCurve]:
    """Take each lesson that `folder` does not hold yet; a quarter of the pairs is held out."""
    if not lessons:
        raise InputError("there are no lessons to take; give at least one method")
    cells = ResultStore(Path(folder))
    recipe = {"texts": sentences.digest, "encoder": spec(encoder)}
    pairs = None
    found = []
    for lesson in lessons:
        own = {**recipe, "lesson": asdict(lesson)}
        kept = cells.load(lesson.method, own)
        if kept is None:
            pairs = pairs or embed_pairs(sentences.candidates, sentences.others, encoder)
            held_out = len(pairs) // 4
            kept = asdict(train_projection(pairs[held_out:], pairs[:held_out], lesson))
            cells.save(lesson.method, own, kept)
        looks = tuple(HeldOutEvaluation(**look) for look in kept["held_out"])
        found.append(LearningCurve(lesson, tuple(kept["losses"]), looks))
        if told:
            told(gradient_findings(found[-1:])[0])
    return found


def gradient_report(found: Sequence[LearningCurve], sentences: SentencePairs) -> StudyReport:
    """The losses on pairs held out, as a table and as curves."""
    lesson = found[0].lesson
    notes = (
        f"{len(sentences)} pairs of {sentences.name}, a quarter of them held out; batches of "
        f"{lesson.batch}, every other reference of a batch a negative",
        f"a linear map over the frozen encoder, from the identity on: Adam, rate {lesson.rate:g}, "
        f"{lesson.steps} steps, scores × {lesson.sharpness:g} before the softmax, seed "
        f"{lesson.seed}",
        "held_lsa, held_greedy: the plan is held constant; straight_through: hard forwards, soft "
        "backwards; gumbel: with noise",
    )
    held_out = {
        c.lesson.method: [(float(look.step), look.loss) for look in c.held_out] for c in found
    }
    figure = line_plot_svg("Loss on pairs held out", ("step", "contrastive loss"), held_out)
    table = gradient_table(found)
    title = "Training through an alignment metric"
    return StudyReport(
        title, gradient_findings(found), {"losses": table}, {"losses": figure}, notes
    )


def gradient_table(found: Sequence[LearningCurve]) -> TextTable:
    """A line per method: loss and share told right on pairs held out, before and after."""
    header = ["method", "loss before", "loss after", "right before", "right after"]
    lines = []
    for curve in found:
        first, last = curve.held_out[0], curve.held_out[-1]
        numbers = (first.loss, last.loss, first.right, last.right)
        lines.append([curve.lesson.method, *(f"{value:.4f}" for value in numbers)])
    return [header, *lines]


def gradient_findings(found: Sequence[LearningCurve]) -> list[str]:
    """What each method did to the loss on pairs held out."""
    return [
        f"{c.lesson.method}: the loss on pairs held out goes from {c.held_out[0].loss:.4f} to "
        f"{c.held_out[-1].loss:.4f} ({c.held_out[-1].loss / c.held_out[0].loss - 1:+.1%})"
        for c in found
    ]
