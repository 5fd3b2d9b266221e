"""A pretrained model on this disk, and one pass of texts through it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Literal, TypeAlias

import numpy as np

from evenmatch.errors import InputError
from evenmatch.types import Array, Run
from evenmatch.vectors import checkpoints
from evenmatch.vectors.adapter import Adapter, inserted
from evenmatch.vectors.adapter_files import find_adapter, load_adapter
from evenmatch.vectors.blocks import Blocks, Forward, load_blocks, run_batch, run_end_to_end
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.packing import (
    end_to_end_batches,
    equal_length_batches,
    owners,
    windows,
)
from evenmatch.vectors.side_by_side import side_by_side
from evenmatch.vectors.states import States
from evenmatch.vectors.tokens import Cut, Tokens, load_tokens

Long: TypeAlias = Literal["truncate", "windows", "error"]


@dataclass(frozen=True)
class Pretrained:
    """Which model, and how it treats a text longer than it can take.

    With `pad_to` every text is padded to that many pieces, and cut off there. `adapter` names one
    that is switched on.
    """

    model: str
    long: Long = "truncate"
    trust_remote_code: bool = False
    pad_to: int = 0
    adapter: str = ""

    def checkpoint(self) -> Checkpoint:
        """Where the model lies and what it is."""
        return checkpoints.find(self.model)

    def tokens(self) -> Tokens:
        """The model's tokenizer; what texts are padded to is its limit."""
        found = load_tokens(self.checkpoint(), self.trust_remote_code)
        return self._limited(found) if self.pad_to else found

    def _limited(self, tokens: Tokens) -> Tokens:
        if tokens.padding is None:
            raise InputError(f"{self.model} has no padding token; leave its texts unpadded")
        least = len(tokens.opening) + len(tokens.closing) + 1
        if not least <= self.pad_to <= tokens.limit:
            raise InputError(
                f"{self.model} can be padded to {least} up to {tokens.limit} pieces, "
                f"got {self.pad_to}"
            )
        return dataclasses.replace(tokens, limit=self.pad_to)

    def identity(self) -> str:
        """Everything that a text's states depend on, apart from the text and the layer."""
        padding = [f"padded to {self.pad_to}"] if self.pad_to else []
        adapter = [f"adapter {find_adapter(self.adapter).digest}"] if self.adapter else []
        return " ".join([self.checkpoint().digest, self.long, *_versions(), *padding, *adapter])

    def keys(self, texts: Sequence[str]) -> list[Array]:
        """The ids of each text's pieces, marks included, as far as the model would see them."""
        tokens, unique = self.tokens(), list(dict.fromkeys(texts))
        seen = [np.concatenate(self._sequences(keys, tokens)) for keys in tokens.keys(unique)]
        found = dict(zip(unique, seen, strict=True))
        return [found[text] for text in texts]

    def encode(self, texts: Sequence[str], layers: Sequence[int], run: Run) -> list[States]:
        """Each text's states at `layers`, computed no deeper than the deepest of them."""
        tokens = self.tokens()
        cuts = tokens(texts)
        sequences = [self._sequences(cut.keys, tokens) for cut in cuts]
        blocks = load_blocks(self.checkpoint(), self.trust_remote_code, run.device)
        flat = [s for own in sequences for s in own]
        filler = tokens.padding[0] if tokens.padding else 0
        with blocks.cut_to(layers) as forward, inserted(blocks, self._adapter()):
            states = iter(_run(forward, blocks, flat, layers, run, self.pad_to, filler))
        return [
            self._joined(text, cut, [next(states) for _ in own], tokens)
            for text, cut, own in zip(texts, cuts, sequences, strict=True)
        ]

    def _adapter(self) -> Adapter | None:
        return load_adapter(find_adapter(self.adapter)) if self.adapter else None

    def _sequences(self, keys: Array, tokens: Tokens) -> list[Array]:
        """What the model is given for one text: all of it, its beginning, or windows."""
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
            keys, spans, marks = self._padded(cut, tokens)
            return States(text, keys, spans, marks, runs[0], cut.flags)
        if self.long == "windows":
            joined = {layer: _stitched([r[layer] for r in runs], cut, tokens) for layer in runs[0]}
            return States(text, cut.keys, cut.spans, cut.marks, joined, cut.flags)
        first, last = len(tokens.opening), len(cut.keys) - len(tokens.closing)
        keep = np.r_[0 : first + tokens.width, last : len(cut.keys)]
        marks = tokens.marks(tokens.limit)
        flags = cut.flags | {"truncated"}
        return States(text, cut.keys[keep], cut.spans[keep], marks, runs[0], flags)

    def _padded(self, cut: Cut, tokens: Tokens) -> tuple[Array, Array, Mapping[int, str]]:
        """A text's pieces, spans and marks; paddings are marks that follow it."""
        missing = max(0, self.pad_to - len(cut.keys))
        if not missing or tokens.padding is None:
            return cut.keys, cut.spans, cut.marks
        key, name = tokens.padding
        keys = np.concatenate([cut.keys, np.full(missing, key, cut.keys.dtype)])
        spans = np.concatenate([cut.spans, np.zeros((missing, 2), cut.spans.dtype)])
        return keys, spans, {**cut.marks, **dict.fromkeys(range(len(cut.keys), len(keys)), name)}


@cache  # each time is a file of some thousand lines
def _versions() -> list[str]:
    from importlib.metadata import version

    return [f"{name} {version(name)}" for name in ("evenmatch", "torch", "transformers")]


def _stitched(parts: list[Array], cut: Cut, tokens: Tokens) -> Array:
    """One vector per piece, each from the window where it has most context on both sides."""
    first, inner = len(tokens.opening), len(cut.keys) - len(tokens.opening) - len(tokens.closing)
    owner = np.array(owners(inner, tokens.width))
    starts = np.array([start for start, _ in windows(inner, tokens.width)])
    rows = np.arange(inner) - starts[owner] + first
    middle = np.stack(parts)[owner, rows]
    return np.concatenate([parts[0][:first], middle, parts[-1][first + tokens.width :]])


def _run(
    forward: Forward,
    blocks: Blocks,
    sequences: Sequence[Array],
    layers: Sequence[int],
    run: Run,
    pad_to: int,
    filler: int,
) -> list[dict[int, Array]]:
    """Every sequence through the model in batches without padding; results in input order.

    All states of a layer lie in one array, batch after batch. Kept batch by batch, they would lie
    scattered among what the model needs in passing, with holes that nothing fits: four times the
    texts then took a third more memory.
    """
    widths = [max(len(s), pad_to) for s in sequences]
    end_to_end = blocks.end_to_end and not pad_to
    batches = list(
        (end_to_end_batches if end_to_end else equal_length_batches)(widths, run.batch_tokens)
    )
    places = _places(batches, widths)
    rooms: dict[int, Array] = {}
    lock = Lock()

    def room(layer: int, dim: int) -> Array:
        with lock:
            if layer not in rooms:
                rooms[layer] = np.empty((sum(widths), dim), np.float32)
            return rooms[layer]

    def one(batch: list[int]) -> None:
        own = [sequences[index] for index in batch]
        lengths = [len(sequence) for sequence in own]
        if end_to_end:
            states = run_end_to_end(forward, np.concatenate(own), lengths, blocks.device)
        else:
            ids = np.full((len(batch), widths[batch[0]]), filler)
            for row, sequence in zip(ids, own, strict=True):
                row[: len(sequence)] = sequence
            states = run_batch(forward, ids, lengths, blocks.device)
        for layer, found in states.items():
            start = places[batch[0]].start
            room(layer, found.shape[-1])[start : start + len(found)] = found

    side_by_side(one, batches, run)
    return [{layer: rooms[layer][places[i]] for layer in layers} for i in range(len(sequences))]


def _places(batches: Sequence[Sequence[int]], widths: Sequence[int]) -> dict[int, slice]:
    """Where each sequence's states lie when all batches lie one after the other."""
    places: dict[int, slice] = {}
    stop = 0
    for index in (index for batch in batches for index in batch):
        start, stop = stop, stop + widths[index]
        places[index] = slice(start, stop)
    return places
