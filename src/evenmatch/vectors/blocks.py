"""A transformer as a stack of blocks that can be left at any height."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from evenmatch.types import Array
from evenmatch.vectors.bert_files import load_bert
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.layers import depth
from evenmatch.vectors.loading import load_auto, placed

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
    end_to_end: bool = False  # whether texts of several lengths may lie in one row
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def cut_to(self, layers: Sequence[int]) -> Iterator[Forward]:
        """The stack without what lies above `layers`, for passes from any number of threads."""
        with self.lock, ExitStack() as undo:
            if self.owner is None:
                yield self._rounds(layers, undo)
            else:
                yield self._heights(layers, undo)

    def _heights(self, layers: Sequence[int], undo: ExitStack) -> Forward:
        deepest = max(layers)
        noted: dict[tuple[int, int], Any] = {}
        for layer in layers:
            if layer < deepest or deepest == 0:
                undo.callback(self._watch(layer, noted).remove)
        setattr(self.owner, self.attribute, self.stack[: max(deepest, 1)])
        undo.callback(setattr, self.owner, self.attribute, self.stack)

        def forward(ids: Any, seen: Any = None, **more: Any) -> dict[int, Any]:
            last = self.module(ids, attention_mask=seen, **more).last_hidden_state
            thread = threading.get_ident()
            lower = {n: noted.pop((thread, n)) for n in layers if (thread, n) in noted}
            return lower | ({deepest: last} if deepest else {})

        return forward

    def _rounds(self, layers: Sequence[int], undo: ExitStack) -> Forward:
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

    def _watch(self, layer: int, noted: dict[tuple[int, int], Any]) -> Any:
        """Note what goes into the block above `layer`, which is what comes out of `layer`."""

        def note(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            states = args[0] if args else named["hidden_states"]
            out = self.final_norm(states) if self.final_norm is not None else states
            noted[threading.get_ident(), layer] = out

        return self.stack[layer].register_forward_pre_hook(note, with_kwargs=True)


def run_batch(
    forward: Forward, ids: Array, lengths: Sequence[int], device: str
) -> dict[int, Array]:
    """Hidden states of sequences of one length: (pieces of all texts, dim) per layer.

    What comes after a text's own length is padding: it sees the text, and is not seen.
    """
    import torch

    with torch.inference_mode():
        given = torch.from_numpy(ids).to(device)
        return _by_piece(forward(given, _seen(given, lengths)), ids.size)


def run_end_to_end(
    forward: Forward, ids: Array, lengths: Sequence[int], device: str
) -> dict[int, Array]:
    """The same of sequences of several lengths, which lie end to end in one row of ids."""
    import torch

    with torch.inference_mode():
        return _by_piece(forward(torch.from_numpy(ids).to(device), lengths=lengths), ids.size)


def _by_piece(found: dict[int, Any], pieces: int) -> dict[int, Array]:
    """States by layer, without the rows that a model may have filled up after the last piece."""
    flat = {n: states.reshape(-1, states.shape[-1])[:pieces] for n, states in found.items()}
    return {n: states.float().cpu().numpy() for n, states in flat.items()}


def _seen(ids: Any, lengths: Sequence[int]) -> Any:
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
        return fresh_blocks(checkpoint, trust_remote_code, device)
    blocks = _stacked(plain, checkpoint, device, end_to_end=True)
    blocks.module.lay_out()
    return blocks


def fresh_blocks(checkpoint: Checkpoint, trust_remote_code: bool, device: str) -> Blocks:
    """The same, one's own to change, as who trains it must."""
    model = load_auto("AutoModel", checkpoint, trust_remote_code)[0]
    if getattr(model.config, "is_encoder_decoder", False):
        model = model.get_encoder()
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # a summary of the first token that no metric reads
    return _stacked(model, checkpoint, device)


def _stacked(
    model: Any, checkpoint: Checkpoint, device: str, *, end_to_end: bool = False
) -> Blocks:
    """A model with its blocks found, in evaluation mode and where it is to run."""
    module = placed(model.eval().requires_grad_(False), device)
    owner, attribute = find_stack(module, depth(checkpoint))
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
def load_embeddings(checkpoint: Checkpoint) -> Array:
    """A model's input embedding matrix, (vocabulary, dim)."""
    model, _ = load_auto("AutoModel", checkpoint, trust_remote_code=False)
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
