"""Adapters: a small bottleneck behind the feed-forward part of each block, on hooks.

Pfeiffer et al.'s (2021) form, as paper 003 uses it: with z the sum of the feed-forward part's
output and its residual, a block that ends in a layer norm gives LN(z + up(relu(down(LN(z)))))
instead of LN(z). Where the norm comes first (T5, Llama) there is none to apply, and z becomes
z + up(relu(down(z))). Without its hooks the model is the original, bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from evenmatch.errors import InputError

FACTOR = 16  # how many times narrower the bottleneck is than a vector
_SPREAD = 0.02  # of the first weights, as AdapterHub has it

# Where a block's last layer norm stands, by kind of model; '' is a block that ends in a sum.
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
    **dict.fromkeys(("bart", "marian"), "final_layer_norm"),
    **dict.fromkeys(("t5", "mt5", "umt5", "mbart", "m2m_100"), ""),
    **dict.fromkeys(("gpt2", "llama", "mistral", "qwen2"), ""),
}


class Stacked(Protocol):
    """A model, and its blocks from the lowest, the decoder's above the encoder's."""

    @property
    def module(self) -> Any:
        """What has the config."""

    @property
    def stack(self) -> Any:
        """The blocks; None where all are the same one."""


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
def inserted(blocks: Stacked, adapter: Adapter | None) -> Iterator[None]:
    """Passes in which the adapter's bottlenecks stand behind their blocks; None changes nothing.

    The caller holds the lock of the blocks, or has them for itself.
    """
    with ExitStack() as undo:
        for hook in insert(blocks, adapter) if adapter else ():
            undo.callback(hook.remove)
        yield


def insert(blocks: Stacked, adapter: Adapter) -> list[Any]:
    """Put the adapter's bottlenecks behind their blocks; gives the hooks, which can be removed."""
    return [
        place.register_forward_hook(_hook(weights, place))
        for place, weights in _places(blocks, adapter)
    ]


def _places(blocks: Stacked, adapter: Adapter) -> Iterator[tuple[Any, dict[str, Any]]]:
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
        block, norm = blocks.stack[number], _LAST_NORM[kind]
        yield block.get_submodule(norm), _of_block(adapter.weights, number)


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
        if isinstance(out, tuple):  # T5's blocks hand on what they know of positions
            return out[0] + bottleneck(out[0]), *out[1:]
        return out + bottleneck(out)

    return behind_norm if "norm" in type(place).__name__.lower() else behind_sum
