"""Adapters: a small bottleneck behind the feed-forward part of each block, on hooks.

Pfeiffer et al.'s (2021) form, as paper 003 uses it: with z the sum of the feed-forward part's
output and its residual, a block that ends in a layer norm gives LN(z + up(relu(down(LN(z)))))
instead of LN(z). Where the norm comes first (T5, Llama) there is none to apply, and z becomes
z + up(relu(down(z))). Without its hooks the model is the original, bit by bit.

Adapters as files: saved as safetensors, found by name, path or content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from evenmatch.errors import DataError, InputError, UnknownNameError
from evenmatch.files import DIGEST_PREFIX, file_digest, recall_path, remember_path

REDUCTION_FACTOR = 16  # how many times narrower the bottleneck is than a vector


_INIT_STD = 0.02  # of the first weights, as AdapterHub has it


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


class HasBlocks(Protocol):
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
    def num_blocks(self) -> int:
        """How many blocks, from the lowest, have a bottleneck."""
        return 1 + max(int(name.partition(".")[0]) for name in self.weights)

    @property
    def dim(self) -> int:
        """How long a vector must be."""
        return int(self.weights["0.down.weight"].shape[1])

    def parameters(self) -> list[Any]:
        """The weights that learn."""
        return list(self.weights.values())


def new_adapter(dim: int, blocks: int, *, factor: int = REDUCTION_FACTOR, seed: int = 0) -> Adapter:
    """An adapter that knows nothing yet: small random weights, no bias."""
    import torch

    if factor < 1 or dim // factor < 1:
        raise InputError(f"vectors of {dim} numbers cannot be made {factor} times narrower")
    draw = torch.Generator().manual_seed(seed)
    narrow, weights = dim // factor, {}
    for block in range(blocks):
        for name, (rows, columns) in {"down": (narrow, dim), "up": (dim, narrow)}.items():
            spread = torch.randn((rows, columns), generator=draw) * _INIT_STD
            weights[f"{block}.{name}.weight"] = spread.requires_grad_(True)
            weights[f"{block}.{name}.bias"] = torch.zeros(rows, requires_grad=True)
    return Adapter(weights)


@contextmanager
def use_adapter(blocks: HasBlocks, adapter: Adapter | None) -> Iterator[None]:
    """Passes in which the adapter's bottlenecks stand behind their blocks; None changes nothing.

    The caller holds the lock of the blocks, or has them for itself.
    """
    with ExitStack() as undo:
        for hook in insert_adapter(blocks, adapter) if adapter else ():
            undo.callback(hook.remove)
        yield


def insert_adapter(blocks: HasBlocks, adapter: Adapter) -> list[Any]:
    """Put the adapter's bottlenecks behind their blocks; gives the hooks, which can be removed."""
    return [
        place.register_forward_hook(_make_hook(weights, place))
        for place, weights in _insertion_points(blocks, adapter)
    ]


def _insertion_points(blocks: HasBlocks, adapter: Adapter) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Each module whose output an adapter changes, with its bottleneck's weights."""
    config = blocks.module.config
    kind = str(config.model_type)
    if kind not in _LAST_NORM or blocks.stack is None:
        raise InputError(
            f"there is no place for an adapter in a model of kind {kind!r}; "
            f"known: {', '.join(_LAST_NORM)}"
        )
    dim, height = int(config.hidden_size), len(blocks.stack)
    if adapter.dim != dim or adapter.num_blocks > height:
        raise InputError(
            f"the adapter is for {adapter.num_blocks} blocks of {adapter.dim} numbers, and this model "
            f"has {height} of {dim}; take one that was trained for it"
        )
    for number in range(adapter.num_blocks):
        block, norm = blocks.stack[number], _LAST_NORM[kind]
        yield block.get_submodule(norm), _block_weights(adapter.weights, number)


def _block_weights(weights: Mapping[str, Any], number: int) -> dict[str, Any]:
    start = f"{number}."
    return {k.removeprefix(start): w for k, w in weights.items() if k.startswith(start)}


def _make_hook(weights: Mapping[str, Any], place: Any) -> Any:
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


ADAPTER_WEIGHTS_FILE = "adapter.safetensors"


@dataclass(frozen=True, slots=True)
class AdapterFile:
    """An adapter on this disk: the name signatures use, its file, and a hash of its content."""

    name: str
    path: Path
    digest: str

    @property
    def label(self) -> str:
        """The name with the beginning of the content hash."""
        return f"{self.name.removeprefix(DIGEST_PREFIX)}@{self.digest[:12]}"


def bundled_adapters() -> dict[str, Path]:
    """The adapters that come with evenmatch, by name."""
    folder = Path(str(files("evenmatch.models") / "shipped_adapters"))
    return {path.parent.name: path for path in sorted(folder.glob(f"*/{ADAPTER_WEIGHTS_FILE}"))}


def find_adapter(given: str) -> AdapterFile:
    """The adapter of that name, file, folder or content hash."""
    if given.startswith(DIGEST_PREFIX):
        return _find_adapter_by_digest(given)
    own = bundled_adapters()
    if given in own:
        return AdapterFile(given, own[given], file_digest(own[given]))
    path = Path(given).expanduser()
    path = path / ADAPTER_WEIGHTS_FILE if path.is_dir() else path
    if not path.is_file():
        known = ", ".join(own) or "none"
        raise UnknownNameError(
            f"there is no adapter {given!r}; give a folder that evenmatch debias wrote, "
            f"or one that comes with evenmatch: {known}"
        )
    digest = file_digest(path)
    found = AdapterFile(f"{DIGEST_PREFIX}{digest[:16]}", path, digest)
    remember_path("adapters", found.name, path)
    return found


def find_optional_adapter(given: str) -> AdapterFile | None:
    """The adapter of a setting; '' names none."""
    return find_adapter(given) if given else None


def pin_adapter(given: str) -> str:
    """A setting's adapter as signatures name it."""
    found = find_optional_adapter(given)
    return found.name if found else ""


def adapter_sources(given: str) -> tuple[str, ...]:
    """What a signature says of a setting's adapter."""
    found = find_optional_adapter(given)
    return (f"adapter {found.label}",) if found else ()


def _find_adapter_by_digest(given: str) -> AdapterFile:
    path = recall_path("adapters", given)
    if path is not None and path.is_file():
        digest = file_digest(path)
        if digest.startswith(given.removeprefix(DIGEST_PREFIX)):
            return AdapterFile(given, path, digest)
    raise DataError(
        f"no adapter with the content {given} has been used on this machine; "
        "give the folder that holds it instead"
    )


def save_adapter(adapter: Adapter, folder: str | PathLike[str], facts: Mapping[str, str]) -> Path:
    """Write an adapter into a folder, with facts about it in the file's header; gives the file."""
    from safetensors.torch import save_file

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    weights = {name: w.detach().cpu().contiguous() for name, w in adapter.weights.items()}
    save_file(weights, place / ADAPTER_WEIGHTS_FILE, metadata=dict(facts))
    return place / ADAPTER_WEIGHTS_FILE


@lru_cache(maxsize=4)
def load_adapter(found: AdapterFile) -> Adapter:
    """The adapter's weights, which learn no more."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        adapter = Adapter(load_file(found.path))
        _ = adapter.dim, adapter.num_blocks
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise DataError(f"{found.path} holds no adapter ({error}); train it again") from None
    return adapter
