"""A pretrained model on this disk, and one pass of texts through it.

A transformer as a stack of blocks that can be left at any height.

Batches through a model, as many at a time as there are threads.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from threading import Lock
from typing import Any, Literal, TypeAlias

import numpy as np

from evenmatch.errors import InputError
from evenmatch.models.adapters import Adapter, find_adapter, load_adapter, use_adapter
from evenmatch.models.checkpoints import Checkpoint, find_checkpoint
from evenmatch.models.hidden_states import HiddenStates
from evenmatch.models.layers import count_layers
from evenmatch.models.loading import load_auto_model, load_bert, move_to_device
from evenmatch.models.packing import (
    equal_length_batches,
    owning_windows,
    packed_batches,
    sliding_windows,
)
from evenmatch.models.tokenizer import ModelTokenizer, TokenizedText, load_model_tokenizer
from evenmatch.types import Array, Run

LongTextMode: TypeAlias = Literal["truncate", "windows", "error"]


@dataclass(frozen=True)
class PretrainedBackbone:
    """Which model, and how it treats a text longer than it can take.

    With `pad_to` every text is padded to that many pieces, and cut off there. `adapter` names one
    that is switched on.
    """

    model: str
    long: LongTextMode = "truncate"
    trust_remote_code: bool = False
    pad_to: int = 0
    adapter: str = ""

    def checkpoint(self) -> Checkpoint:
        """Where the model lies and what it is."""
        return find_checkpoint(self.model)

    def tokenizer(self) -> ModelTokenizer:
        """The model's tokenizer; what texts are padded to is its limit."""
        found = load_model_tokenizer(self.checkpoint(), self.trust_remote_code)
        return self._limit_to_padding(found) if self.pad_to else found

    def _limit_to_padding(self, tokens: ModelTokenizer) -> ModelTokenizer:
        if tokens.padding is None:
            raise InputError(f"{self.model} has no padding token; leave its texts unpadded")
        least = len(tokens.opening_tokens) + len(tokens.closing_tokens) + 1
        if not least <= self.pad_to <= tokens.max_tokens:
            raise InputError(
                f"{self.model} can be padded to {least} up to {tokens.max_tokens} pieces, "
                f"got {self.pad_to}"
            )
        return dataclasses.replace(tokens, max_tokens=self.pad_to)

    def identity(self) -> str:
        """Everything that a text's states depend on, apart from the text and the layer."""
        padding = [f"padded to {self.pad_to}"] if self.pad_to else []
        adapter = [f"adapter {find_adapter(self.adapter).digest}"] if self.adapter else []
        return " ".join(
            [self.checkpoint().digest, self.long, *_library_versions(), *padding, *adapter]
        )

    def token_ids(self, texts: Sequence[str]) -> list[Array]:
        """The ids of each text's pieces, marks included, as far as the model would see them."""
        tokens, unique = self.tokenizer(), list(dict.fromkeys(texts))
        seen = [
            np.concatenate(self._model_inputs(keys, tokens)) for keys in tokens.token_ids(unique)
        ]
        found = dict(zip(unique, seen, strict=True))
        return [found[text] for text in texts]

    def encode(self, texts: Sequence[str], layers: Sequence[int], run: Run) -> list[HiddenStates]:
        """Each text's states at `layers`, computed no deeper than the deepest of them."""
        tokens = self.tokenizer()
        cuts = tokens(texts)
        sequences = [self._model_inputs(cut.token_ids, tokens) for cut in cuts]
        blocks = load_blocks(self.checkpoint(), self.trust_remote_code, run.device)
        flat = [s for own in sequences for s in own]
        filler = tokens.padding[0] if tokens.padding else 0
        with blocks.truncate_to(layers) as forward, use_adapter(blocks, self._adapter()):
            states = iter(_forward_batches(forward, blocks, flat, layers, run, self.pad_to, filler))
        return [
            self._merge_sequences(text, cut, [next(states) for _ in own], tokens)
            for text, cut, own in zip(texts, cuts, sequences, strict=True)
        ]

    def _adapter(self) -> Adapter | None:
        return load_adapter(find_adapter(self.adapter)) if self.adapter else None

    def _model_inputs(self, keys: Array, tokens: ModelTokenizer) -> list[Array]:
        """What the model is given for one text: all of it, its beginning, or windows."""
        if len(keys) <= tokens.max_tokens:
            return [keys]
        if self.long == "error":
            raise InputError(
                f"a text has {len(keys)} pieces and {self.model} takes {tokens.max_tokens}; "
                "shorten it, or say long='truncate' or long='windows'"
            )
        first, last = len(tokens.opening_tokens), len(keys) - len(tokens.closing_tokens)
        inner, width = keys[first:last], tokens.max_text_tokens
        cuts = sliding_windows(len(inner), width) if self.long == "windows" else [(0, width)]
        return [np.concatenate([keys[:first], inner[a:b], keys[last:]]) for a, b in cuts]

    def _merge_sequences(
        self, text: str, cut: TokenizedText, runs: list[dict[int, Array]], tokens: ModelTokenizer
    ) -> HiddenStates:
        """One text's states from the sequences it was run as."""
        if len(cut.token_ids) <= tokens.max_tokens:
            keys, spans, marks = self._pad(cut, tokens)
            return HiddenStates(text, keys, spans, marks, runs[0], cut.flags)
        if self.long == "windows":
            joined = {
                layer: _stitch_windows([r[layer] for r in runs], cut, tokens) for layer in runs[0]
            }
            return HiddenStates(
                text, cut.token_ids, cut.spans, cut.special_tokens, joined, cut.flags
            )
        first, last = len(tokens.opening_tokens), len(cut.token_ids) - len(tokens.closing_tokens)
        keep = np.r_[0 : first + tokens.max_text_tokens, last : len(cut.token_ids)]
        marks = tokens.special_token_positions(tokens.max_tokens)
        flags = cut.flags | {"truncated"}
        return HiddenStates(text, cut.token_ids[keep], cut.spans[keep], marks, runs[0], flags)

    def _pad(
        self, cut: TokenizedText, tokens: ModelTokenizer
    ) -> tuple[Array, Array, Mapping[int, str]]:
        """A text's pieces, spans and marks; paddings are marks that follow it."""
        missing = max(0, self.pad_to - len(cut.token_ids))
        if not missing or tokens.padding is None:
            return cut.token_ids, cut.spans, cut.special_tokens
        key, name = tokens.padding
        keys = np.concatenate([cut.token_ids, np.full(missing, key, cut.token_ids.dtype)])
        spans = np.concatenate([cut.spans, np.zeros((missing, 2), cut.spans.dtype)])
        return (
            keys,
            spans,
            {**cut.special_tokens, **dict.fromkeys(range(len(cut.token_ids), len(keys)), name)},
        )


@cache  # each time is a file of some thousand lines
def _library_versions() -> list[str]:
    from importlib.metadata import version

    return [f"{name} {version(name)}" for name in ("evenmatch", "torch", "transformers")]


def _stitch_windows(parts: list[Array], cut: TokenizedText, tokens: ModelTokenizer) -> Array:
    """One vector per piece, each from the window where it has most context on both sides."""
    first, inner = (
        len(tokens.opening_tokens),
        len(cut.token_ids) - len(tokens.opening_tokens) - len(tokens.closing_tokens),
    )
    owner = np.array(owning_windows(inner, tokens.max_text_tokens))
    starts = np.array([start for start, _ in sliding_windows(inner, tokens.max_text_tokens)])
    rows = np.arange(inner) - starts[owner] + first
    middle = np.stack(parts)[owner, rows]
    return np.concatenate([parts[0][:first], middle, parts[-1][first + tokens.max_text_tokens :]])


def _forward_batches(
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
    end_to_end = blocks.accepts_packed and not pad_to
    batches = list(
        (packed_batches if end_to_end else equal_length_batches)(widths, run.batch_tokens)
    )
    places = _row_slices(batches, widths)
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
            states = forward_packed(forward, np.concatenate(own), lengths, blocks.device)
        else:
            ids = np.full((len(batch), widths[batch[0]]), filler)
            for row, sequence in zip(ids, own, strict=True):
                row[: len(sequence)] = sequence
            states = forward_batch(forward, ids, lengths, blocks.device)
        for layer, found in states.items():
            start = places[batch[0]].start
            room(layer, found.shape[-1])[start : start + len(found)] = found

    run_in_threads(one, batches, run)
    return [{layer: rooms[layer][places[i]] for layer in layers} for i in range(len(sequences))]


def _row_slices(batches: Sequence[Sequence[int]], widths: Sequence[int]) -> dict[int, slice]:
    """Where each sequence's states lie when all batches lie one after the other."""
    places: dict[int, slice] = {}
    stop = 0
    for index in (index for batch in batches for index in batch):
        start, stop = stop, stop + widths[index]
        places[index] = slice(start, stop)
    return places


# What a stack applies once after its last block. Leaving early means applying it there, which is
# what dropping the blocks above would do.
_FINAL_NORMS = ("final_layer_norm", "final_norm", "ln_f", "norm", "layer_norm")


# Ids of sequences of one length, and perhaps an attention mask, into states by layer; or ids of
# sequences that lie end to end, and their lengths, where the model takes those.
Forward: TypeAlias = Callable[..., dict[int, Any]]


@dataclass(frozen=True, eq=False)
class Blocks:
    """An encoder's module; where its blocks are listed, and how many there are."""

    module: Any
    owner: Any  # the module that holds the list of blocks, or None where they are shared
    attribute: str
    stack: Any
    final_norm: Any
    device: str
    accepts_packed: bool = False  # whether texts of several lengths may lie in one row
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def truncate_to(self, layers: Sequence[int]) -> Iterator[Forward]:
        """The stack without what lies above `layers`, for passes from any number of threads."""
        with self.lock, ExitStack() as undo:
            if self.owner is None:
                yield self._shared_forward(layers, undo)
            else:
                yield self._truncated_forward(layers, undo)

    def _truncated_forward(self, layers: Sequence[int], undo: ExitStack) -> Forward:
        deepest = max(layers)
        noted: dict[tuple[int, int], Any] = {}
        for layer in layers:
            if layer < deepest or deepest == 0:
                undo.callback(self._capture_layer(layer, noted).remove)
        setattr(self.owner, self.attribute, self.stack[: max(deepest, 1)])
        undo.callback(setattr, self.owner, self.attribute, self.stack)

        def forward(ids: Any, seen: Any = None, **more: Any) -> dict[int, Any]:
            last = self.module(ids, attention_mask=seen, **more).last_hidden_state
            thread = threading.get_ident()
            lower = {n: noted.pop((thread, n)) for n in layers if (thread, n) in noted}
            return lower | ({deepest: last} if deepest else {})

        return forward

    def _shared_forward(self, layers: Sequence[int], undo: ExitStack) -> Forward:
        """Where the same weights go round and round (ALBERT), fewer rounds leave the upper out."""
        config = self.module.config
        undo.callback(setattr, config, "num_hidden_layers", config.num_hidden_layers)
        if getattr(config, "num_hidden_groups", 0) == 1:
            # at least one, which is what notes the states that go into it
            config.num_hidden_layers = max(1, *layers)

        def forward(ids: Any, seen: Any = None) -> dict[int, Any]:
            run = self.module(ids, attention_mask=seen, output_hidden_states=True)
            return {layer: run.hidden_states[layer] for layer in layers}

        return forward

    def _capture_layer(self, layer: int, noted: dict[tuple[int, int], Any]) -> Any:
        """Note what goes into the block above `layer`, which is what comes out of `layer`."""

        def note(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            states = args[0] if args else named["hidden_states"]
            out = self.final_norm(states) if self.final_norm is not None else states
            noted[threading.get_ident(), layer] = out

        return self.stack[layer].register_forward_pre_hook(note, with_kwargs=True)


def forward_batch(
    forward: Forward, ids: Array, lengths: Sequence[int], device: str
) -> dict[int, Array]:
    """Hidden states of sequences of one length: (pieces of all texts, dim) per layer.

    What comes after a text's own length is padding: it sees the text, and is not seen.
    """
    import torch

    with torch.inference_mode():
        given = torch.from_numpy(ids).to(device)
        return _flatten_tokens(forward(given, _attention_mask(given, lengths)), ids.size)


def forward_packed(
    forward: Forward, ids: Array, lengths: Sequence[int], device: str
) -> dict[int, Array]:
    """The same of sequences of several lengths, which lie end to end in one row of ids."""
    import torch

    with torch.inference_mode():
        return _flatten_tokens(forward(torch.from_numpy(ids).to(device), lengths=lengths), ids.size)


def _flatten_tokens(found: dict[int, Any], pieces: int) -> dict[int, Array]:
    """States by layer, without the rows that a model may have filled up after the last piece."""
    flat = {n: states.reshape(-1, states.shape[-1])[:pieces] for n, states in found.items()}
    return {n: states.float().cpu().numpy() for n, states in flat.items()}


def _attention_mask(ids: Any, lengths: Sequence[int]) -> Any:
    """The attention mask, or None where nothing is padding: attention is faster without one."""
    import torch

    if min(lengths) == ids.shape[1]:
        return None
    place = torch.arange(ids.shape[1], device=ids.device)
    return (place < torch.tensor(lengths, device=ids.device)[:, None]).long()


@lru_cache(maxsize=2)
def load_blocks(checkpoint: Checkpoint, trust_remote_code: bool, device: str) -> Blocks:
    """The encoder of a model folder, verified, in evaluation mode; shared by all who ask."""
    plain = load_bert(checkpoint)
    if plain is None:
        return load_trainable_blocks(checkpoint, trust_remote_code, device)
    blocks = _make_blocks(plain, checkpoint, device, end_to_end=True)
    blocks.module.prepack()
    return blocks


def load_trainable_blocks(checkpoint: Checkpoint, trust_remote_code: bool, device: str) -> Blocks:
    """The same, one's own to change, as who trains it must."""
    model = load_auto_model("AutoModel", checkpoint, trust_remote_code)[0]
    if getattr(model.config, "is_encoder_decoder", False):
        model = model.get_encoder()
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # a summary of the first token that no metric reads
    return _make_blocks(model, checkpoint, device)


def _make_blocks(
    model: Any, checkpoint: Checkpoint, device: str, *, end_to_end: bool = False
) -> Blocks:
    """A model with its blocks found, in evaluation mode and where it is to run."""
    module = move_to_device(model.eval().requires_grad_(False), device)
    owner, attribute = find_stack(module, count_layers(checkpoint))
    norms = (getattr(module, name, None) for name in _FINAL_NORMS)
    return Blocks(
        module,
        owner,
        attribute,
        getattr(owner, attribute) if owner is not None else None,
        next((norm for norm in norms if norm is not None), None),
        device,
        end_to_end,
    )


@lru_cache(maxsize=2)
def load_input_embeddings(checkpoint: Checkpoint) -> Array:
    """A model's input embedding matrix, (vocabulary, dim)."""
    model, _ = load_auto_model("AutoModel", checkpoint, trust_remote_code=False)
    weight = model.get_input_embeddings().weight
    return weight.detach().float().numpy()


def find_stack(module: Any, count: int) -> tuple[Any, str]:
    """The module and attribute that list the blocks; (None, '') where blocks are shared."""
    import torch

    for owner in module.modules():
        for name, child in owner.named_children():
            if isinstance(child, torch.nn.ModuleList) and len(child) == count:
                return owner, name
    return None, ""


def run_in_threads(one: Callable[[list[int]], None], batches: list[list[int]], run: Run) -> None:
    """Every batch, as many at a time as there are threads, each on one of them.

    Threads that share one batch wait for each other after every product; beside other work on
    the same cores that made them ten times slower than threads with a batch each.
    """
    from concurrent.futures import ThreadPoolExecutor

    import torch

    before = torch.get_num_threads()
    threads = run.threads or before
    workers = min(threads, len(batches)) if run.device == "cpu" else 1
    torch.set_num_threads(max(1, threads // max(workers, 1)))
    try:
        with ThreadPoolExecutor(max(workers, 1)) as pool:
            for _ in pool.map(one, batches):
                pass
    finally:
        torch.set_num_threads(before)
