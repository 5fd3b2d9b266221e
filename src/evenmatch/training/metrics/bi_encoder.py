"""Train a bi-encoder: the upper blocks of an encoder, and a linear head over pair features.

The frozen lower blocks run once over every text; their hidden states are kept in a memory-mapped
file (`allocate_states`) and fed to the upper blocks (`PartlyFrozenEncoder`) in every step.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.files import explain_failed_write, set_ordinary_modes
from evenmatch.metrics.fitted import BiEncoderHead, pair_features_torch, save_bi_encoder_head
from evenmatch.models.adapters import Adapter, insert_adapter, new_adapter
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
    """Train a bi-encoder of `height` blocks and save it as a metric in the checkpoint's folder.

    The encoder and a linear head are trained to predict the targets with squared loss.
    """
    import torch

    source, folder = backbone.checkpoint(), checkpoint.folder
    encoder = load_partly_frozen(source, frozen, run.device, height)
    bi_encoder = make_bi_encoder(encoder, backbone, examples.texts, run)
    mean, spread = float(examples.targets.mean()), float(examples.targets.std())
    targets = (examples.targets - mean) / spread
    weights, bias = (
        torch.tensor(v, dtype=torch.float32, device=bi_encoder.device, requires_grad=True)
        for v in bi_encoder.fit_head(examples, targets, layers, settings.seed)
    )
    target_tensor = torch.tensor(targets, dtype=torch.float32, device=bi_encoder.device)

    def loss(batch: Array) -> Any:
        predicted = bi_encoder.extract_features(examples, batch, layers) @ weights + bias
        return ((predicted - target_tensor[batch]) ** 2).mean()

    groups = [
        {"params": encoder.parameters(), "lr": settings.rate},
        {"params": [weights, bias], "lr": settings.head_rate},
    ]
    lengths = bi_encoder.pair_lengths(examples).tolist()
    fit_weights(groups, lengths, settings, loss, checkpoint=checkpoint, progress=run.progress)
    final = weights.detach().cpu().double().numpy() * spread
    final_bias = mean + spread * float(bias.detach())
    save_encoder(encoder, source, folder)
    save_bi_encoder_head(BiEncoderHead(tuple(layers), final, final_bias, higher_is_better), folder)
    write_metric(folder, f"fitted(model={FOLDER_PLACEHOLDER})")


@dataclass(frozen=True, eq=False)
class AdapterStart:
    """What the training of an adapter begins with: its weights, and the weights of the head.

    `weights` has the head's features first and then one weight for each of the other metrics whose
    scores are features as well; None fits the initial weights to the data. `factor` is the hidden
    size divided by the width of the bottleneck. `layers` are those that the head reads.
    """

    adapter: Adapter | None = None
    weights: Array | None = None
    bias: float = 0.0
    factor: int = 4
    layers: tuple[int, ...] = ()


def train_adapter_head(
    backbone: PretrainedBackbone,
    examples: TrainingExamples,
    settings: FitSettings,
    run: Run,
    checkpoint: CheckpointFile,
    *,
    start: AdapterStart,
    frozen: int,
    layers: Sequence[int],
    scores: Array,
) -> tuple[Adapter, BiEncoderHead, Array]:
    """Train an adapter and a head, beside weights of other metrics' `scores` (examples, metrics).

    Targets are standardised and stay so. The first `frozen` blocks get no bottleneck. Returns the
    adapter, its head, and the weight of each other metric's score.
    """
    import torch

    height = count_layers(backbone.checkpoint())
    encoder = load_partly_frozen(backbone.checkpoint(), frozen, run.device)
    for weight in encoder.parameters():
        weight.requires_grad_(False)
    bi_encoder = make_bi_encoder(encoder, backbone, examples.texts, run)
    initial = start.adapter or new_adapter(
        encoder.dim, height, first=frozen, factor=start.factor, seed=settings.seed
    )
    trained = {n: w for n, w in initial.weights.items() if int(n.partition(".")[0]) >= frozen}
    for weight in trained.values():
        weight.requires_grad_(True)
    adapter = Adapter(trained)
    insert_adapter(encoder.blocks.module, encoder.blocks.stack, adapter)
    targets = (examples.targets - examples.targets.mean()) / examples.targets.std()
    means, deviations = scores.mean(0), scores.std(0)
    standard = (scores - means) / np.where(deviations > 0, deviations, 1.0)
    if start.weights is None:
        first = bi_encoder.fit_head(examples, targets, layers, settings.seed, standard)
    else:
        tail = len(start.weights) - len(deviations)
        scaled = start.weights * np.append(np.ones(tail), deviations)
        first = scaled, start.bias + float(start.weights[tail:] @ means)
    weights, bias = (
        torch.tensor(v, dtype=torch.float32, device=bi_encoder.device, requires_grad=True)
        for v in first
    )
    wanted, others = (
        torch.tensor(v, dtype=torch.float32, device=bi_encoder.device) for v in (targets, standard)
    )

    def loss(batch: Array) -> Any:
        features = bi_encoder.extract_features(examples, batch, layers)
        predicted = torch.cat([features, others[batch]], -1) @ weights + bias
        return ((predicted - wanted[batch]) ** 2).mean()

    groups = [
        {"params": list(trained.values()), "lr": settings.rate},
        {"params": [weights, bias], "lr": settings.head_rate},
    ]
    lengths = bi_encoder.pair_lengths(examples).tolist()
    fit_weights(groups, lengths, settings, loss, checkpoint=checkpoint, progress=run.progress)
    final = weights.detach().cpu().double().numpy()
    size = len(final) - standard.shape[1]
    own = final[size:] / np.where(deviations > 0, deviations, 1.0)
    final_bias = float(bias.detach()) - float(own @ means)
    return adapter, BiEncoderHead(tuple(layers), final[:size], final_bias), own


@dataclass(frozen=True, eq=False)
class TrainableBiEncoder:
    """An encoder, the frozen hidden states of all texts, and the counts of special tokens.

    `opening` and `closing` are the numbers of special tokens before and after each text.
    """

    encoder: PartlyFrozenEncoder
    frozen_states: list[Array]
    lengths: Array
    opening: int
    closing: int

    def encode_pairs(
        self, examples: TrainingExamples, batch: Array, layers: Sequence[int]
    ) -> list[tuple[dict[int, Any], Any]]:
        """Encode candidates and references in one pass: for each, states by layer and a token mask.

        The mask is False for padding and special tokens.
        """
        import torch

        states = self.pad_states(self.frozen_states, examples, batch)
        lengths = torch.from_numpy(self.lengths[examples.text_indices(batch)]).to(self.device)
        position = torch.arange(states.shape[1], device=self.device)
        found = self.encoder(states, position < lengths[:, None], layers)
        inner = (position >= self.opening) & (position < lengths[:, None] - self.closing)
        return [
            ({n: v[side] for n, v in found.items()}, inner[side])
            for side in (slice(len(batch)), slice(len(batch), None))
        ]

    def pad_states(self, states: list[Array], examples: TrainingExamples, batch: Array) -> Any:
        """Return the states of all candidates, then of all references, zero-padded."""
        import torch

        texts = examples.text_indices(batch)
        tensors = [torch.from_numpy(states[i]) for i in texts]
        return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True).to(self.device)

    def extract_features(
        self, examples: TrainingExamples, batch: Array, layers: Sequence[int]
    ) -> Any:
        """Compute the input features of the head for these examples."""
        x, y = self.encode_pairs(examples, batch, layers)
        return pair_features_torch(*x, *y, layers)

    def fit_head(
        self,
        examples: TrainingExamples,
        targets: Array,
        layers: Sequence[int],
        seed: int,
        scores: Array | None = None,
    ) -> tuple[Array, float]:
        """Fit initial weights of the head: see `fit_initial_head`."""
        return fit_initial_head(
            lambda batch: self.extract_features(examples, batch, layers),
            self.pair_lengths(examples),
            targets,
            seed,
            pooled=2 * self.encoder.dim,
            scores=scores,
        )

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
    import torch

    opened = backbone.open()
    sequences, tokens = list(opened.token_ids(texts)), opened.tokenizer
    lengths = np.array([len(s) for s in sequences])
    store = allocate_states(lengths, encoder.dim)
    for batch in equal_length_batches(lengths.tolist(), run.batch_tokens):
        ids = torch.from_numpy(np.stack([sequences[i] for i in batch]))
        found = encoder.frozen_states(ids.to(encoder.blocks.device)).float().cpu().numpy()
        for index, states in zip(batch, found, strict=True):
            store[index][:] = states
    specials = len(tokens.opening_tokens), len(tokens.closing_tokens)
    return TrainableBiEncoder(encoder, store, lengths, *specials)


def fit_initial_head(
    features: Callable[[Array], Any],
    lengths: Array,
    targets: Array,
    seed: int,
    *,
    pooled: int,
    scores: Array | None = None,
) -> tuple[Array, float]:
    """Fit the weights of the matches and of `scores` by ridge regression; all others are 0.

    So training starts from an ordinary alignment metric and not from random weights. `features`
    maps a batch of examples to their features, of which the first `pooled` are no matches.
    """
    import torch

    chosen = np.random.default_rng(seed).permutation(len(targets))[:_HEAD_SAMPLE]
    chosen = chosen[np.argsort(lengths[chosen], kind="stable")]
    batches = (chosen[i : i + _INFERENCE_BATCH] for i in range(0, len(chosen), _INFERENCE_BATCH))
    with torch.inference_mode():
        found = np.concatenate([features(batch).cpu().double().numpy() for batch in batches])
    if scores is not None:
        found = np.hstack([found, scores[chosen]])
    matches = found[:, pooled:]
    centred, wanted = matches - matches.mean(0), targets[chosen]
    gram = centred.T @ centred + 0.1 * np.eye(matches.shape[1])
    weights = np.zeros(found.shape[1])
    weights[pooled:] = np.linalg.solve(gram, centred.T @ (wanted - wanted.mean()))
    return weights, float(wanted.mean() - found.mean(0) @ weights)


@dataclass(frozen=True, eq=False)
class PartlyFrozenEncoder:
    """An encoder whose embeddings and first `frozen` blocks are not trained.

    `height` is the number of blocks used; blocks `frozen` to `height - 1` are trained.
    """

    blocks: Blocks
    frozen: int
    height: int

    @property
    def dim(self) -> int:
        """The size of a hidden state."""
        return int(self.blocks.module.config.hidden_size)

    def frozen_states(self, ids: Any) -> Any:
        """Return the output of the frozen blocks, which is the input of the first trained one."""
        import torch

        captured: list[Any] = []
        hooks = {self.frozen: captured.append}
        with self.only_blocks(0, self.frozen + 1, hooks), torch.inference_mode():
            self.blocks.module(ids)
        return captured[0]

    def __call__(self, states: Any, mask: Any, layers: Sequence[int]) -> dict[int, Any]:
        """Run the trained blocks on the output of the frozen ones; return states by layer.

        `states` are padded; `mask` is True at real tokens.
        """
        import torch

        found: dict[int, Any] = {}
        hooks: dict[int, Callable[[Any], Any]] = {
            layer: partial(found.__setitem__, layer) for layer in layers if layer < self.height
        }
        hooks[self.frozen] = lambda _: states
        ids = torch.zeros(mask.shape, dtype=torch.long, device=self.blocks.device)
        with self.only_blocks(self.frozen, self.height, hooks):
            last = self.blocks.module(ids, attention_mask=mask.long()).last_hidden_state
        norm = self.blocks.final_norm or (lambda states: states)
        return {layer: norm(states) for layer, states in found.items()} | {self.height: last}

    @contextmanager
    def only_blocks(
        self, start: int, stop: int, hooks: Mapping[int, Callable[[Any], Any]] = {}
    ) -> Iterator[None]:
        """Leave out the blocks before `start` and from `stop` on, inside the context.

        A hook gets the input of the block with its number, and may return another input.
        """
        owner, name, stack = self.blocks.owner, self.blocks.attribute, self.blocks.stack
        with ExitStack() as undo:
            undo.callback(setattr, owner, name, stack)
            setattr(owner, name, stack[start:stop])
            for layer, function in hooks.items():
                undo.callback(_hook_input(stack[layer], function).remove)
            yield

    def parameters(self) -> list[Any]:
        """The parameters that are trained."""
        return [
            p for block in self.blocks.stack[self.frozen : self.height] for p in block.parameters()
        ]


def _hook_input(block: Any, function: Callable[[Any], Any]) -> Any:
    """Call `function` with the block's input, and use what it returns, if anything, instead."""

    def hook(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        new = function(args[0] if args else named["hidden_states"])
        if new is None:
            return None
        return ((new, *args[1:]), named) if args else (args, {**named, "hidden_states": new})

    return block.register_forward_pre_hook(hook, with_kwargs=True)


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
        with encoder.only_blocks(0, encoder.height):
            whole = encoder.blocks.module(ids).last_hidden_state
        lower = encoder.frozen_states(ids)
        separate = encoder(lower, torch.ones_like(ids, dtype=torch.bool), [encoder.height])
    return bool(torch.allclose(whole, separate[encoder.height], atol=_TOLERANCE))


def allocate_states(lengths: Array, dim: int) -> list[Array]:
    """Return an array for the hidden states of each text, (tokens, dim), in a memory-mapped file.

    The file disappears with the process; the operating system keeps in memory what fits.
    """
    with tempfile.TemporaryFile() as file:  # the mapping stays valid after the file is closed
        rows = np.memmap(file, dtype=np.float32, mode="w+", shape=(int(lengths.sum()), dim))
    return np.split(np.asarray(rows), np.cumsum(lengths)[:-1])


def save_encoder(encoder: PartlyFrozenEncoder, source: Checkpoint, folder: Path) -> None:
    """Write the encoder, cut to `height` blocks, and the tokenizer files of its source."""
    folder.mkdir(parents=True, exist_ok=True)
    module, config = encoder.blocks.module, encoder.blocks.module.config
    before, config.num_hidden_layers = config.num_hidden_layers, encoder.height
    try:
        with (
            explain_failed_write(folder),
            encoder.only_blocks(0, encoder.height),
            quiet_transformers(),
        ):
            module.save_pretrained(folder)
            set_ordinary_modes(folder)
    finally:
        config.num_hidden_layers = before
    for pattern in _TOKENIZER_FILES:
        for path in source.folder.glob(pattern):
            shutil.copy(path, folder / path.name)
