"""Which parts there are: names, their kinds, and what makes them."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from evenmatch.errors import InputError, MissingExtraError, UnknownNameError
from evenmatch.types import (
    Encoder,
    Metric,
    Parser,
    Reducer,
    Similarity,
    Solver,
    Splitter,
    Weighting,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "evenmatch"
KINDS: Mapping[str, type] = {
    "splitter": Splitter,
    "parser": Parser,
    "encoder": Encoder,
    "weighting": Weighting,
    "similarity": Similarity,
    "solver": Solver,
    "reducer": Reducer,
    "metric": Metric,
}

Maker = TypeVar("Maker", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Entry:
    """A registered name: its kind, and the class or function that makes the part."""

    name: str
    kind: str
    make: Callable[..., Any]


_entries: dict[str, Entry] = {}


def register(kind: str, name: str) -> Callable[[Maker], Maker]:
    """Give a part class, or a function that makes one, a name that specs can use."""
    if kind not in KINDS:
        raise InputError(f"there is no kind of part called {kind!r}; known: {', '.join(KINDS)}")
    if not name.isidentifier():
        raise InputError(f"a part's name must be a plain identifier, not {name!r}")

    def enter(make: Maker) -> Maker:
        _check_made(name, make)
        known = _entries.get(name)
        # A reloaded module registers its own names again; anybody else's are taken.
        if known and (known.make.__module__, known.make.__qualname__) != (
            make.__module__,
            make.__qualname__,
        ):
            raise InputError(
                f"the name {name!r} is taken by {known.make.__module__}; choose another name"
            )
        _entries[name] = Entry(name, kind, make)
        return make

    return enter


def _check_made(name: str, make: Callable[..., Any]) -> None:
    """Refuse a class whose parts could not be compared, hashed or written as a spec."""
    if isinstance(make, type) and not (
        dataclasses.is_dataclass(make) and issubclass(make, Hashable)
    ):
        raise InputError(
            f"the class of {name!r} must be a frozen dataclass; "
            f"write @dataclass(frozen=True) above {make.__name__}"
        )


@cache
def _entry_points() -> Mapping[str, EntryPoint]:
    # Late, because this import alone takes a sixth of evenmatch's own time to load.
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def entry(name: str) -> Entry:
    """The registered entry of that name, its module loaded on first use."""
    if name not in _entries and name in _entry_points():
        _load(_entry_points()[name])
    if name not in _entries:
        everything = names()
        near = difflib.get_close_matches(name, everything, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UnknownNameError(f"nothing is called {name!r}; {hint}known: {', '.join(everything)}")
    return _entries[name]


def names(kind: str | None = None) -> tuple[str, ...]:
    """Every name there is, or those of one kind, sorted."""
    if kind is not None and kind not in KINDS:
        raise UnknownNameError(f"there is no kind {kind!r}; known: {', '.join(KINDS)}")
    for name, point in _entry_points().items():
        if name not in _entries:
            # One package that cannot be imported must not hide the parts of all the others.
            with suppress(MissingExtraError):
                _load(point)
    return tuple(sorted(n for n, e in _entries.items() if kind in (None, e.kind)))


def _load(point: EntryPoint) -> None:
    try:
        point.load()
    except ImportError as error:
        raise MissingExtraError(
            f"the part {point.name!r} cannot be loaded from {point.value} ({error}); "
            "install what it needs, or remove its package"
        ) from None


def kind_of(part: Any) -> str | None:
    """The kind a part is registered under, or None where it is not a part."""
    found = entry_of(part)
    return found.kind if found else None


def entry_of(part: Any) -> Entry | None:
    """The entry that a part was made by, or None where it is not registered."""
    return next((e for e in _entries.values() if e.make is type(part)), None)
