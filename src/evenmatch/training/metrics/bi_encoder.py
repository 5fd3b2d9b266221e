"""Two towers in training: the upper blocks of an encoder, and a head over what they make.

The upper blocks of an encoder, trained on states that the frozen lower ones gave once.

Vectors of many texts in one file that is mapped into memory for as long as they are needed.

A trained encoder in a folder of its own, as any model's folder is.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.metrics.fitted import BiEncoderHead, pair_features_torch
from evenmatch.models.backbone import Blocks, PretrainedBackbone, load_trainable_blocks
from evenmatch.models.checkpoints import Checkpoint
from evenmatch.models.layers import count_layers
from evenmatch.models.loading import quiet_transformers
from evenmatch.models.packing import equal_length_batches
from evenmatch.training.loop import FitSettings, run_training_loop
from evenmatch.training.metrics.examples import TrainingExamples
from evenmatch.types import Array, Run

_INFERENCE_BATCH = 32  # pairs a batch where nothing is learnt


_HEAD_SAMPLE = 1024  # pairs from which the head's first weights are found


@dataclass(frozen=True, eq=False)
class TrainableBiEncoder:
    """An encoder, the texts' states below it, and how many marks stand around a text."""

    encoder: PartlyFrozenEncoder
    frozen_states: HiddenStateMemmap
    lengths: Array
    opening: int
    closing: int

    def encode_groups(
        self, *groups: Array, layers: Sequence[int]
    ) -> list[tuple[dict[int, Any], Any]]:
        """Groups of texts in one pass: for each the states by layer, and which are pieces."""
        import torch

        states, there = (
            torch.from_numpy(a) for a in self.frozen_states.read_padded(np.concatenate(groups))
        )
        found = self.encoder(states.to(self.device), there.to(self.device), layers)
        inner = self._content_mask(there).to(self.device)
        ends = np.cumsum([len(group) for group in groups])
        return [
            (
                {n: v[end - len(group) : end] for n, v in found.items()},
                inner[end - len(group) : end],
            )
            for group, end in zip(groups, ends, strict=True)
        ]

    def _content_mask(self, there: Any) -> Any:
        """Where the pieces stand, without the marks around them."""
        import torch

        place, count = torch.arange(there.shape[1]), there.sum(1, keepdim=True)
        return (place >= self.opening) & (place < count - self.closing)

    def extract_features(
        self, examples: TrainingExamples, batch: Array, layers: Sequence[int]
    ) -> Any:
        """What a head sees of these examples."""
        x, y = self.encode_groups(
            examples.candidates[batch], examples.references[batch], layers=layers
        )
        return pair_features_torch(*x, *y, layers)

    def pair_lengths(self, examples: TrainingExamples) -> Array:
        """How many pieces each example has, marks included."""
        sizes: Array = self.lengths[examples.candidates] + self.lengths[examples.references]
        return sizes

    @property
    def device(self) -> str:
        """Where the encoder is."""
        return self.encoder.blocks.device


def make_bi_encoder(
    upper: PartlyFrozenEncoder, body: PretrainedBackbone, texts: Sequence[str], run: Run
) -> TrainableBiEncoder:
    """The frozen part run over every text once."""
    sequences = body.token_ids(texts)
    tokens = body.tokenizer()
    return TrainableBiEncoder(
        upper,
        upper.run_frozen_blocks(sequences, run),
        np.array([len(s) for s in sequences]),
        len(tokens.opening_tokens),
        len(tokens.closing_tokens),
    )


def train_bi_encoder(
    towers: TrainableBiEncoder,
    examples: TrainingExamples,
    layers: Sequence[int],
    lesson: FitSettings,
    run: Run,
) -> BiEncoderHead:
    """Train the encoder, in place, and a head to predict the targets by squared loss."""
    import torch

    mean, spread = float(examples.targets.mean()), float(examples.targets.std())
    targets = (examples.targets - mean) / spread
    first = _initial_head(towers, examples, targets, layers, lesson.seed)
    weights, bias = (
        torch.tensor(v, dtype=torch.float32, device=towers.device, requires_grad=True)
        for v in first
    )
    wanted = torch.tensor(targets, dtype=torch.float32, device=towers.device)

    def loss(batch: Array) -> Any:
        predicted = towers.extract_features(examples, batch, layers) @ weights + bias
        return ((predicted - wanted[batch]) ** 2).mean()

    groups = [
        {"params": towers.encoder.parameters(), "lr": lesson.rate},
        {"params": [weights, bias], "lr": lesson.head_rate},
    ]
    run_training_loop(groups, towers.pair_lengths(examples).tolist(), lesson, loss, run.progress)
    final = weights.detach().cpu().double().numpy() * spread
    return BiEncoderHead(tuple(layers), final, mean + spread * float(bias.detach()))


def _initial_head(
    towers: TrainableBiEncoder,
    examples: TrainingExamples,
    targets: Array,
    layers: Sequence[int],
    seed: int,
) -> tuple[Array, float]:
    """Weights for precision, recall and F by ridge regression, none for the rest as yet.

    From there on training starts as an ordinary alignment metric, not from noise.
    """
    import torch

    chosen = np.random.default_rng(seed).permutation(len(examples))[:_HEAD_SAMPLE]
    chosen = chosen[np.argsort(towers.pair_lengths(examples)[chosen], kind="stable")]
    with torch.inference_mode():
        parts = [
            towers.extract_features(examples, chosen[i : i + _INFERENCE_BATCH], layers)
            .cpu()
            .double()
            .numpy()
            for i in range(0, len(chosen), _INFERENCE_BATCH)
        ]
    seen = np.concatenate(parts)
    matches = seen[:, -3 * len(layers) :]
    centred, wanted = matches - matches.mean(0), targets[chosen]
    gram = centred.T @ centred + 0.1 * np.eye(matches.shape[1])
    weights = np.zeros(seen.shape[1])
    weights[-3 * len(layers) :] = np.linalg.solve(gram, centred.T @ (wanted - wanted.mean()))
    return weights, float(wanted.mean() - seen.mean(0) @ weights)


_TOLERANCE = 1e-3  # two ways through the same blocks differ by rounding only


@dataclass(frozen=True, eq=False)
class PartlyFrozenEncoder:
    """An encoder whose embeddings and first `frozen` blocks stay as they are.

    `height` is how many blocks there are in all; those above `frozen` learn.
    """

    blocks: Blocks
    frozen: int
    height: int

    def run_frozen_blocks(self, sequences: Sequence[Array], run: Run) -> HiddenStateMemmap:
        """What the frozen part makes of each sequence of ids, kept on disk."""
        import torch

        lengths = [len(s) for s in sequences]
        batches = list(equal_length_batches(lengths, run.batch_tokens))
        kept = HiddenStateMemmap(lengths, self.dim)
        with self._capture_input(self.frozen) as taken, torch.inference_mode():
            for batch in batches:
                ids = torch.from_numpy(np.stack([sequences[i] for i in batch]))
                self.blocks.module(ids.to(self.blocks.device))
                for index, states in zip(batch, taken.pop().float().cpu().numpy(), strict=True):
                    kept.write(index, states)
        return kept

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return int(self.blocks.module.config.hidden_size)

    @contextmanager
    def _capture_input(self, layer: int) -> Iterator[list[Any]]:
        """A list that gets what goes into the block above `layer`; nothing runs above that."""
        taken: list[Any] = []

        def take(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            taken.append(args[0] if args else named["hidden_states"])

        with ExitStack() as undo:
            hook = self.blocks.stack[layer].register_forward_pre_hook(take, with_kwargs=True)
            undo.callback(hook.remove)
            self._restrict_blocks(0, layer + 1, undo)
            yield taken

    @contextmanager
    def _inject_input(self, states: Any) -> Iterator[None]:
        """Passes in which the first block that learns is given these states."""

        def give(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
            return (
                ((states, *args[1:]), named) if args else (args, {**named, "hidden_states": states})
            )

        with ExitStack() as undo:
            first = self.blocks.stack[self.frozen]
            undo.callback(first.register_forward_pre_hook(give, with_kwargs=True).remove)
            self._restrict_blocks(self.frozen, self.height, undo)
            yield

    def _restrict_blocks(self, start: int, stop: int, undo: ExitStack) -> None:
        owner, name = self.blocks.owner, self.blocks.attribute
        undo.callback(setattr, owner, name, self.blocks.stack)
        setattr(owner, name, self.blocks.stack[start:stop])

    def __call__(self, states: Any, there: Any, layers: Sequence[int]) -> dict[int, Any]:
        """The states at `layers` of padded texts, given those below; `there` marks real pieces."""
        import torch

        ids = torch.zeros(there.shape, dtype=torch.long, device=self.blocks.device)
        noted: dict[int, Any] = {}
        with self._inject_input(states), ExitStack() as undo:
            for layer in layers:
                if layer < self.height:
                    undo.callback(self._record_layer(layer, noted).remove)
            last = self.blocks.module(ids, attention_mask=there.long()).last_hidden_state
        return {**noted, self.height: last}

    def _record_layer(self, layer: int, noted: dict[int, Any]) -> Any:
        norm = self.blocks.final_norm

        def note(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            states = args[0] if args else named["hidden_states"]
            noted[layer] = norm(states) if norm is not None else states

        return self.blocks.stack[layer].register_forward_pre_hook(note, with_kwargs=True)

    def parameters(self) -> list[Any]:
        """The weights that learn."""
        return [
            p for block in self.blocks.stack[self.frozen : self.height] for p in block.parameters()
        ]


def load_partly_frozen(
    checkpoint: Checkpoint, frozen: int, device: str, height: int = 0
) -> PartlyFrozenEncoder:
    """A copy of an encoder to train above its first `frozen` blocks; `height` cuts it off there."""
    height = height or count_layers(checkpoint)
    check_frozen(checkpoint, frozen, height)
    blocks = load_trainable_blocks(checkpoint, trust_remote_code=False, device=device)
    upper = PartlyFrozenEncoder(blocks, frozen, height)
    if blocks.owner is None or not _is_separable(upper):
        raise InputError(
            f"the blocks of {checkpoint.display_name} cannot be run apart from each other; "
            "train an encoder like BERT, such as 'minilm'"
        )
    for weight in upper.parameters():
        weight.requires_grad_(True)
    return upper


def check_frozen(checkpoint: Checkpoint, frozen: int, height: int) -> None:
    """Refuse to freeze all blocks that are kept, or to keep more than there are."""
    deepest = count_layers(checkpoint)
    if not 0 <= frozen < height <= deepest:
        raise InputError(
            f"{checkpoint.display_name} has {deepest} blocks; fewer can be frozen than are kept, "
            f"got {frozen} of {height}"
        )


def _is_separable(upper: PartlyFrozenEncoder) -> bool:
    """Whether the lower blocks and then the upper ones do what all do at once."""
    import torch

    ids = torch.arange(1, 6, device=upper.blocks.device)[None]
    with torch.inference_mode():
        with ExitStack() as undo:
            upper._restrict_blocks(0, upper.height, undo)
            whole = upper.blocks.module(ids).last_hidden_state
        with upper._capture_input(upper.frozen) as taken:
            upper.blocks.module(ids)
        parted = upper(taken[0], torch.ones_like(ids, dtype=torch.bool), [upper.height])
    return bool(torch.allclose(whole, parted[upper.height], atol=_TOLERANCE))


class HiddenStateMemmap:
    """The states of each text, (pieces, dim), written once and read many times.

    The file has no name and is gone with the process; what fits in memory stays there.
    """

    def __init__(self, lengths: Sequence[int], dim: int) -> None:
        self._ends = np.cumsum(lengths)
        self._starts = self._ends - np.asarray(lengths)
        rows = max(int(self._ends[-1]) if len(lengths) else 0, 1)
        with tempfile.TemporaryFile() as file:  # the map outlives it
            self._rows = np.memmap(file, dtype=np.float32, mode="w+", shape=(rows, dim))

    def write(self, index: int, states: Array) -> None:
        """Keep the states of one text."""
        self._rows[self._starts[index] : self._ends[index]] = states

    def read_padded(self, indexes: Array) -> tuple[Array, Array]:
        """The states of some texts, filled up with zeros to one length, and where they are real."""
        lengths = self._ends[indexes] - self._starts[indexes]
        states = np.zeros((len(indexes), int(lengths.max()), self._rows.shape[1]), np.float32)
        for row, index in enumerate(indexes):
            states[row, : lengths[row]] = self._rows[self._starts[index] : self._ends[index]]
        return states, np.arange(states.shape[1]) < lengths[:, None]


_TOKENIZER_FILES = ("tokenizer*", "vocab*", "merges.txt", "special_tokens_map.json", "*.model")


def save_encoder(upper: PartlyFrozenEncoder, source: Checkpoint, folder: Path) -> None:
    """Write the encoder up to its height, in safetensors, and the tokenizer of its source."""
    folder.mkdir(parents=True, exist_ok=True)
    module, stack = upper.blocks.module, upper.blocks.stack
    setattr(upper.blocks.owner, upper.blocks.attribute, stack[: upper.height])
    config, before = module.config, module.config.num_hidden_layers
    config.num_hidden_layers = upper.height
    try:
        with quiet_transformers():
            module.save_pretrained(folder)
    finally:
        config.num_hidden_layers = before
        setattr(upper.blocks.owner, upper.blocks.attribute, stack)
    for pattern in _TOKENIZER_FILES:
        for path in source.folder.glob(pattern):
            shutil.copy(path, folder / path.name)
