"""A pretrained model on this disk, and one pass of texts through it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal, TypeAlias

import numpy as np

from evenmatch.errors import InputError
from evenmatch.types import Array, Run
from evenmatch.vectors import checkpoints
from evenmatch.vectors.blocks import Blocks, load_blocks
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.packing import equal_length_batches, owners, windows
from evenmatch.vectors.states import States
from evenmatch.vectors.tokens import Cut, Tokens, load_tokens

Long: TypeAlias = Literal["truncate", "windows", "error"]


@dataclass(frozen=True)
class Pretrained:
    """Which model, and how it treats a text longer than it can take."""

    model: str
    long: Long = "truncate"
    trust_remote_code: bool = False

    def checkpoint(self) -> Checkpoint:
        """Where the model lies and what it is."""
        return checkpoints.find(self.model)

    def tokens(self) -> Tokens:
        """The model's tokenizer."""
        return load_tokens(self.checkpoint(), self.trust_remote_code)

    def identity(self) -> str:
        """Everything that a text's states depend on, apart from the text and the layer."""
        versions = [f"{name} {version(name)}" for name in ("torch", "transformers")]
        return " ".join([self.checkpoint().digest, self.long, *versions])

    def keys(self, texts: Sequence[str]) -> list[Array]:
        """The ids of each text's pieces, marks included, as far as the model would see them."""
        tokens = self.tokens()
        return [np.concatenate(self._sequences(cut, tokens)) for cut in tokens(texts)]

    def encode(self, texts: Sequence[str], layers: Sequence[int], run: Run) -> list[States]:
        """Each text's states at `layers`, computed no deeper than the deepest of them."""
        tokens = self.tokens()
        cuts = tokens(texts)
        sequences = [self._sequences(cut, tokens) for cut in cuts]
        blocks = load_blocks(self.checkpoint(), self.trust_remote_code, run.device)
        states = iter(_run(blocks, [s for own in sequences for s in own], layers, run))
        return [
            self._joined(text, cut, [next(states) for _ in own], tokens)
            for text, cut, own in zip(texts, cuts, sequences, strict=True)
        ]

    def _sequences(self, cut: Cut, tokens: Tokens) -> list[Array]:
        """What the model is given for one text: all of it, its beginning, or windows."""
        keys = cut.keys
        if len(keys) <= tokens.limit:
            return [keys]
        if self.long == "error":
            raise InputError(
                f"a text has {len(keys)} pieces and {self.model} takes {tokens.limit}; "
                "shorten it, or say long='truncate' or long='windows'"
            )
        first, last = len(tokens.opening), len(keys) - len(tokens.closing)
        inner, width = keys[first:last], tokens.width
        cuts = windows(len(inner), width) if self.long == "windows" else [(0, width)]
        return [np.concatenate([keys[:first], inner[a:b], keys[last:]]) for a, b in cuts]

    def _joined(self, text: str, cut: Cut, runs: list[dict[int, Array]], tokens: Tokens) -> States:
        """One text's states from the sequences it was run as."""
        if len(cut.keys) <= tokens.limit:
            return States(text, cut.keys, cut.spans, cut.marks, runs[0], cut.flags)
        if self.long == "windows":
            joined = {layer: _stitched([r[layer] for r in runs], cut, tokens) for layer in runs[0]}
            return States(text, cut.keys, cut.spans, cut.marks, joined, cut.flags)
        first, last = len(tokens.opening), len(cut.keys) - len(tokens.closing)
        keep = np.r_[0 : first + tokens.width, last : len(cut.keys)]
        marks = tokens.marks(tokens.limit)
        flags = cut.flags | {"truncated"}
        return States(text, cut.keys[keep], cut.spans[keep], marks, runs[0], flags)


def _stitched(parts: list[Array], cut: Cut, tokens: Tokens) -> Array:
    """One vector per piece, each from the window where it has most context on both sides."""
    first, inner = len(tokens.opening), len(cut.keys) - len(tokens.opening) - len(tokens.closing)
    owner = np.array(owners(inner, tokens.width))
    starts = np.array([start for start, _ in windows(inner, tokens.width)])
    rows = np.arange(inner) - starts[owner] + first
    middle = np.stack(parts)[owner, rows]
    return np.concatenate([parts[0][:first], middle, parts[-1][first + tokens.width :]])


def _run(
    blocks: Blocks, sequences: Sequence[Array], layers: Sequence[int], run: Run
) -> list[dict[int, Array]]:
    """Every sequence through the model in batches of equal length; results in input order."""
    results: list[dict[int, Array]] = [{} for _ in sequences]
    with _threads(run.threads):
        for batch in equal_length_batches([len(s) for s in sequences], run.batch_tokens):
            states = blocks(np.stack([sequences[i] for i in batch]), layers)
            for row, index in enumerate(batch):
                results[index] = {layer: states[layer][row] for layer in layers}
    return results


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Torch with `count` threads, and as it was afterwards; 0 leaves it alone."""
    import torch

    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
