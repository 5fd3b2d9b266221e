"""A cross-encoder in training: one model that reads both texts side by side and gives a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.errors import InputError
from evenmatch.scoring.regression_model import Read, Reading
from evenmatch.types import Array, Run
from evenmatch.uses.train.examples import Examples
from evenmatch.uses.train.lesson import Lesson, learn
from evenmatch.uses.train.upper import check_frozen
from evenmatch.vectors.blocks import find_stack
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.layers import depth
from evenmatch.vectors.loading import load_auto, placed
from evenmatch.vectors.quiet import quiet_transformers
from evenmatch.vectors.tokens import load_tokenizer


@dataclass(frozen=True, eq=False)
class Cross:
    """A model for sequence classification with one output, and what it is given for each pair."""

    module: Any
    tokenizer: Any
    read: Sequence[Read]

    def __call__(self, batch: Array) -> Any:
        """The numbers for some of the pairs, with gradients."""
        given = [dict(self.read[i].inputs) for i in batch]
        inputs = self.tokenizer.pad(given, return_tensors="pt")
        return self.module(**inputs.to(self.module.device)).logits.reshape(-1)

    @property
    def sizes(self) -> list[int]:
        """How many pieces each pair has, marks included."""
        return [seen.length for seen in self.read]

    def groups(self, lesson: Lesson) -> list[dict[str, Any]]:
        """What is trained, at its rate: the upper blocks slowly, what is new fast."""
        body = self.module.base_model
        within = {id(weight) for weight in body.parameters()}
        head = [weight for weight in self.module.parameters() if id(weight) not in within]
        upper = [weight for weight in body.parameters() if weight.requires_grad]
        return [{"params": upper, "lr": lesson.rate}, {"params": head, "lr": lesson.head_rate}]

    def save(self, folder: Path) -> None:
        """Write the model and its tokenizer as any model's folder is."""
        folder.mkdir(parents=True, exist_ok=True)
        with quiet_transformers():
            self.module.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)


def load_cross(
    checkpoint: Checkpoint,
    texts: Sequence[tuple[str, str]],
    *,
    frozen: int,
    seed: int,
    device: str = "cpu",
) -> Cross:
    """A model with a new head to train above its first `frozen` blocks, and the texts to read.

    Dropout stays off, so that the seed settles everything.
    """
    import torch

    check_frozen(checkpoint, frozen, depth(checkpoint))
    with torch.random.fork_rng():
        torch.manual_seed(seed)  # the new head's first weights
        module, _ = load_auto("AutoModelForSequenceClassification", checkpoint, False, outputs=1)
    _freeze(module.base_model, checkpoint, frozen)
    read = Reading(checkpoint, 0, "truncate", False)(texts)
    return Cross(placed(module.eval(), device), load_tokenizer(checkpoint, False), read)


def _freeze(body: Any, checkpoint: Checkpoint, frozen: int) -> None:
    """Hold still whatever comes before the first block that learns."""
    owner, name = find_stack(body, depth(checkpoint))
    if owner is None:
        raise InputError(
            f"{checkpoint.spoken} has no blocks of its own to freeze; "
            "train an encoder like BERT, such as 'minilm'"
        )
    first = next(getattr(owner, name)[frozen].parameters())
    for weight in body.parameters():
        if weight is first:
            return
        weight.requires_grad_(False)


def train_cross(
    checkpoint: Checkpoint, examples: Examples, frozen: int, lesson: Lesson, run: Run
) -> Cross:
    """A cross-encoder trained to predict the targets by squared loss, the reference read first."""
    import torch

    texts = [
        (examples.texts[r], examples.texts[c])
        for c, r in zip(examples.candidates, examples.references, strict=True)
    ]
    cross = load_cross(checkpoint, texts, frozen=frozen, seed=lesson.seed, device=run.device)
    mean, spread = float(examples.targets.mean()), float(examples.targets.std())
    wanted = torch.tensor((examples.targets - mean) / spread, dtype=torch.float32)
    wanted = wanted.to(cross.module.device)

    def loss(batch: Array) -> Any:
        return ((cross(batch) - wanted[batch]) ** 2).mean()

    learn(cross.groups(lesson), cross.sizes, lesson, loss, run.progress)
    _rescale(cross.module, mean, spread)
    return cross


def _rescale(module: Any, mean: float, spread: float) -> None:
    """Bring the number a model gives to the scale of its ratings, within its last layer."""
    import torch

    last = [m for m in module.modules() if isinstance(m, torch.nn.Linear) and m.out_features == 1]
    with torch.no_grad():
        last[-1].weight.mul_(spread)
        last[-1].bias.mul_(spread).add_(mean)
