"""Training through the metric: a projection learns to tell aligned pairs from in-batch negatives.

LiSAScore's authors leave the gradient of their approximations to future work. Here a linear map on
a frozen encoder's vectors is trained with a contrastive loss on the alignment score itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from evenmatch.alignment.assign import Greedy, Lsa
from evenmatch.alignment.soft import Gumbel, Held, StraightThrough, TensorSolver
from evenmatch.errors import InputError
from evenmatch.scoring.reduce import precision_recall
from evenmatch.types import Array, Encoder
from evenmatch.units.pieces import Pieces

Sides: TypeAlias = tuple[Array, Array]  # the vectors of a candidate's units and of its reference's

# What aligns in a given step; the one that draws is given other noise every time.
METHODS: Mapping[str, Callable[[int], TensorSolver]] = {
    "straight_through": lambda step: StraightThrough(),
    "gumbel": lambda step: Gumbel(seed=step),
    "held_lsa": lambda step: Held(Lsa()),
    "held_greedy": lambda step: Held(Greedy()),
}
_TINY = 1e-6


@dataclass(frozen=True, slots=True)
class Lesson:
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
class Look:
    """The loss on pairs held out, and the share of them told from all their negatives."""

    step: int
    loss: float
    right: float


@dataclass(frozen=True, slots=True)
class Curve:
    """What training did: the loss of every step, and looks at the pairs held out."""

    lesson: Lesson
    losses: tuple[float, ...]
    held_out: tuple[Look, ...]


def embed(candidates: Sequence[str], references: Sequence[str], encoder: Encoder) -> list[Sides]:
    """The vectors of each pair's units; pairs with an empty side are left out."""
    cut = Pieces()
    sides = [
        [e.vectors for e in encoder([cut(t) for t in side])] for side in (candidates, references)
    ]
    return [(x, y) for x, y in zip(*sides, strict=True) if len(x) and len(y)]


def learn(pairs: Sequence[Sides], held_out: Sequence[Sides], lesson: Lesson) -> Curve:
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
    looks = [_look(held_out, projection, lesson, 0)]
    for step, batch in enumerate(_batches(pairs, lesson), 1):
        scores = score_all(batch, projection, METHODS[lesson.method](step))
        loss = contrastive(scores * lesson.sharpness)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % lesson.look_every == 0 or step == lesson.steps:
            looks.append(_look(held_out, projection, lesson, step))
    return Curve(lesson, tuple(losses), tuple(looks))


def score_all(batch: Sequence[Sides], projection: Any, solver: TensorSolver) -> Any:
    """F of every candidate against every reference of a batch: (candidates, references)."""
    (x, x_there), (y, y_there) = (_padded([s[k] for s in batch], projection) for k in (0, 1))
    similarity = x[:, None] @ y[None, :].transpose(-1, -2)
    present = x_there[:, None, :, None] & y_there[None, :, None, :]
    alignment = solver(similarity, present)
    weights = x_there[:, None].to(x.dtype), y_there[None, :].to(x.dtype)
    precision, recall = precision_recall(similarity, alignment, *weights)
    return 2 * precision * recall / (precision + recall).clamp(min=_TINY)


def contrastive(scores: Any) -> Any:
    """How badly the diagonal stands out from its row and its column (InfoNCE, both ways)."""
    import torch

    own = torch.arange(len(scores), device=scores.device)
    loss = torch.nn.functional.cross_entropy
    return (loss(scores, own) + loss(scores.T, own)) / 2


def _padded(side: Sequence[Array], projection: Any) -> tuple[Any, Any]:
    """Projected vectors of unit length, and which of them are there."""
    import torch

    vectors = [torch.as_tensor(np.asarray(v, dtype=np.float32)) for v in side]
    stacked = torch.nn.utils.rnn.pad_sequence(vectors, batch_first=True)
    lengths = torch.tensor([len(v) for v in vectors])
    there = torch.arange(stacked.shape[1]) < lengths[:, None]
    return torch.nn.functional.normalize(stacked @ projection, dim=-1), there


def _batches(pairs: Sequence[Sides], lesson: Lesson) -> Iterator[list[Sides]]:
    """As many batches as there are steps, each pair once before any comes again."""
    random = np.random.default_rng(lesson.seed)
    order: list[int] = []
    for _ in range(lesson.steps):
        if len(order) < lesson.batch:
            order = random.permutation(len(pairs)).tolist()
        yield [pairs[order.pop()] for _ in range(lesson.batch)]


def _look(held_out: Sequence[Sides], projection: Any, lesson: Lesson, step: int) -> Look:
    """Without noise: what was learnt by drawing is judged by the method it drew from."""
    import torch

    method = "straight_through" if lesson.method == "gumbel" else lesson.method
    losses, right = [], []
    with torch.no_grad():
        for start in range(0, len(held_out) - lesson.batch + 1, lesson.batch):
            batch = held_out[start : start + lesson.batch]
            scores = score_all(batch, projection, METHODS[method](0))
            losses.append(contrastive(scores * lesson.sharpness).item())
            right.append((scores.argmax(1) == torch.arange(len(scores))).double().mean().item())
    return Look(step, float(np.mean(losses)), float(np.mean(right)))
