"""Train through an alignment metric, with several ways to get a gradient.

LiSAScore's authors leave the gradient of their approximations to future work. Here a model is
trained with a contrastive loss on the alignment score itself, to separate aligned pairs from
in-batch negatives: a linear map on a frozen encoder's vectors, or all weights of the encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from evenmatch.alignment.assignment import Greedy, Lsa
from evenmatch.alignment.differentiable import FixedAlignment, StraightThrough, TensorSolver
from evenmatch.alignment.transport import Emd
from evenmatch.data.tables import TextTable
from evenmatch.errors import InputError
from evenmatch.fairness.differentiable import DifferentiableEncoder, pad_rows
from evenmatch.protocols import Encoder
from evenmatch.registry import check_settings, spec
from evenmatch.registry.parts import check_at_least, check_positive
from evenmatch.reports.plots import line_plot_svg
from evenmatch.reports.study_page import StudyReport
from evenmatch.scoring.reducers import harmonic_mean_torch, precision_recall
from evenmatch.studies.experiment import ResultStore
from evenmatch.studies.sentences import SentencePairs
from evenmatch.training.loop import Evaluation, run_training_loop
from evenmatch.types import Array, Run
from evenmatch.units.text import Pieces
from evenmatch.vectors.transformer import Transformer

# The vectors of a candidate's units, and those of its reference's.
VectorPair: TypeAlias = tuple[Array, Array]
T = TypeVar("T")

# The units of some texts: vectors (texts, units, dim), and masks of the units that can be matched
# to and of those that count in the mean.
EmbeddedBatch: TypeAlias = tuple[Any, Any, Any]

# The solver of each step; the seed of Gumbel noise is the step's number. Masses are the norms of
# the vectors, which only `emd` reads, so `f_cont` is F_CONT.
METHODS: Mapping[str, Callable[[int], TensorSolver]] = {
    "straight_through": lambda step: StraightThrough(),
    "gumbel": lambda step: StraightThrough(seed=step),
    "held_lsa": lambda step: FixedAlignment(Lsa()),
    "held_greedy": lambda step: FixedAlignment(Greedy()),
    "f_cont": lambda step: FixedAlignment(Emd()),
}


@dataclass(frozen=True, slots=True)
class GradientSettings:
    """Settings of training; `sharpness` multiplies scores before the softmax of the loss.

    With `encoder`, all weights of the encoder are trained instead of a projection. `pad_to` pads
    texts to that many tokens, which can be matched to like special tokens; 0 is for no padding and
    no special tokens.
    """

    method: str = "straight_through"
    steps: int = 200
    batch: int = 16
    rate: float = 3e-4
    sharpness: float = 10.0
    look_every: int = 20
    seed: int = 0
    encoder: bool = False
    pad_to: int = 0

    def __post_init__(self) -> None:
        check_settings(self)
        if self.method not in METHODS:
            raise InputError(f"there is no method {self.method!r}; known: {', '.join(METHODS)}")
        check_at_least(1, steps=self.steps, look_every=self.look_every)
        check_at_least(0, seed=self.seed, pad_to=self.pad_to)
        check_positive(rate=self.rate, sharpness=self.sharpness)
        if self.batch < 2:
            raise InputError(f"a batch needs 2 pairs to have a negative, got {self.batch}")
        if self.pad_to and not self.encoder:
            raise InputError(
                "only texts for the encoder are padded; set encoder, or leave out pad_to"
            )

    @property
    def name(self) -> str:
        """The method, and what else differs between runs."""
        padding = f", padded to {self.pad_to}" if self.pad_to else ""
        return f"{self.method}{padding}"


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

    projection = torch.eye(len(pairs[0][0][0]) if pairs else 1).requires_grad_()

    def embed(side: Sequence[Array]) -> EmbeddedBatch:
        vectors = [torch.as_tensor(np.asarray(v, dtype=np.float32)) for v in side]
        stacked = torch.nn.utils.rnn.pad_sequence(vectors, batch_first=True)
        lengths = torch.tensor([len(v) for v in vectors])
        mask = torch.arange(stacked.shape[1]) < lengths[:, None]
        return stacked @ projection, mask, mask

    return _train([projection], embed, pairs, held_out, settings)


def train_encoder(
    pairs: Sequence[tuple[str, str]],
    held_out: Sequence[tuple[str, str]],
    encoder: Transformer,
    settings: GradientSettings,
) -> LearningCurve:
    """Train all weights of an encoder up to its layer on `pairs` of texts."""
    texts, layer = DifferentiableEncoder(encoder.backbone, Run()), encoder.layer_index()
    texts.blocks.module.requires_grad_(True)
    padding = texts.tokenizer.padding[0] if texts.tokenizer.padding else 0

    def embed(side: Sequence[str]) -> EmbeddedBatch:
        tokenized = [texts.tokenize(text) for text in side]
        rows = [t.token_ids for t in tokenized]
        width = max(settings.pad_to, *map(len, rows))
        ids = pad_rows([*rows, np.zeros(width)], texts.blocks.device, padding)[:-1]
        attended = pad_rows([np.ones(len(row)) for row in rows] + [np.zeros(width)], ids.device)[
            :-1
        ]
        inner = [~np.isin(np.arange(len(t.token_ids)), list(t.special_tokens)) for t in tokenized]
        counted = pad_rows([*inner, np.zeros(width)], ids.device)[:-1].bool()
        with texts.blocks.truncate_to([layer]) as forward:
            vectors = forward(ids, attended)[layer]
        present = attended.new_ones(attended.shape).bool() if settings.pad_to else counted
        return vectors, present, counted

    trained = [p for p in texts.blocks.module.parameters() if p.requires_grad]
    return _train(trained, embed, pairs, held_out, settings)


def _train(
    parameters: Sequence[Any],
    embed: Callable[[Sequence[T]], EmbeddedBatch],
    pairs: Sequence[tuple[T, T]],
    held_out: Sequence[tuple[T, T]],
    settings: GradientSettings,
) -> LearningCurve:
    import torch

    for name, some in (("train on", pairs), ("hold out", held_out)):
        if len(some) < settings.batch:
            raise InputError(
                f"{len(some)} pairs to {name} are fewer than a batch of {settings.batch}; give more"
            )
    batches = list(_batches(pairs, settings))
    evaluations: list[tuple[float, float]] = []

    def score(batch: Sequence[tuple[T, T]], solver: TensorSolver) -> Any:
        x, y = (embed([pair[k] for pair in batch]) for k in (0, 1))
        return score_all_pairs(x, y, solver)

    def step(number: int) -> tuple[Any, float]:
        scores = score(batches[number], METHODS[settings.method](number + 1))
        loss = contrastive_loss(scores * settings.sharpness)
        return loss, loss.item()

    def measure() -> float:
        """Return the negative loss without noise; Gumbel's is that of straight-through."""
        method = "straight_through" if settings.method == "gumbel" else settings.method
        losses, right = [], []
        with torch.no_grad():
            for start in range(0, len(held_out) - settings.batch + 1, settings.batch):
                scores = score(held_out[start : start + settings.batch], METHODS[method](0))
                losses.append(contrastive_loss(scores * settings.sharpness).item())
                right.append((scores.argmax(1) == torch.arange(len(scores))).double().mean().item())
        evaluations.append((float(np.mean(losses)), float(np.mean(right))))
        return -evaluations[-1][0]

    history = run_training_loop(
        torch.optim.Adam(parameters, lr=settings.rate),
        step,
        steps=settings.steps,
        evaluation=Evaluation(measure, every=settings.look_every, at_start=True),
    )
    found = zip(history.evaluations, evaluations, strict=True)
    curve = tuple(HeldOutEvaluation(number, *values) for (number, _), values in found)
    return LearningCurve(settings, tuple(history.step_metrics), curve)


def score_all_pairs(x: EmbeddedBatch, y: EmbeddedBatch, solver: TensorSolver) -> Any:
    """Return F of every candidate with every reference of a batch: (candidates, references)."""
    import torch

    normalize = torch.nn.functional.normalize
    similarity = normalize(x[0], dim=-1)[:, None] @ normalize(y[0], dim=-1)[None, :].mT
    present = x[1][:, None, :, None] & y[1][None, :, None, :]
    masses = x[0].norm(dim=-1)[:, None], y[0].norm(dim=-1)[None, :]
    alignment = solver(similarity, present, masses)
    weights = x[2][:, None].to(x[0].dtype), y[2][None, :].to(x[0].dtype)
    precision, recall = precision_recall(similarity, alignment, *weights)
    return harmonic_mean_torch(precision, recall)


def contrastive_loss(scores: Any) -> Any:
    """Return the InfoNCE loss of the diagonal against its rows and columns, averaged."""
    import torch

    diagonal = torch.arange(len(scores), device=scores.device)
    loss = torch.nn.functional.cross_entropy
    return (loss(scores, diagonal) + loss(scores.T, diagonal)) / 2


def _batches(
    pairs: Sequence[tuple[T, T]], settings: GradientSettings
) -> Iterator[list[tuple[T, T]]]:
    """Yield one batch per step; the pairs are shuffled again when too few are left."""
    random = np.random.default_rng(settings.seed)
    order: list[int] = []
    for _ in range(settings.steps):
        if len(order) < settings.batch:
            order = random.permutation(len(pairs)).tolist()
        yield [pairs[order.pop()] for _ in range(settings.batch)]


def train_through_metric(
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
    vectors: list[VectorPair] = []
    found = []
    for settings in every_settings:
        own = {**recipe, "lesson": asdict(settings)}
        trained = "encoder" if settings.encoder else "projection"
        name = f"{settings.method} {trained} {settings.pad_to} {settings.seed}"
        kept = cells.load(name, own)
        if kept is None:
            if settings.encoder:
                if not isinstance(encoder, Transformer):
                    raise InputError("only a transformer can be trained; leave out encoder")
                texts = list(zip(sentences.candidates, sentences.others, strict=True))
                some = len(texts) // 4
                kept = train_encoder(texts[some:], texts[:some], encoder, settings).to_dict()
            else:
                vectors = vectors or embed_pairs(sentences.candidates, sentences.others, encoder)
                some = len(vectors) // 4
                kept = train_projection(vectors[some:], vectors[:some], settings).to_dict()
            cells.save(name, own, kept)
        evaluations = tuple(HeldOutEvaluation(**each) for each in kept["held_out"])
        found.append(LearningCurve(settings, tuple(kept["losses"]), evaluations))
        if log:
            log(f"seed {settings.seed}, {gradient_findings(found[-1:])[0]}")
    return found


def gradient_report(found: Sequence[LearningCurve], sentences: SentencePairs) -> StudyReport:
    """Report the losses on held-out pairs, as a table and as curves."""
    settings = found[0].settings
    what = (
        "all weights of the encoder" if settings.encoder else "a linear map on the frozen encoder"
    )
    seeds = ", ".join(map(str, dict.fromkeys(c.settings.seed for c in found)))
    notes = (
        f"{len(sentences)} pairs of {sentences.name}, a quarter of them held out; batches of "
        f"{settings.batch}, all other references of a batch are negatives",
        f"trained: {what}, by Adam with learning rate {settings.rate:g}, {settings.steps} steps, "
        f"scores × {settings.sharpness:g} before the softmax; seeds {seeds} order the pairs",
        "held_lsa, held_greedy: the alignment is a constant; f_cont: optimal transport with the "
        "vectors' norms as masses, whose plan follows the masses; straight_through: hard in the "
        "forward pass, soft in the backward pass; gumbel: the same with noise",
        "right: the share of held-out pairs that score above all their negatives; mean over seeds, "
        "in brackets lowest and highest",
    )
    names = dict.fromkeys(c.settings.name for c in found)
    curves = {name: _mean_curve([c for c in found if c.settings.name == name]) for name in names}
    figures = {
        "losses": line_plot_svg("Loss on held-out pairs", ("step", "contrastive loss"), curves)
    }
    title = "Training through an alignment metric"
    return StudyReport(
        title, gradient_findings(found), {"losses": gradient_table(found)}, figures, notes
    )


def gradient_table(found: Sequence[LearningCurve]) -> TextTable:
    """Return a row per method: loss and accuracy on held-out pairs, before and after."""
    header = ["method", "loss before", "loss after", "right before", "right after", "gain"]
    lines = []
    for name in dict.fromkeys(c.settings.name for c in found):
        own = [(c.held_out[0], c.held_out[-1]) for c in found if c.settings.name == name]
        values = [
            [first.loss for first, _ in own],
            [last.loss for _, last in own],
            [first.right for first, _ in own],
            [last.right for _, last in own],
            [last.right - first.right for first, last in own],
        ]
        lines.append([name, *map(_mean_and_range, values)])
    return [header, *lines]


def gradient_findings(found: Sequence[LearningCurve]) -> list[str]:
    """Return a line per method: held-out loss and accuracy before and after, means over seeds."""
    lines = []
    for name in dict.fromkeys(c.settings.name for c in found):
        own = [c.held_out for c in found if c.settings.name == name]
        loss = [float(np.mean([h[at].loss for h in own])) for at in (0, -1)]
        right = [float(np.mean([h[at].right for h in own])) for at in (0, -1)]
        lines.append(
            f"{name}: the loss on held-out pairs goes from {loss[0]:.4f} to {loss[1]:.4f} "
            f"({loss[1] / loss[0] - 1:+.1%}), accuracy from {right[0]:.3f} to {right[1]:.3f}"
        )
    return lines


def _mean_curve(curves: Sequence[LearningCurve]) -> list[tuple[float, float]]:
    steps = [each.step for each in curves[0].held_out]
    losses = np.mean([[each.loss for each in curve.held_out] for curve in curves], axis=0)
    return [(float(step), float(loss)) for step, loss in zip(steps, losses, strict=True)]


def _mean_and_range(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4f}"
    return f"{np.mean(values):.3f} [{min(values):.3f}, {max(values):.3f}]"
