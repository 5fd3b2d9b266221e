"""Which parts there are: names, their kinds, and what makes them.

What settings a part takes, of which types, and whether a value fits.

Settings that one maker of parts takes over from another.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import math
import numbers
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from evenmatch.errors import InputError, MissingExtraError, UnknownNameError
from evenmatch.protocols import (
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


ENTRY_POINT_GROUP = "evenmatch"


KINDS: Mapping[str, type] = {
    "units": Splitter,
    "parser": Parser,
    "vectors": Encoder,
    "weighting": Weighting,
    "similarity": Similarity,
    "alignment": Solver,
    "scoring": Reducer,
    "metric": Metric,
}


Maker = TypeVar("Maker", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class RegistryEntry:
    """A registered name: its kind, and the class or function that makes the part."""

    name: str
    kind: str
    factory: Callable[..., Any]


_entries: dict[str, RegistryEntry] = {}


def register(kind: str, name: str) -> Callable[[Maker], Maker]:
    """Give a part class, or a function that makes one, a name that specs can use."""
    if kind not in KINDS:
        raise InputError(f"there is no kind of part called {kind!r}; known: {', '.join(KINDS)}")
    if not name.isidentifier():
        raise InputError(f"a part's name must be a plain identifier, not {name!r}")

    def enter(make: Maker) -> Maker:
        _check_factory(name, make)
        known = _entries.get(name)
        # A reloaded module registers its own names again; anybody else's are taken.
        if known and (known.factory.__module__, known.factory.__qualname__) != (
            make.__module__,
            make.__qualname__,
        ):
            raise InputError(
                f"the name {name!r} is taken by {known.factory.__module__}; choose another name"
            )
        _entries[name] = RegistryEntry(name, kind, make)
        return make

    return enter


def _check_factory(name: str, make: Callable[..., Any]) -> None:
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

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def find_entry(name: str) -> RegistryEntry:
    """The registered entry of that name, its module loaded on first use."""
    if name not in _entries and name in _entry_points():
        _load_entry_point(_entry_points()[name])
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
                _load_entry_point(point)
    return tuple(sorted(n for n, e in _entries.items() if kind in (None, e.kind)))


def _load_entry_point(point: EntryPoint) -> None:
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


def entry_of(part: Any) -> RegistryEntry | None:
    """The entry that a part was made by, or None where it is not registered."""
    return next((e for e in _entries.values() if e.factory is type(part)), None)


@cache
def setting_types(make: Callable[..., Any]) -> Mapping[str, Any]:
    """The settings a maker takes, with their types."""
    hints = typing.get_type_hints(make.__init__ if inspect.isclass(make) else make)
    return {key: hints.get(key, Any) for key in inspect.signature(make).parameters}


def matches_type(value: Any, hint: Any) -> bool:
    """Whether a value from a spec may stand where `hint` is declared."""
    origin = typing.get_origin(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(matches_type(value, option) for option in typing.get_args(hint))
    if origin is typing.Literal:
        return any(type(value) is type(o) and value == o for o in typing.get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(
            matches_type(item, typing.get_args(hint)[0]) for item in value
        )
    if hint in (None, types.NoneType):
        return value is None
    if hint is float:
        return _is_number(value, numbers.Real) and _is_finite(value)
    if hint is int:
        return _is_number(value, numbers.Integral)
    for kind, protocol in KINDS.items():
        if hint is protocol:
            return kind_of(value) == kind
    return isinstance(value, hint)


def _is_number(value: Any, numeric: type) -> bool:
    # numpy's numbers are as good as Python's, but True is no 1
    return isinstance(value, numeric) and not isinstance(value, bool)


def _is_finite(number: Any) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number that no float can hold
        return False


def check_settings(part: Any) -> None:
    """Refuse plain settings of the wrong type in a part made by hand; specs are checked as read."""
    make: Callable[..., Any] = type(part)
    for key, hint in setting_types(make).items():
        value = getattr(part, key)
        if hint not in KINDS.values() and not matches_type(value, hint):
            name = type(part).__name__
            raise InputError(f"{name}'s {key} takes {describe_type(hint)}, got {value!r}")


def describe_type(hint: Any) -> str:
    """A type as a person would say it."""
    options = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(describe_type(option) for option in options)
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(repr(option) for option in options)
    if typing.get_origin(hint) is tuple:
        return f"a list of {describe_type(options[0])}"
    plain = {int: "a whole number", float: "a number", str: "a string", bool: "True or False"}
    for kind, protocol in KINDS.items():
        if hint is protocol:
            article = "an" if kind[0] in "aeiou" else "a"
            return f"{article} {kind} part ({', '.join(names(kind))})"
    return plain.get(hint, getattr(hint, "__name__", "nothing"))


def cast_setting(value: Any, hint: Any) -> Any:
    """A whole number as a float where a float is declared, so that equal parts have equal specs."""
    return float(value) if hint is float and isinstance(value, numbers.Integral) else value


def part_settings(part: Any) -> dict[str, Any]:
    """A part's settings, all of them, by name."""
    return {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if f.init}


T = TypeVar("T")


def with_settings_of(
    make: Callable[..., Any], *but: str
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """A maker that shows the settings of another, `but` some, and is given them by name.

    Specs read a part's settings off its maker's signature; so that they need not be written out
    again, the signature is taken from where they stand.
    """
    own = inspect.signature(make, eval_str=True).parameters
    settings = inspect.Signature([p for name, p in own.items() if name not in but])

    def take(named: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(named)
        def with_settings(*given: Any, **by_name: Any) -> T:
            return named(**settings.bind(*given, **by_name).arguments)

        with_settings.__signature__ = settings  # type: ignore[attr-defined]  # where inspect looks first
        with_settings.__annotations__ = {n: p.annotation for n, p in settings.parameters.items()}
        return with_settings

    return take
