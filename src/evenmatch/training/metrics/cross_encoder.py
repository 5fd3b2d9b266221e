"""Train a cross-encoder: one model that encodes both texts together and predicts a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.errors import InputError
from evenmatch.files import explain_failed_write, set_ordinary_modes
from evenmatch.metrics.regression import PairTokenizer, TokenizedPair
from evenmatch.models.backbone import find_stack
from evenmatch.models.checkpoints import Checkpoint, count_layers
from evenmatch.models.loading import load_auto_model, move_to_device, quiet_transformers
from evenmatch.models.tokenizer import load_transformers_tokenizer
from evenmatch.scoring.metric import FOLDER_PLACEHOLDER, write_metric
from evenmatch.training.checkpoints import CheckpointFile
from evenmatch.training.loop import FitSettings, fit_weights
from evenmatch.training.metrics.bi_encoder import check_frozen
from evenmatch.training.metrics.examples import TrainingExamples
from evenmatch.types import Array, Run


@dataclass(frozen=True, eq=False)
class TrainableCrossEncoder:
    """A sequence-classification model with one output, and the tokenized training pairs."""

    module: Any
    tokenizer: Any
    encoded_pairs: Sequence[TokenizedPair]

    def __call__(self, batch: Array) -> Any:
        """Predict the scores of the pairs with these indices, with gradients."""
        given = [dict(self.encoded_pairs[i].inputs) for i in batch]
        inputs = self.tokenizer.pad(given, return_tensors="pt")
        return self.module(**inputs.to(self.module.device)).logits.reshape(-1)

    def fit(
        self,
        settings: FitSettings,
        loss: Callable[[Array], Any],
        checkpoint: CheckpointFile,
        progress: Callable[[int, int], None] | None,
    ) -> list[float]:
        """Train the unfrozen backbone at `rate` and the new head at `head_rate`."""
        backbone = self.module.base_model
        known = {id(weight) for weight in backbone.parameters()}
        head = [weight for weight in self.module.parameters() if id(weight) not in known]
        unfrozen = [weight for weight in backbone.parameters() if weight.requires_grad]
        groups = [
            {"params": unfrozen, "lr": settings.rate},
            {"params": head, "lr": settings.head_rate},
        ]
        lengths = [pair.length for pair in self.encoded_pairs]
        return fit_weights(
            groups, lengths, settings, loss, checkpoint=checkpoint, progress=progress
        )

    def save(self, folder: Path) -> None:
        """Write model and tokenizer in the layout of Hugging Face checkpoints."""
        folder.mkdir(parents=True, exist_ok=True)
        with explain_failed_write(folder), quiet_transformers():
            self.module.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
            set_ordinary_modes(folder)


def load_cross_encoder(
    checkpoint: Checkpoint,
    texts: Sequence[tuple[str, str]],
    *,
    frozen: int,
    seed: int,
    device: str = "cpu",
) -> TrainableCrossEncoder:
    """Load a model with a new head and its first `frozen` blocks frozen, and tokenize the pairs.

    Dropout is off, so that training depends on the seed alone.
    """
    import torch

    check_frozen(checkpoint, frozen, count_layers(checkpoint))
    with torch.random.fork_rng():
        torch.manual_seed(seed)  # for the initial weights of the head
        module, _ = load_auto_model(
            "AutoModelForSequenceClassification", checkpoint, False, outputs=1
        )
    owner, name = find_stack(module.base_model, count_layers(checkpoint))
    if owner is None:
        raise InputError(
            f"{checkpoint.display_name} has no separate blocks that could be frozen; "
            "use a BERT-like encoder, such as 'minilm'"
        )
    first_trained = next(getattr(owner, name)[frozen].parameters())
    for weight in module.base_model.parameters():
        if weight is first_trained:
            break
        weight.requires_grad_(False)
    tokenized = PairTokenizer(checkpoint, 0, "truncate", False)(texts)
    return TrainableCrossEncoder(
        move_to_device(module.eval(), device),
        load_transformers_tokenizer(checkpoint, False),
        tokenized,
    )


def train_cross_encoder(
    source: Checkpoint,
    examples: TrainingExamples,
    settings: FitSettings,
    run: Run,
    checkpoint: CheckpointFile,
    *,
    frozen: int,
) -> None:
    """Train a cross-encoder on the targets and save it as a metric in the checkpoint's folder.

    The loss is the squared error; the input is reference, candidate.
    """
    import torch

    texts = [
        (examples.texts[r], examples.texts[c])
        for c, r in zip(examples.candidates, examples.references, strict=True)
    ]
    cross = load_cross_encoder(source, texts, frozen=frozen, seed=settings.seed, device=run.device)
    mean, spread = float(examples.targets.mean()), float(examples.targets.std())
    targets = torch.tensor((examples.targets - mean) / spread, dtype=torch.float32)
    targets = targets.to(cross.module.device)

    def loss(batch: Array) -> Any:
        return ((cross(batch) - targets[batch]) ** 2).mean()

    cross.fit(settings, loss, checkpoint, run.progress)
    # Fold the scale of the ratings into the last layer, so that the model outputs raw ratings.
    linear = [m for m in cross.module.modules() if isinstance(m, torch.nn.Linear)]
    last = [m for m in linear if m.out_features == 1][-1]
    with torch.no_grad():
        last.weight.mul_(spread)
        last.bias.mul_(spread).add_(mean)
    cross.save(checkpoint.folder)
    write_metric(checkpoint.folder, f"regression(model={FOLDER_PLACEHOLDER})")
