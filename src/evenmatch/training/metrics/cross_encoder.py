"""A cross-encoder in training: one model that reads both texts side by side and gives a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.errors import InputError
from evenmatch.metrics.regression import PairTokenizer, TokenizedPair
from evenmatch.models.backbone import find_stack
from evenmatch.models.checkpoints import Checkpoint
from evenmatch.models.layers import count_layers
from evenmatch.models.loading import load_auto_model, move_to_device, quiet_transformers
from evenmatch.models.tokenizer import load_transformers_tokenizer
from evenmatch.training.loop import FitSettings, run_training_loop
from evenmatch.training.metrics.bi_encoder import check_frozen
from evenmatch.training.metrics.examples import TrainingExamples
from evenmatch.types import Array, Run


@dataclass(frozen=True, eq=False)
class TrainableCrossEncoder:
    """A model for sequence classification with one output, and what it is given for each pair."""

    module: Any
    tokenizer: Any
    encoded_pairs: Sequence[TokenizedPair]

    def __call__(self, batch: Array) -> Any:
        """The numbers for some of the pairs, with gradients."""
        given = [dict(self.encoded_pairs[i].inputs) for i in batch]
        inputs = self.tokenizer.pad(given, return_tensors="pt")
        return self.module(**inputs.to(self.module.device)).logits.reshape(-1)

    @property
    def pair_lengths(self) -> list[int]:
        """How many pieces each pair has, marks included."""
        return [seen.length for seen in self.encoded_pairs]

    def parameter_groups(self, lesson: FitSettings) -> list[dict[str, Any]]:
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


def load_cross_encoder(
    checkpoint: Checkpoint,
    texts: Sequence[tuple[str, str]],
    *,
    frozen: int,
    seed: int,
    device: str = "cpu",
) -> TrainableCrossEncoder:
    """A model with a new head to train above its first `frozen` blocks, and the texts to read.

    Dropout stays off, so that the seed settles everything.
    """
    import torch

    check_frozen(checkpoint, frozen, count_layers(checkpoint))
    with torch.random.fork_rng():
        torch.manual_seed(seed)  # the new head's first weights
        module, _ = load_auto_model(
            "AutoModelForSequenceClassification", checkpoint, False, outputs=1
        )
    _freeze_blocks(module.base_model, checkpoint, frozen)
    read = PairTokenizer(checkpoint, 0, "truncate", False)(texts)
    return TrainableCrossEncoder(
        move_to_device(module.eval(), device), load_transformers_tokenizer(checkpoint, False), read
    )


def _freeze_blocks(body: Any, checkpoint: Checkpoint, frozen: int) -> None:
    """Hold still whatever comes before the first block that learns."""
    owner, name = find_stack(body, count_layers(checkpoint))
    if owner is None:
        raise InputError(
            f"{checkpoint.display_name} has no blocks of its own to freeze; "
            "train an encoder like BERT, such as 'minilm'"
        )
    first = next(getattr(owner, name)[frozen].parameters())
    for weight in body.parameters():
        if weight is first:
            return
        weight.requires_grad_(False)


def train_cross_encoder(
    checkpoint: Checkpoint, examples: TrainingExamples, frozen: int, lesson: FitSettings, run: Run
) -> TrainableCrossEncoder:
    """A cross-encoder trained to predict the targets by squared loss, the reference read first."""
    import torch

    texts = [
        (examples.texts[r], examples.texts[c])
        for c, r in zip(examples.candidates, examples.references, strict=True)
    ]
    cross = load_cross_encoder(
        checkpoint, texts, frozen=frozen, seed=lesson.seed, device=run.device
    )
    mean, spread = float(examples.targets.mean()), float(examples.targets.std())
    wanted = torch.tensor((examples.targets - mean) / spread, dtype=torch.float32)
    wanted = wanted.to(cross.module.device)

    def loss(batch: Array) -> Any:
        return ((cross(batch) - wanted[batch]) ** 2).mean()

    run_training_loop(
        cross.parameter_groups(lesson), cross.pair_lengths, lesson, loss, run.progress
    )
    _rescale_output(cross.module, mean, spread)
    return cross


def _rescale_output(module: Any, mean: float, spread: float) -> None:
    """Bring the number a model gives to the scale of its ratings, within its last layer."""
    import torch

    last = [m for m in module.modules() if isinstance(m, torch.nn.Linear) and m.out_features == 1]
    with torch.no_grad():
        last[-1].weight.mul_(spread)
        last[-1].bias.mul_(spread).add_(mean)
