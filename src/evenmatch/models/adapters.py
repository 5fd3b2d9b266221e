"""Bottleneck adapters after the feed-forward layer of each block, and their files.

The form of Pfeiffer et al. (2021), which Sun et al. (2022) use to debias metrics: let z be the sum
of the feed-forward output and its residual. A block that ends in a layer norm gives
LN(z + up(relu(down(LN(z))))) instead of LN(z). A block with its norm in front (T5, Llama) has none
to apply, and z becomes z + up(relu(down(z))). Adapters are attached with forward hooks; without
the hooks the model is the original, bit by bit.

Files are safetensors; an adapter is found by name, path or content hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.errors import DataError, InputError, UnknownNameError
from evenmatch.files import DIGEST_PREFIX, explain_failed_write, file_digest, set_ordinary_modes
from evenmatch.models.checkpoints import LocalFile, find_by_content, pin_file

ADAPTER_WEIGHTS_FILE = "adapter.safetensors"

REDUCTION_FACTOR = 16  # how many times narrower the bottleneck is than the hidden states

_INIT_STD = 0.02  # standard deviation of the initial weights, as in AdapterHub

# The last layer norm of a block, by model type; '' is a block that ends in a residual sum.
_LAST_NORM: Mapping[str, str] = {
    kind: norm
    for norm, kinds in (
        ("output.LayerNorm", "bert roberta xlm-roberta camembert electra mpnet deberta deberta-v2"),
        ("output_layer_norm", "distilbert"),
        ("final_layer_norm", "bart marian"),
        ("", "t5 mt5 umt5 mbart m2m_100 gpt2 llama mistral qwen2"),
    )
    for kind in kinds.split()
}


@dataclass(frozen=True, eq=False)
class Adapter:
    """Bottleneck weights by block: `0.down.weight`, `0.down.bias`, `0.up.weight` and so on."""

    weights: Mapping[str, Any]

    @property
    def blocks(self) -> list[int]:
        """The numbers of the blocks that have a bottleneck, counted from 0."""
        return sorted({int(name.partition(".")[0]) for name in self.weights})

    @property
    def num_blocks(self) -> int:
        """Number of blocks up to the last that has a bottleneck."""
        return 1 + self.blocks[-1]

    @property
    def dim(self) -> int:
        """Hidden size of the models it fits."""
        return int(self.weights[f"{self.blocks[-1]}.down.weight"].shape[1])

    def parameters(self) -> list[Any]:
        """The trainable weights."""
        return list(self.weights.values())


def new_adapter(
    dim: int, blocks: int, *, first: int = 0, factor: int = REDUCTION_FACTOR, seed: int = 0
) -> Adapter:
    """Return an untrained adapter for the blocks from `first` on: small weights, zero biases."""
    import torch

    if factor < 1 or dim // factor < 1:
        raise InputError(f"a hidden size of {dim} cannot be made {factor} times narrower")
    generator = torch.Generator().manual_seed(seed)
    narrow, weights = dim // factor, {}
    for block in range(first, blocks):
        for name, (rows, columns) in {"down": (narrow, dim), "up": (dim, narrow)}.items():
            weight = torch.randn((rows, columns), generator=generator) * _INIT_STD
            weights[f"{block}.{name}.weight"] = weight.requires_grad_(True)
            weights[f"{block}.{name}.bias"] = torch.zeros(rows, requires_grad=True)
    return Adapter(weights)


@contextmanager
def use_adapter(model: Any, stack: Any, adapter: Adapter | None) -> Iterator[None]:
    """Attach the adapter to a model's blocks within this context; None changes nothing.

    The caller must hold the lock of the model, or be its only user.
    """
    hooks = insert_adapter(model, stack, adapter) if adapter else []
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def insert_adapter(model: Any, stack: Any, adapter: Adapter) -> list[Any]:
    """Attach the adapter to a model's blocks; return the hooks, which can be removed.

    `stack` lists the blocks from the lowest, the decoder's after the encoder's; it is None if all
    blocks are one and the same.
    """
    kind = str(model.config.model_type)
    if kind not in _LAST_NORM or stack is None:
        raise InputError(
            f"models of type {kind!r} do not support adapters; supported: {', '.join(_LAST_NORM)}"
        )
    dim, height = int(model.config.hidden_size), len(stack)
    if adapter.dim != dim or adapter.num_blocks > height:
        raise InputError(
            f"the adapter is for {adapter.num_blocks} blocks of hidden size {adapter.dim}, and "
            f"this model has {height} of {dim}; use an adapter that was trained for it"
        )
    hooks = []
    for number in adapter.blocks:
        module = find_last_norm(model, stack, number)
        hooks.append(module.register_forward_hook(_make_hook(adapter, number)))
    return hooks


def apply_bottleneck(adapter: Adapter, block: int, states: Any) -> Any:
    """What the bottleneck of a block adds to its hidden states: up(relu(down(states)))."""
    from torch.nn.functional import linear, relu

    def project(states: Any, name: str) -> Any:
        weight, bias = (adapter.weights[f"{block}.{name}.{kind}"] for kind in ("weight", "bias"))
        return linear(states, weight.to(states.device), bias.to(states.device))

    return project(relu(project(states, "down")), "up")


def find_last_norm(model: Any, stack: Any, block: int) -> Any:
    """Return the module of a block after which its bottleneck is inserted."""
    return stack[block].get_submodule(_LAST_NORM[str(model.config.model_type)])


def _make_hook(adapter: Adapter, block: int) -> Any:
    def hook(module: Any, args: tuple[Any, ...], out: Any) -> Any:
        if "norm" in type(module).__name__.lower():
            # `forward` runs no hooks; calling the module would run this one again.
            return module.forward(args[0] + apply_bottleneck(adapter, block, out))
        if isinstance(out, tuple):  # T5's blocks also return their position bias
            return out[0] + apply_bottleneck(adapter, block, out[0]), *out[1:]
        return out + apply_bottleneck(adapter, block, out)

    return hook


def find_adapter(given: str) -> LocalFile:
    """Find an adapter by name, file, folder or content hash."""
    if given.startswith(DIGEST_PREFIX):
        return find_by_content("adapters", given, "adapter", "folder")
    folder = Path(str(files("evenmatch.models") / "shipped_adapters"))
    bundled = {path.parent.name: path for path in sorted(folder.glob(f"*/{ADAPTER_WEIGHTS_FILE}"))}
    if given in bundled:
        return LocalFile(given, bundled[given], file_digest(bundled[given]))
    path = Path(given).expanduser()
    path = path / ADAPTER_WEIGHTS_FILE if path.is_dir() else path
    if not path.is_file():
        names = ", ".join(bundled) or "none"
        raise UnknownNameError(
            f"there is no adapter {given!r}; give a folder that evenmatch debias wrote, "
            f"or one that comes with evenmatch: {names}"
        )
    return pin_file("adapters", path)


def save_adapter(adapter: Adapter, folder: str | PathLike[str], facts: Mapping[str, str]) -> Path:
    """Write an adapter into a folder, with `facts` as the file's metadata; return the file."""
    from safetensors.torch import save_file

    path = Path(folder) / ADAPTER_WEIGHTS_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = {name: w.detach().cpu().contiguous() for name, w in adapter.weights.items()}
    with explain_failed_write(path):
        save_file(weights, path, metadata=dict(facts))
    set_ordinary_modes(path.parent)
    return path


@lru_cache(maxsize=4)
def load_adapter(found: LocalFile) -> Adapter:
    """Load an adapter for inference: its weights need no gradient."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        adapter = Adapter(load_file(found.path))
        _ = adapter.dim, adapter.num_blocks
    except (OSError, SafetensorError, LookupError, ValueError) as error:
        raise DataError(f"{found.path} is not an adapter ({error}); train it again") from None
    return adapter
