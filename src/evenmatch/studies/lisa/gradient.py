"""Train a projection through an alignment metric, with several ways to get a gradient.

LiSAScore's authors leave the gradient of their approximations to future work. Here a linear map on
a frozen encoder's vectors is trained with a contrastive loss on the alignment score itself, to
separate aligned pairs from in-batch negatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from evenmatch.alignment.assignment import Greedy, Lsa
from evenmatch.alignment.differentiable import FixedAlignment, StraightThrough, TensorSolver
from evenmatch.data.tables import TextTable
from evenmatch.errors import InputError
from evenmatch.protocols import Encoder
from evenmatch.registry import spec
from evenmatch.registry.parts import check_at_least
from evenmatch.reports.plots import line_plot_svg
from evenmatch.reports.study_page import StudyReport
from evenmatch.scoring.reducers import precision_recall
from evenmatch.studies.experiment import ResultStore
from evenmatch.studies.sentences import SentencePairs
from evenmatch.training.loop import Evaluation, run_training_loop
from evenmatch.types import Array
from evenmatch.units.text import Pieces

# The vectors of a candidate's units, and those of its reference's.
VectorPair: TypeAlias = tuple[Array, Array]

# The solver of each step; the seed of Gumbel noise is the step's number.
METHODS: Mapping[str, Callable[[int], TensorSolver]] = {
    "straight_through": lambda step: StraightThrough(),
    "gumbel": lambda step: StraightThrough(seed=step),
    "held_lsa": lambda step: FixedAlignment(Lsa()),
    "held_greedy": lambda step: FixedAlignment(Greedy()),
}


_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class GradientSettings:
    """Settings of training; `sharpness` multiplies scores before the softmax of the loss."""

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
        check_at_least(1, steps=self.steps, look_every=self.look_every)
        if self.batch < 2:
            raise InputError(f"a batch needs 2 pairs to have a negative, got {self.batch}")


@dataclass(frozen=True, slots=True)
class HeldOutEvaluation:
    """The loss on held-out pairs, and the share of them that score above all their negatives."""

    step: int
    loss: float
    right: float


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """The loss of every training step, and the evaluations on held-out pairs."""

    settings: GradientSettings
    losses: tuple[float, ...]
    held_out: tuple[HeldOutEvaluation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as JSON-compatible values."""
        return {
            "lesson": asdict(self.settings),
            "losses": self.losses,
            "held_out": tuple(asdict(each) for each in self.held_out),
        }


def embed_pairs(
    candidates: Sequence[str], references: Sequence[str], encoder: Encoder
) -> list[VectorPair]:
    """Return the vectors of each pair's units; pairs with an empty side are dropped."""
    split = Pieces()
    sides = [
        [e.vectors for e in encoder([split(t) for t in side])] for side in (candidates, references)
    ]
    return [(x, y) for x, y in zip(*sides, strict=True) if len(x) and len(y)]


def train_projection(
    pairs: Sequence[VectorPair], held_out: Sequence[VectorPair], settings: GradientSettings
) -> LearningCurve:
    """Train a linear map on `pairs`, starting from the identity, and evaluate it on `held_out`."""
    import torch

    for name, some in (("train on", pairs), ("hold out", held_out)):
        if len(some) < settings.batch:
            raise InputError(
                f"{len(some)} pairs to {name} are fewer than a batch of {settings.batch}; give more"
            )
    projection = torch.eye(pairs[0][0].shape[1]).requires_grad_()
    batches = list(_batches(pairs, settings))
    evaluations: list[tuple[float, float]] = []

    def step(number: int) -> tuple[Any, float]:
        solver = METHODS[settings.method](number + 1)
        scores = score_all_pairs(batches[number], projection, solver)
        loss = contrastive_loss(scores * settings.sharpness)
        return loss, loss.item()

    def measure() -> float:
        evaluations.append(_evaluate(held_out, projection, settings))
        return -evaluations[-1][0]

    history = run_training_loop(
        torch.optim.Adam([projection], lr=settings.rate),
        step,
        steps=settings.steps,
        evaluation=Evaluation(measure, every=settings.look_every, at_start=True),
    )
    found = zip(history.evaluations, evaluations, strict=True)
    curve = tuple(HeldOutEvaluation(number, *values) for (number, _), values in found)
    return LearningCurve(settings, tuple(history.step_metrics), curve)


def score_all_pairs(batch: Sequence[VectorPair], projection: Any, solver: TensorSolver) -> Any:
    """Return F of every candidate with every reference of a batch: (candidates, references)."""
    (x, x_mask), (y, y_mask) = (_project_and_pad([s[k] for s in batch], projection) for k in (0, 1))
    similarity = x[:, None] @ y[None, :].transpose(-1, -2)
    present = x_mask[:, None, :, None] & y_mask[None, :, None, :]
    alignment = solver(similarity, present)
    weights = x_mask[:, None].to(x.dtype), y_mask[None, :].to(x.dtype)
    precision, recall = precision_recall(similarity, alignment, *weights)
    return 2 * precision * recall / (precision + recall).clamp(min=_EPSILON)


def contrastive_loss(scores: Any) -> Any:
    """Return the InfoNCE loss of the diagonal against its rows and columns, averaged."""
    import torch

    diagonal = torch.arange(len(scores), device=scores.device)
    loss = torch.nn.functional.cross_entropy
    return (loss(scores, diagonal) + loss(scores.T, diagonal)) / 2


def _project_and_pad(side: Sequence[Array], projection: Any) -> tuple[Any, Any]:
    """Return the projected vectors, L2-normalised and padded, and their mask."""
    import torch

    vectors = [torch.as_tensor(np.asarray(v, dtype=np.float32)) for v in side]
    stacked = torch.nn.utils.rnn.pad_sequence(vectors, batch_first=True)
    lengths = torch.tensor([len(v) for v in vectors])
    mask = torch.arange(stacked.shape[1]) < lengths[:, None]
    return torch.nn.functional.normalize(stacked @ projection, dim=-1), mask


def _batches(pairs: Sequence[VectorPair], settings: GradientSettings) -> Iterator[list[VectorPair]]:
    """Yield one batch per step; the pairs are shuffled again when too few are left."""
    random = np.random.default_rng(settings.seed)
    order: list[int] = []
    for _ in range(settings.steps):
        if len(order) < settings.batch:
            order = random.permutation(len(pairs)).tolist()
        yield [pairs[order.pop()] for _ in range(settings.batch)]


def _evaluate(
    held_out: Sequence[VectorPair], projection: Any, settings: GradientSettings
) -> tuple[float, float]:
    """Return loss and accuracy without noise: those of Gumbel with the straight-through method."""
    import torch

    method = "straight_through" if settings.method == "gumbel" else settings.method
    losses, right = [], []
    with torch.no_grad():
        for start in range(0, len(held_out) - settings.batch + 1, settings.batch):
            batch = held_out[start : start + settings.batch]
            scores = score_all_pairs(batch, projection, METHODS[method](0))
            losses.append(contrastive_loss(scores * settings.sharpness).item())
            right.append((scores.argmax(1) == torch.arange(len(scores))).double().mean().item())
    return float(np.mean(losses)), float(np.mean(right))


def train_projections(
    sentences: SentencePairs,
    encoder: Encoder,
    every_settings: Sequence[GradientSettings],
    folder: str | Path,
    *,
    log: Callable[[str], None] | None = None,
) -> list[LearningCurve]:
    """Train with each of the settings that `folder` has no result for; hold out a quarter."""
    if not every_settings:
        raise InputError("there is no method to train with; give at least one")
    cells = ResultStore(Path(folder))
    recipe = {"texts": sentences.digest, "encoder": spec(encoder)}
    pairs = None
    found = []
    for settings in every_settings:
        own = {**recipe, "lesson": asdict(settings)}
        kept = cells.load(settings.method, own)
        if kept is None:
            pairs = pairs or embed_pairs(sentences.candidates, sentences.others, encoder)
            held_out = len(pairs) // 4
            kept = train_projection(pairs[held_out:], pairs[:held_out], settings).to_dict()
            cells.save(settings.method, own, kept)
        evaluations = tuple(HeldOutEvaluation(**each) for each in kept["held_out"])
        found.append(LearningCurve(settings, tuple(kept["losses"]), evaluations))
        if log:
            log(gradient_findings(found[-1:])[0])
    return found


def gradient_report(found: Sequence[LearningCurve], sentences: SentencePairs) -> StudyReport:
    """Report the losses on held-out pairs, as a table and as curves."""
    settings = found[0].settings
    notes = (
        f"{len(sentences)} pairs of {sentences.name}, a quarter of them held out; batches of "
        f"{settings.batch}, all other references of a batch are negatives",
        f"a linear map on the frozen encoder, starting from the identity: Adam, learning rate "
        f"{settings.rate:g}, {settings.steps} steps, scores × {settings.sharpness:g} before the "
        f"softmax, seed {settings.seed}",
        "held_lsa, held_greedy: the alignment is a constant; straight_through: hard in the forward "
        "pass, soft in the backward pass; gumbel: the same with noise",
    )
    held_out = {
        c.settings.method: [(float(each.step), each.loss) for each in c.held_out] for c in found
    }
    figure = line_plot_svg("Loss on held-out pairs", ("step", "contrastive loss"), held_out)
    table = gradient_table(found)
    title = "Training through an alignment metric"
    return StudyReport(
        title, gradient_findings(found), {"losses": table}, {"losses": figure}, notes
    )


def gradient_table(found: Sequence[LearningCurve]) -> TextTable:
    """Return a row per method: loss and accuracy on held-out pairs, before and after."""
    header = ["method", "loss before", "loss after", "right before", "right after"]
    lines = []
    for curve in found:
        first, last = curve.held_out[0], curve.held_out[-1]
        numbers = (first.loss, last.loss, first.right, last.right)
        lines.append([curve.settings.method, *(f"{value:.4f}" for value in numbers)])
    return [header, *lines]


def gradient_findings(found: Sequence[LearningCurve]) -> list[str]:
    """Return a line per method: the loss on held-out pairs before and after training."""
    return [
        f"{c.settings.method}: the loss on held-out pairs goes from {c.held_out[0].loss:.4f} to "
        f"{c.held_out[-1].loss:.4f} ({c.held_out[-1].loss / c.held_out[0].loss - 1:+.1%})"
        for c in found
    ]
