"""Whole models with an adapter: those that give a number, or predict a text."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evenmatch.errors import InputError
from evenmatch.vectors.adapter import insert
from evenmatch.vectors.adapter_files import AdapterFile, load_adapter
from evenmatch.vectors.blocks import find_stack
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.heads import Head, load_headed


@dataclass(frozen=True)
class Headed:
    """Which model with which head, and how it is loaded."""

    checkpoint: Checkpoint
    head: Head
    trust_remote_code: bool = False
    device: str = "cpu"
    weights: str = ""

    def load(self) -> Any:
        """The model as such, shared by all who ask."""
        return load_headed(
            self.checkpoint, self.head, self.trust_remote_code, self.device, self.weights
        )

    def fresh(self) -> HeadedBlocks:
        """The model as one's own to hang hooks on; only its weights are shared."""
        model = self.load()
        shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
        own = copy.deepcopy(model, shared)
        return HeadedBlocks(own, [block for stack in _stacks(own) for block in stack])

    def with_adapter(self, adapter: AdapterFile | None) -> Any:
        """The model with the adapter switched on; None is the model itself."""
        return _adapted(self, adapter) if adapter else self.load()


@dataclass(frozen=True, eq=False)
class HeadedBlocks:
    """A model with its head, and its blocks: those of an encoder first, then a decoder's."""

    module: Any
    stack: list[Any]


@lru_cache(maxsize=2)
def _adapted(headed: Headed, adapter: AdapterFile) -> Any:
    blocks = headed.fresh()
    insert(blocks, load_adapter(adapter))  # for good: the shared model stays without
    return blocks.module


def _stacks(model: Any) -> Iterator[Any]:
    """The lists of blocks, from the lowest."""
    config = model.config
    parts = [(model.base_model, config.num_hidden_layers)]
    if config.is_encoder_decoder:
        above = getattr(config, "decoder_layers", 0) or config.num_decoder_layers
        parts = [(model.get_encoder(), config.num_hidden_layers), (model.get_decoder(), above)]
    for part, count in parts:
        owner, name = find_stack(part, count)
        if owner is None:
            raise InputError(
                f"there is no place for an adapter in a model of kind {config.model_type!r}, "
                "whose blocks are one and the same"
            )
        yield getattr(owner, name)
