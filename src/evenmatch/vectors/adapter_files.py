"""Adapters as files: saved as safetensors, found by name, path or content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from os import PathLike
from pathlib import Path

from evenmatch.errors import DataError, UnknownNameError
from evenmatch.storage import contents
from evenmatch.storage.contents import BY_CONTENT, file_digest
from evenmatch.vectors.adapter import Adapter

WEIGHTS = "adapter.safetensors"


@dataclass(frozen=True, slots=True)
class AdapterFile:
    """An adapter on this disk: the name signatures use, its file, and a hash of its content."""

    name: str
    path: Path
    digest: str

    @property
    def label(self) -> str:
        """The name with the beginning of the content hash."""
        return f"{self.name.removeprefix(BY_CONTENT)}@{self.digest[:12]}"


def shipped() -> dict[str, Path]:
    """The adapters that come with evenmatch, by name."""
    folder = Path(str(files("evenmatch.vectors") / "adapters"))
    return {path.parent.name: path for path in sorted(folder.glob(f"*/{WEIGHTS}"))}


def find_adapter(given: str) -> AdapterFile:
    """The adapter of that name, file, folder or content hash."""
    if given.startswith(BY_CONTENT):
        return _by_content(given)
    own = shipped()
    if given in own:
        return AdapterFile(given, own[given], file_digest(own[given]))
    path = Path(given).expanduser()
    path = path / WEIGHTS if path.is_dir() else path
    if not path.is_file():
        known = ", ".join(own) or "none"
        raise UnknownNameError(
            f"there is no adapter {given!r}; give a folder that evenmatch debias wrote, "
            f"or one that comes with evenmatch: {known}"
        )
    digest = file_digest(path)
    found = AdapterFile(f"{BY_CONTENT}{digest[:16]}", path, digest)
    contents.remember("adapters", found.name, path)
    return found


def named_adapter(given: str) -> AdapterFile | None:
    """The adapter of a setting; '' names none."""
    return find_adapter(given) if given else None


def pinned_adapter(given: str) -> str:
    """A setting's adapter as signatures name it."""
    found = named_adapter(given)
    return found.name if found else ""


def adapter_source(given: str) -> tuple[str, ...]:
    """What a signature says of a setting's adapter."""
    found = named_adapter(given)
    return (f"adapter {found.label}",) if found else ()


def _by_content(given: str) -> AdapterFile:
    path = contents.recall("adapters", given)
    if path is not None and path.is_file():
        digest = file_digest(path)
        if digest.startswith(given.removeprefix(BY_CONTENT)):
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
    save_file(weights, place / WEIGHTS, metadata=dict(facts))
    return place / WEIGHTS


@lru_cache(maxsize=4)
def load_adapter(found: AdapterFile) -> Adapter:
    """The adapter's weights, which learn no more."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        adapter = Adapter(load_file(found.path))
        _ = adapter.dim, adapter.blocks
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise DataError(f"{found.path} holds no adapter ({error}); train it again") from None
    return adapter
