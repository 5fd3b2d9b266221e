"""Train a bi-encoder: the upper blocks of an encoder, and a linear head over pair features.

The frozen lower blocks run once over every text; their hidden states are kept in a memory-mapped
file (`HiddenStateMemmap`) and fed to the upper blocks (`PartlyFrozenEncoder`) in every step.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.metrics.fitted import BiEncoderHead, pair_features_torch, save_bi_encoder_head
from evenmatch.models.backbone import Blocks, PretrainedBackbone, load_trainable_blocks
from evenmatch.models.checkpoints import Checkpoint, count_layers
from evenmatch.models.loading import quiet_transformers
from evenmatch.models.tokenizer import equal_length_batches
from evenmatch.scoring.metric import FOLDER_PLACEHOLDER, write_metric
from evenmatch.training.checkpoints import CheckpointFile
from evenmatch.training.loop import FitSettings, fit_weights
from evenmatch.training.metrics.examples import TrainingExamples
from evenmatch.types import Array, Run

_INFERENCE_BATCH = 32  # pairs per batch when the initial head is fitted
_HEAD_SAMPLE = 1024  # pairs on which the initial head is fitted
_TOLERANCE = 1e-3  # running the blocks in two parts may differ from one pass by rounding
_TOKENIZER_FILES = ("tokenizer*", "vocab*", "merges.txt", "special_tokens_map.json", "*.model")


def train_bi_encoder(
    backbone: PretrainedBackbone,
    examples: TrainingExamples,
    settings: FitSettings,
    run: Run,
    checkpoint: CheckpointFile,
    *,
    frozen: int,
    height: int,
    layers: Sequence[int],
    higher_is_better: bool = True,
) -> None:
    """Train a bi-encoder of `height` blocks and save it as a metric in the checkpoint's folder."""
    source, folder = backbone.checkpoint(), checkpoint.folder
    encoder = load_partly_frozen(source, frozen, run.device, height)
    bi_encoder = make_bi_encoder(encoder, backbone, examples.texts, run)
    head = train_encoder_and_head(bi_encoder, examples, layers, settings, run, checkpoint)
    save_encoder(encoder, source, folder)
    save_bi_encoder_head(dataclasses.replace(head, higher_is_better=higher_is_better), folder)
    write_metric(folder, f"fitted(model={FOLDER_PLACEHOLDER})")


@dataclass(frozen=True, eq=False)
class TrainableBiEncoder:
    """An encoder, the frozen hidden states of all texts, and the counts of special tokens.

    `opening` and `closing` are the numbers of special tokens before and after each text.
    """

    encoder: PartlyFrozenEncoder
    frozen_states: HiddenStateMemmap
    lengths: Array
    opening: int
    closing: int

    def encode_groups(
        self, *groups: Array, layers: Sequence[int]
    ) -> list[tuple[dict[int, Any], Any]]:
        """Encode groups of texts in one pass: for each, hidden states by layer and a token mask.

        The mask is False for padding and special tokens.
        """
        import torch

        states, mask = (
            torch.from_numpy(a) for a in self.frozen_states.read_padded(np.concatenate(groups))
        )
        found = self.encoder(states.to(self.device), mask.to(self.device), layers)
        inner = self._content_mask(mask).to(self.device)
        ends = np.cumsum([len(group) for group in groups])
        return [
            (
                {n: v[end - len(group) : end] for n, v in found.items()},
                inner[end - len(group) : end],
            )
            for group, end in zip(groups, ends, strict=True)
        ]

    def _content_mask(self, mask: Any) -> Any:
        """Return the mask without special tokens."""
        import torch

        position, count = torch.arange(mask.shape[1]), mask.sum(1, keepdim=True)
        return (position >= self.opening) & (position < count - self.closing)

    def extract_features(
        self, examples: TrainingExamples, batch: Array, layers: Sequence[int]
    ) -> Any:
        """Compute the input features of the head for these examples."""
        x, y = self.encode_groups(
            examples.candidates[batch], examples.references[batch], layers=layers
        )
        return pair_features_torch(*x, *y, layers)

    def pair_lengths(self, examples: TrainingExamples) -> Array:
        """The number of tokens of each example, special tokens included."""
        sizes: Array = self.lengths[examples.candidates] + self.lengths[examples.references]
        return sizes

    @property
    def device(self) -> str:
        """The device of the encoder."""
        return self.encoder.blocks.device


def make_bi_encoder(
    encoder: PartlyFrozenEncoder, backbone: PretrainedBackbone, texts: Sequence[str], run: Run
) -> TrainableBiEncoder:
    """Run the frozen blocks once over every text."""
    opened = backbone.open()
    sequences, tokens = list(opened.token_ids(texts)), opened.tokenizer
    return TrainableBiEncoder(
        encoder,
        encoder.run_frozen_blocks(sequences, run),
        np.array([len(s) for s in sequences]),
        len(tokens.opening_tokens),
        len(tokens.closing_tokens),
    )


def train_encoder_and_head(
    bi_encoder: TrainableBiEncoder,
    examples: TrainingExamples,
    layers: Sequence[int],
    settings: FitSettings,
    run: Run,
    checkpoint: CheckpointFile,
) -> BiEncoderHead:
    """Train the encoder in place, and a head, to predict the targets with squared loss."""
    import torch

    mean, spread = float(examples.targets.mean()), float(examples.targets.std())
    targets = (examples.targets - mean) / spread
    first = _initial_head(bi_encoder, examples, targets, layers, settings.seed)
    weights, bias = (
        torch.tensor(v, dtype=torch.float32, device=bi_encoder.device, requires_grad=True)
        for v in first
    )
    target_tensor = torch.tensor(targets, dtype=torch.float32, device=bi_encoder.device)

    def loss(batch: Array) -> Any:
        predicted = bi_encoder.extract_features(examples, batch, layers) @ weights + bias
        return ((predicted - target_tensor[batch]) ** 2).mean()

    groups = [
        {"params": bi_encoder.encoder.parameters(), "lr": settings.rate},
        {"params": [weights, bias], "lr": settings.head_rate},
    ]
    lengths = bi_encoder.pair_lengths(examples).tolist()
    fit_weights(groups, lengths, settings, loss, checkpoint=checkpoint, progress=run.progress)
    final = weights.detach().cpu().double().numpy() * spread
    return BiEncoderHead(tuple(layers), final, mean + spread * float(bias.detach()))


def _initial_head(
    bi_encoder: TrainableBiEncoder,
    examples: TrainingExamples,
    targets: Array,
    layers: Sequence[int],
    seed: int,
) -> tuple[Array, float]:
    """Fit the weights of precision, recall and F by ridge regression; all others are 0.

    So training starts from an ordinary alignment metric and not from random weights.
    """
    import torch

    chosen = np.random.default_rng(seed).permutation(len(examples))[:_HEAD_SAMPLE]
    chosen = chosen[np.argsort(bi_encoder.pair_lengths(examples)[chosen], kind="stable")]
    with torch.inference_mode():
        parts = [
            bi_encoder.extract_features(examples, chosen[i : i + _INFERENCE_BATCH], layers)
            .cpu()
            .double()
            .numpy()
            for i in range(0, len(chosen), _INFERENCE_BATCH)
        ]
    features = np.concatenate(parts)
    matches = features[:, -3 * len(layers) :]
    centred, wanted = matches - matches.mean(0), targets[chosen]
    gram = centred.T @ centred + 0.1 * np.eye(matches.shape[1])
    weights = np.zeros(features.shape[1])
    weights[-3 * len(layers) :] = np.linalg.solve(gram, centred.T @ (wanted - wanted.mean()))
    return weights, float(wanted.mean() - features.mean(0) @ weights)


@dataclass(frozen=True, eq=False)
class PartlyFrozenEncoder:
    """An encoder whose embeddings and first `frozen` blocks are not trained.

    `height` is the number of blocks used; blocks `frozen` to `height - 1` are trained.
    """

    blocks: Blocks
    frozen: int
    height: int

    def run_frozen_blocks(self, sequences: Sequence[Array], run: Run) -> HiddenStateMemmap:
        """Store the output of the frozen blocks for each sequence of token ids."""
        import torch

        lengths = [len(s) for s in sequences]
        batches = list(equal_length_batches(lengths, run.batch_tokens))
        store = HiddenStateMemmap(lengths, self.dim)
        with self._capture_input(self.frozen) as captured, torch.inference_mode():
            for batch in batches:
                ids = torch.from_numpy(np.stack([sequences[i] for i in batch]))
                self.blocks.module(ids.to(self.blocks.device))
                for index, states in zip(batch, captured.pop().float().cpu().numpy(), strict=True):
                    store.write(index, states)
        return store

    @property
    def dim(self) -> int:
        """The size of a hidden state."""
        return int(self.blocks.module.config.hidden_size)

    @contextmanager
    def _capture_input(self, layer: int) -> Iterator[list[Any]]:
        """Collect the inputs of block `layer` in a list; blocks above it do not run."""
        captured: list[Any] = []

        def capture(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            captured.append(args[0] if args else named["hidden_states"])

        with ExitStack() as undo:
            hook = self.blocks.stack[layer].register_forward_pre_hook(capture, with_kwargs=True)
            undo.callback(hook.remove)
            self._restrict_blocks(0, layer + 1, undo)
            yield captured

    @contextmanager
    def _inject_input(self, states: Any) -> Iterator[None]:
        """Replace the input of the first trained block by `states` in forward passes."""

        def inject(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
            return (
                ((states, *args[1:]), named) if args else (args, {**named, "hidden_states": states})
            )

        with ExitStack() as undo:
            first = self.blocks.stack[self.frozen]
            undo.callback(first.register_forward_pre_hook(inject, with_kwargs=True).remove)
            self._restrict_blocks(self.frozen, self.height, undo)
            yield

    def _restrict_blocks(self, start: int, stop: int, undo: ExitStack) -> None:
        owner, name = self.blocks.owner, self.blocks.attribute
        undo.callback(setattr, owner, name, self.blocks.stack)
        setattr(owner, name, self.blocks.stack[start:stop])

    def __call__(self, states: Any, mask: Any, layers: Sequence[int]) -> dict[int, Any]:
        """Run the trained blocks on the output of the frozen ones; return states by layer.

        `states` are padded; `mask` is True at real tokens.
        """
        import torch

        ids = torch.zeros(mask.shape, dtype=torch.long, device=self.blocks.device)
        recorded: dict[int, Any] = {}
        with self._inject_input(states), ExitStack() as undo:
            for layer in layers:
                if layer < self.height:
                    undo.callback(self._record_layer(layer, recorded).remove)
            last = self.blocks.module(ids, attention_mask=mask.long()).last_hidden_state
        return {**recorded, self.height: last}

    def _record_layer(self, layer: int, recorded: dict[int, Any]) -> Any:
        """Record the hidden states of `layer` in forward passes; return the hook's handle."""
        norm = self.blocks.final_norm

        def record(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            states = args[0] if args else named["hidden_states"]
            recorded[layer] = norm(states) if norm is not None else states

        return self.blocks.stack[layer].register_forward_pre_hook(record, with_kwargs=True)

    def parameters(self) -> list[Any]:
        """The parameters that are trained."""
        return [
            p for block in self.blocks.stack[self.frozen : self.height] for p in block.parameters()
        ]


def load_partly_frozen(
    checkpoint: Checkpoint, frozen: int, device: str, height: int = 0
) -> PartlyFrozenEncoder:
    """Load an encoder of `height` blocks (0 for all) with its first `frozen` blocks frozen."""
    height = height or count_layers(checkpoint)
    check_frozen(checkpoint, frozen, height)
    blocks = load_trainable_blocks(checkpoint, trust_remote_code=False, device=device)
    encoder = PartlyFrozenEncoder(blocks, frozen, height)
    if blocks.owner is None or not _is_separable(encoder):
        raise InputError(
            f"the blocks of {checkpoint.display_name} cannot be run separately; "
            "use a BERT-like encoder, such as 'minilm'"
        )
    for weight in encoder.parameters():
        weight.requires_grad_(True)
    return encoder


def check_frozen(checkpoint: Checkpoint, frozen: int, height: int) -> None:
    """Raise `InputError` unless 0 <= `frozen` < `height` <= the number of blocks."""
    deepest = count_layers(checkpoint)
    if not 0 <= frozen < height <= deepest:
        raise InputError(
            f"{checkpoint.display_name} has {deepest} blocks; at least one must be trained, "
            f"got {frozen} frozen of {height}"
        )


def _is_separable(encoder: PartlyFrozenEncoder) -> bool:
    """Return whether lower and upper blocks run separately give the result of one pass."""
    import torch

    ids = torch.arange(1, 6, device=encoder.blocks.device)[None]
    with torch.inference_mode():
        with ExitStack() as undo:
            encoder._restrict_blocks(0, encoder.height, undo)
            whole = encoder.blocks.module(ids).last_hidden_state
        with encoder._capture_input(encoder.frozen) as captured:
            encoder.blocks.module(ids)
        separate = encoder(captured[0], torch.ones_like(ids, dtype=torch.bool), [encoder.height])
    return bool(torch.allclose(whole, separate[encoder.height], atol=_TOLERANCE))


class HiddenStateMemmap:
    """The hidden states of each text, (tokens, dim), in an anonymous memory-mapped file.

    The file disappears with the process; the operating system keeps in memory what fits.
    """

    def __init__(self, lengths: Sequence[int], dim: int) -> None:
        self._ends = np.cumsum(lengths)
        self._starts = self._ends - np.asarray(lengths)
        rows = max(int(self._ends[-1]) if len(lengths) else 0, 1)
        with tempfile.TemporaryFile() as file:  # the mapping stays valid after the file is closed
            self._rows = np.memmap(file, dtype=np.float32, mode="w+", shape=(rows, dim))

    def write(self, index: int, states: Array) -> None:
        """Store the hidden states of one text."""
        self._rows[self._starts[index] : self._ends[index]] = states

    def read_padded(self, indexes: Array) -> tuple[Array, Array]:
        """Return the hidden states of some texts, zero-padded to one length, and the mask."""
        lengths = self._ends[indexes] - self._starts[indexes]
        states = np.zeros((len(indexes), int(lengths.max()), self._rows.shape[1]), np.float32)
        for row, index in enumerate(indexes):
            states[row, : lengths[row]] = self._rows[self._starts[index] : self._ends[index]]
        return states, np.arange(states.shape[1]) < lengths[:, None]


def save_encoder(encoder: PartlyFrozenEncoder, source: Checkpoint, folder: Path) -> None:
    """Write the encoder, cut to `height` blocks, and the tokenizer files of its source."""
    folder.mkdir(parents=True, exist_ok=True)
    module, stack = encoder.blocks.module, encoder.blocks.stack
    setattr(encoder.blocks.owner, encoder.blocks.attribute, stack[: encoder.height])
    config, before = module.config, module.config.num_hidden_layers
    config.num_hidden_layers = encoder.height
    try:
        with quiet_transformers():
            module.save_pretrained(folder)
    finally:
        config.num_hidden_layers = before
        setattr(encoder.blocks.owner, encoder.blocks.attribute, stack)
    for pattern in _TOKENIZER_FILES:
        for path in source.folder.glob(pattern):
            shutil.copy(path, folder / path.name)
