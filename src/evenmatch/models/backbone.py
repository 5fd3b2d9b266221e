"""Run texts through a pretrained transformer and return their hidden states.

`PretrainedBackbone` says which model, `open` finds it, and `OpenBackbone.encode` runs it:

1. Tokenize the texts; truncate a long text or split it into overlapping windows.
2. Load the model as a stack of `Blocks` and cut the stack above the deepest layer needed, so that
   no block is computed for nothing.
3. Run batches without padding on several threads (`_forward_batches`).
4. Put the hidden states of each text together again.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from threading import Lock
from typing import Any, Literal, TypeAlias

import numpy as np

from evenmatch.errors import InputError
from evenmatch.models.adapters import find_adapter, load_adapter, use_adapter
from evenmatch.models.checkpoints import Checkpoint, LocalFile, count_layers, find_checkpoint
from evenmatch.models.loading import (
    load_auto_model,
    load_packed_model,
    move_to_device,
    read_input_embeddings,
)
from evenmatch.models.tokenizer import HiddenStates as HiddenStates
from evenmatch.models.tokenizer import (
    ModelTokenizer,
    equal_length_batches,
    iter_chunks,
    load_model_tokenizer,
    owning_windows,
    packed_batches,
    sliding_windows,
)
from evenmatch.registry import CallContext
from evenmatch.types import Array, Run

LongTextMode: TypeAlias = Literal["truncate", "windows", "error"]


@dataclass(frozen=True)
class PretrainedBackbone:
    """A pretrained model, and how it handles texts longer than its limit.

    `long` truncates a long text, splits it into overlapping windows, or raises an error. With
    `pad_to` every text is padded to that many tokens and truncated there. `adapter` names an
    adapter to use; '' uses none.
    """

    model: str
    long: LongTextMode = "truncate"
    trust_remote_code: bool = False
    pad_to: int = 0
    adapter: str = ""

    def open(self, context: CallContext | None = None) -> OpenBackbone:
        """Find the model and the adapter on this machine; nothing is loaded yet."""
        context = context or CallContext()
        checkpoint = context.once(find_checkpoint, self.model)
        adapter = context.once(find_adapter, self.adapter) if self.adapter else None
        return OpenBackbone(self, checkpoint, adapter, context.run, context.chunk_cache())

    def checkpoint(self) -> Checkpoint:
        """Find the model on this machine."""
        return find_checkpoint(self.model)


@dataclass(frozen=True, eq=False)
class OpenBackbone:
    """A backbone for one call; all encoders of the call share its hidden states.

    Each encoder first names the layers it reads (`add_layers`). `hidden_states` then runs every
    text of a chunk once, for all these layers.
    """

    recipe: PretrainedBackbone
    checkpoint: Checkpoint
    adapter: LocalFile | None
    run: Run
    _states: dict[str, HiddenStates]  # of the texts of the current chunk
    _layers: set[int] = field(default_factory=set)

    @property
    def facts(self) -> tuple[str, ...]:
        """What a signature says of the cache: nothing if it does not change the scores."""
        cache = self.run.cache
        return () if cache is None or cache.exact else ("vectors compact",)

    def add_layers(self, *layers: int) -> None:
        """Have `hidden_states` return these layers too."""
        self._layers.update(layers)

    def hidden_states(self, texts: Sequence[str]) -> list[HiddenStates]:
        """Return each text's hidden states at the layers that were added."""
        new = [text for text in dict.fromkeys(texts) if text not in self._states]
        layers, cache = sorted(self._layers), self.run.cache
        if new and cache is None:
            self._states.update(zip(new, self.encode(new, layers), strict=True))
        elif new and cache is not None:
            from evenmatch.models.embedding_cache import encode_cached

            found = encode_cached(self._identity, new, layers, cache, self.encode)
            self._states.update(zip(new, found, strict=True))
        return [self._states[text] for text in texts]

    @cached_property
    def _identity(self) -> str:
        """A key of everything the hidden states depend on besides the text and the layer."""
        parts = [self.checkpoint.digest, self.recipe.long, *_library_versions()]
        parts += [f"padded to {self.recipe.pad_to}"] if self.recipe.pad_to else []
        parts += [f"adapter {self.adapter.digest}"] if self.adapter else []
        return " ".join(parts)

    @cached_property
    def tokenizer(self) -> ModelTokenizer:
        """The model's tokenizer; with `pad_to`, that is its limit."""
        tokens = load_model_tokenizer(self.checkpoint, self.recipe.trust_remote_code)
        pad_to = self.recipe.pad_to
        if not pad_to:
            return tokens
        if tokens.padding is None:
            raise InputError(f"{self.recipe.model} has no padding token; leave its texts unpadded")
        least = len(tokens.opening_tokens) + len(tokens.closing_tokens) + 1
        if not least <= pad_to <= tokens.max_tokens:
            raise InputError(
                f"{self.recipe.model} can be padded to {least} up to {tokens.max_tokens} tokens, "
                f"got {pad_to}"
            )
        return dataclasses.replace(tokens, max_tokens=pad_to)

    def token_ids(self, texts: Iterable[str]) -> Iterator[Array]:
        """Yield the token ids that the model is given for each text, special tokens included."""
        for chunk in iter_chunks(texts):
            unique = list(dict.fromkeys(chunk))
            found = zip(unique, self.tokenizer.token_ids(unique), strict=True)
            inputs = {text: np.concatenate(self._model_inputs(ids)) for text, ids in found}
            yield from (inputs[text] for text in chunk)

    def encode(self, texts: Sequence[str], layers: Sequence[int]) -> list[HiddenStates]:
        """Return each text's hidden states at `layers`; blocks above the deepest are not run."""
        tokenized = self.tokenizer(texts)
        inputs = [self._model_inputs(t.token_ids) for t in tokenized]
        blocks = load_blocks(self.checkpoint, self.recipe.trust_remote_code, self.run.device)
        flat = [sequence for sequences in inputs for sequence in sequences]
        pad_id = self.tokenizer.padding[0] if self.tokenizer.padding else 0
        with blocks.truncate_to(layers) as forward, ExitStack() as stack:
            if self.adapter:
                adapter = load_adapter(self.adapter)
                stack.enter_context(use_adapter(blocks.module, blocks.stack, adapter))
            states = iter(
                _forward_batches(
                    forward, blocks, flat, layers, self.run, self.recipe.pad_to, pad_id
                )
            )
        return [
            self._merge_sequences(t, [next(states) for _ in sequences])
            for t, sequences in zip(tokenized, inputs, strict=True)
        ]

    def _model_inputs(self, ids: Array) -> list[Array]:
        """Return the token sequences of one text: all of it, its beginning, or windows."""
        tokens = self.tokenizer
        if len(ids) <= tokens.max_tokens:
            return [ids]
        if self.recipe.long == "error":
            raise InputError(
                f"a text has {len(ids)} tokens and {self.recipe.model} takes {tokens.max_tokens}; "
                "shorten it, or set long='truncate' or long='windows'"
            )
        first, last = len(tokens.opening_tokens), len(ids) - len(tokens.closing_tokens)
        inner, width = ids[first:last], tokens.max_text_tokens
        split = self.recipe.long == "windows"
        windows = sliding_windows(len(inner), width) if split else [(0, width)]
        return [np.concatenate([ids[:first], inner[a:b], ids[last:]]) for a, b in windows]

    def _merge_sequences(
        self, tokenized: HiddenStates, outputs: list[dict[int, Array]]
    ) -> HiddenStates:
        """Merge the model's outputs for the sequences of one text into its hidden states."""
        tokens, layers, changes = self.tokenizer, outputs[0], dict[str, Any]()
        length, missing = len(tokenized.token_ids), self.recipe.pad_to - len(tokenized.token_ids)
        if length > tokens.max_tokens and self.recipe.long == "windows":
            layers = {
                layer: _stitch_windows([o[layer] for o in outputs], length, tokens)
                for layer in layers
            }
        elif length > tokens.max_tokens:
            tokenized = tokens.truncate(tokenized)
        elif missing > 0 and tokens.padding is not None:
            pad_id, name = tokens.padding
            added = dict.fromkeys(range(length, length + missing), name)
            changes["special_tokens"] = {**tokenized.special_tokens, **added}
            changes["token_ids"] = np.pad(tokenized.token_ids, (0, missing), constant_values=pad_id)
            changes["spans"] = np.pad(tokenized.spans, ((0, missing), (0, 0)))
        return dataclasses.replace(tokenized, layers=layers, **changes)


def resolve_model(part: Any, context: CallContext, **changes: Any) -> tuple[Any, tuple[str, ...]]:
    """Resolve the settings `model` and `adapter` of a part, and set `changes` as well."""
    checkpoint = context.once(find_checkpoint, part.model)
    facts = [f"model {checkpoint.label}"]
    if part.adapter:
        adapter = context.once(find_adapter, part.adapter)
        facts.append(f"adapter {adapter.label}")
        changes["adapter"] = adapter.name
    return dataclasses.replace(part, model=checkpoint.name, **changes), tuple(facts)


@cache  # reading a version parses a metadata file of some thousand lines
def _library_versions() -> list[str]:
    from importlib.metadata import version

    return [f"{name} {version(name)}" for name in ("evenmatch", "torch", "transformers")]


def _stitch_windows(parts: list[Array], length: int, tokens: ModelTokenizer) -> Array:
    """Return one vector per token, from the window where it has most context on both sides."""
    first = len(tokens.opening_tokens)
    inner = length - first - len(tokens.closing_tokens)
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
    pad_id: int,
) -> list[dict[int, Array]]:
    """Run every sequence through the model in batches without padding; results in input order.

    All hidden states of a layer are written into one array. Kept as one array per batch they would
    be scattered among the model's temporary arrays and fragment the memory: a run with four times
    the texts then took a third more memory.
    """
    widths = [max(len(s), pad_to) for s in sequences]
    use_packing = blocks.accepts_packed and not pad_to
    make_batches = packed_batches if use_packing else equal_length_batches
    batches = list(make_batches(widths, run.batch_tokens))
    order = [index for batch in batches for index in batch]
    stops = np.cumsum([widths[index] for index in order]).tolist()
    slices = {i: slice(stop - widths[i], stop) for i, stop in zip(order, stops, strict=True)}
    outputs: dict[int, Array] = {}  # by layer
    lock = Lock()

    def run_batch(batch: list[int]) -> None:
        members = [sequences[index] for index in batch]
        lengths = [len(sequence) for sequence in members]
        if use_packing:
            ids = np.concatenate(members)
        else:
            ids = np.full((len(batch), widths[batch[0]]), pad_id)
            for row, sequence in zip(ids, members, strict=True):
                row[: len(sequence)] = sequence
        start = slices[batch[0]].start
        for layer, rows in run_forward(forward, ids, lengths, blocks.device).items():
            with lock:
                if layer not in outputs:
                    outputs[layer] = np.empty((sum(widths), rows.shape[-1]), np.float32)
            outputs[layer][start : start + len(rows)] = rows

    run_in_threads(run_batch, batches, run)
    return [{layer: outputs[layer][slices[i]] for layer in layers} for i in range(len(sequences))]


def run_in_threads(one: Callable[[list[int]], None], batches: list[list[int]], run: Run) -> None:
    """Call `one` with every batch, on as many threads as `run` allows, one batch per thread.

    Threads that share a batch wait for each other after every product. With other work on the same
    cores, that was ten times slower than a batch per thread.
    """
    from concurrent.futures import ThreadPoolExecutor

    import torch

    def checked(batch: list[int]) -> None:
        if run.check_cost:
            run.check()
        one(batch)

    before = torch.get_num_threads()
    threads = run.threads or before
    workers = min(threads, len(batches)) if run.device == "cpu" else 1
    torch.set_num_threads(max(1, threads // max(workers, 1)))
    try:
        with ThreadPoolExecutor(max(workers, 1)) as pool:
            for _ in pool.map(checked, batches):
                pass
    finally:
        torch.set_num_threads(before)


# Names of the layer norm that a stack applies once after its last block. A truncated stack applies
# it after its own last block, as a model with fewer blocks would.
_FINAL_NORMS = ("final_layer_norm", "final_norm", "ln_f", "norm", "layer_norm")


# A forward pass: returns hidden states by layer. It takes the ids of sequences of one length and an
# optional attention mask; or, if the model accepts packed texts, their ids in one flat array and
# their lengths.
Forward: TypeAlias = Callable[..., dict[int, Any]]


@dataclass(frozen=True, eq=False)
class Blocks:
    """A transformer encoder as a stack of blocks that can be truncated at any layer."""

    module: Any
    owner: Any  # the module that holds the list of blocks; None if blocks share their weights
    attribute: str  # the name of that list
    stack: Any  # the list itself
    final_norm: Any
    device: str
    accepts_packed: bool = False  # whether texts of several lengths may be packed into one array
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def truncate_to(self, layers: Sequence[int]) -> Iterator[Forward]:
        """Yield a forward pass without the blocks above `layers`; several threads may call it."""
        with self.lock, ExitStack() as undo:
            if self.owner is None:
                yield self._shared_forward(layers, undo)
            else:
                yield self._truncated_forward(layers, undo)

    def _truncated_forward(self, layers: Sequence[int], undo: ExitStack) -> Forward:
        deepest = max(layers)
        captured: dict[tuple[int, int], Any] = {}  # by thread and layer

        def capture(layer: int, _: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            states = args[0] if args else named["hidden_states"]
            out = self.final_norm(states) if self.final_norm is not None else states
            captured[threading.get_ident(), layer] = out

        for layer in layers:
            if layer < deepest or deepest == 0:
                # The input of the block above a layer is the output of that layer.
                block, hook = self.stack[layer], partial(capture, layer)
                undo.callback(block.register_forward_pre_hook(hook, with_kwargs=True).remove)
        # Layer 0 is captured as the input of the first block, so at least one block is kept.
        setattr(self.owner, self.attribute, self.stack[: max(deepest, 1)])
        undo.callback(setattr, self.owner, self.attribute, self.stack)

        def forward(ids: Any, mask: Any = None, **more: Any) -> dict[int, Any]:
            last = self.module(ids, attention_mask=mask, **more).last_hidden_state
            thread = threading.get_ident()
            lower = {n: captured.pop((thread, n)) for n in layers if (thread, n) in captured}
            return lower | ({deepest: last} if deepest else {})

        return forward

    def _shared_forward(self, layers: Sequence[int], undo: ExitStack) -> Forward:
        """Truncate a model that repeats one block (ALBERT) by repeating it less often."""
        config = self.module.config
        undo.callback(setattr, config, "num_hidden_layers", config.num_hidden_layers)
        if getattr(config, "num_hidden_groups", 0) == 1:
            # At least one block: the model records its input, which is layer 0, along with it.
            config.num_hidden_layers = max(1, *layers)

        def forward(ids: Any, mask: Any = None) -> dict[int, Any]:
            output = self.module(ids, attention_mask=mask, output_hidden_states=True)
            return {layer: output.hidden_states[layer] for layer in layers}

        return forward


def run_forward(
    forward: Forward, ids: Array, lengths: Sequence[int], device: str
) -> dict[int, Array]:
    """Return the hidden states of all tokens in order: (tokens, dim) per layer.

    `ids` is flat for texts of several `lengths` packed into one array; else each row is a text.
    Positions after a text's own length are padding: they attend to the text, but not vice versa.
    """
    import torch

    with torch.inference_mode():
        given = torch.from_numpy(ids).to(device)
        if ids.ndim == 1:
            by_layer = forward(given, lengths=lengths)
        elif min(lengths) == ids.shape[1]:
            by_layer = forward(given)  # attention is faster without a mask
        else:
            mask = np.arange(ids.shape[1]) < np.array(lengths)[:, None]
            by_layer = forward(given, torch.from_numpy(mask).long().to(device))
        # A packed model may have padding rows after the last token.
        flat = {
            n: states.reshape(-1, states.shape[-1])[: ids.size] for n, states in by_layer.items()
        }
        return {n: states.float().cpu().numpy() for n, states in flat.items()}


@lru_cache(maxsize=2)
def load_blocks(checkpoint: Checkpoint, trust_remote_code: bool, device: str) -> Blocks:
    """Load the encoder of a checkpoint, verified and in evaluation mode; callers share it."""
    plain = load_packed_model(checkpoint)
    if plain is None:
        return load_trainable_blocks(checkpoint, trust_remote_code, device)
    blocks = _make_blocks(plain, checkpoint, device, accepts_packed=True)
    blocks.module.prepack()
    return blocks


def load_trainable_blocks(checkpoint: Checkpoint, trust_remote_code: bool, device: str) -> Blocks:
    """Load a separate copy of the encoder with transformers, which the caller may change."""
    model = load_auto_model("AutoModel", checkpoint, trust_remote_code)[0]
    if getattr(model.config, "is_encoder_decoder", False):
        model = model.get_encoder()
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # a projection of the first token that no metric reads
    return _make_blocks(model, checkpoint, device)


def _make_blocks(
    model: Any, checkpoint: Checkpoint, device: str, *, accepts_packed: bool = False
) -> Blocks:
    """Move a model to the device, in evaluation mode, and find its blocks."""
    module = move_to_device(model.eval().requires_grad_(False), device)
    owner, attribute = find_stack(module, count_layers(checkpoint))
    norms = (getattr(module, name, None) for name in _FINAL_NORMS)
    stack = getattr(owner, attribute) if owner is not None else None
    final_norm = next((norm for norm in norms if norm is not None), None)
    return Blocks(module, owner, attribute, stack, final_norm, device, accepts_packed)


@lru_cache(maxsize=2)
def load_input_embeddings(checkpoint: Checkpoint) -> Array:
    """Load a model's input embedding matrix, (vocabulary, dim)."""
    if (matrix := read_input_embeddings(checkpoint)) is not None:
        return matrix
    model, _ = load_auto_model("AutoModel", checkpoint, trust_remote_code=False)
    weight = model.get_input_embeddings().weight
    return weight.detach().float().numpy()


def find_stack(module: Any, count: int) -> tuple[Any, str]:
    """Find the module and attribute that list the blocks; (None, '') if blocks are shared."""
    import torch

    for owner in module.modules():
        for name, child in owner.named_children():
            if isinstance(child, torch.nn.ModuleList) and len(child) == count:
                return owner, name
    return None, ""
