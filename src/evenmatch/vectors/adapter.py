"""Adapters: a small bottleneck behind the feed-forward part of each block, on hooks.

Pfeiffer et al.'s (2021) form, as paper 003 uses it: with z the sum of the feed-forward part's
output and its residual, a block that ends in a layer norm gives LN(z + up(relu(down(LN(z)))))
instead of LN(z). Where the norm comes first (T5) there is none to apply, and z becomes
z + up(relu(down(z))). Without its hooks the model is the original, bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from evenmatch.errors import InputError
from evenmatch.vectors.blocks import Blocks

FACTOR = 16  # how many times narrower the bottleneck is than a vector
_SPREAD = 0.02  # of the first weights, as AdapterHub has it

# Where a block's last layer norm stands, by kind of model; '' is a block without one at its end.
_LAST_NORM: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "bert",
            "roberta",
            "xlm-roberta",
            "camembert",
            "electra",
            "mpnet",
            "deberta",
            "deberta-v2",
        ),
        "output.LayerNorm",
    ),
    "distilbert": "output_layer_norm",
    "bart": "final_layer_norm",
    **dict.fromkeys(("t5", "mt5", "umt5"), ""),
}


@dataclass(frozen=True, eq=False)
class Adapter:
    """The weights of the bottlenecks, block by block: `0.down.weight`, `0.down.bias`, `0.up.…`."""

    weights: Mapping[str, Any]

    @property
    def blocks(self) -> int:
        """How many blocks, from the lowest, have a bottleneck."""
        return 1 + max(int(name.partition(".")[0]) for name in self.weights)

    @property
    def dim(self) -> int:
        """How long a vector must be."""
        return int(self.weights["0.down.weight"].shape[1])

    def parameters(self) -> list[Any]:
        """The weights that learn."""
        return list(self.weights.values())


def new_adapter(dim: int, blocks: int, *, factor: int = FACTOR, seed: int = 0) -> Adapter:
    """An adapter that knows nothing yet: small random weights, no bias."""
    import torch

    if factor < 1 or dim // factor < 1:
        raise InputError(f"vectors of {dim} numbers cannot be made {factor} times narrower")
    draw = torch.Generator().manual_seed(seed)
    narrow, weights = dim // factor, {}
    for block in range(blocks):
        for name, (rows, columns) in {"down": (narrow, dim), "up": (dim, narrow)}.items():
            spread = torch.randn((rows, columns), generator=draw) * _SPREAD
            weights[f"{block}.{name}.weight"] = spread.requires_grad_(True)
            weights[f"{block}.{name}.bias"] = torch.zeros(rows, requires_grad=True)
    return Adapter(weights)


@contextmanager
def inserted(blocks: Blocks, adapter: Adapter | None) -> Iterator[None]:
    """Passes in which the adapter's bottlenecks stand behind their blocks; None changes nothing.

    The caller holds the lock of the blocks, or has them for itself.
    """
    with ExitStack() as undo:
        for place, weights in _places(blocks, adapter) if adapter else ():
            undo.callback(place.register_forward_hook(_hook(weights, place)).remove)
        yield


def _places(blocks: Blocks, adapter: Adapter) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Each module whose output an adapter changes, with its bottleneck's weights."""
    config = blocks.module.config
    kind = str(config.model_type)
    if kind not in _LAST_NORM or blocks.stack is None:
        raise InputError(
            f"there is no place for an adapter in a model of kind {kind!r}; "
            f"known: {', '.join(_LAST_NORM)}"
        )
    dim, height = int(config.hidden_size), len(blocks.stack)
    if adapter.dim != dim or adapter.blocks > height:
        raise InputError(
            f"the adapter is for {adapter.blocks} blocks of {adapter.dim} numbers, and this model "
            f"has {height} of {dim}; take one that was trained for it"
        )
    for number in range(adapter.blocks):
        block = blocks.stack[number]
        norm = _LAST_NORM[kind]
        place = block.get_submodule(norm) if norm else block.layer[-1]
        yield place, _of_block(adapter.weights, number)


def _of_block(weights: Mapping[str, Any], number: int) -> dict[str, Any]:
    start = f"{number}."
    return {k.removeprefix(start): w for k, w in weights.items() if k.startswith(start)}


def _hook(weights: Mapping[str, Any], place: Any) -> Any:
    from torch.nn.functional import linear, relu

    def bottleneck(states: Any) -> Any:
        own = {name: weight.to(states.device) for name, weight in weights.items()}
        narrow = relu(linear(states, own["down.weight"], own["down.bias"]))
        return linear(narrow, own["up.weight"], own["up.bias"])

    def behind_norm(module: Any, given: tuple[Any, ...], normed: Any) -> Any:
        # by `forward`, which calls no hook: this one would call itself
        return module.forward(given[0] + bottleneck(normed))

    def behind_sum(_: Any, __: tuple[Any, ...], out: Any) -> Any:
        return out + bottleneck(out)

    return behind_norm if "norm" in type(place).__name__.lower() else behind_sum
