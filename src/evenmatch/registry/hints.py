"""What settings a part takes, of which types, and whether a value fits."""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from evenmatch.errors import InputError
from evenmatch.registry.entries import KINDS, kind_of, names


@cache
def hints_of(make: Callable[..., Any]) -> Mapping[str, Any]:
    """The settings a maker takes, with their types."""
    hints = typing.get_type_hints(make.__init__ if inspect.isclass(make) else make)
    return {key: hints.get(key, Any) for key in inspect.signature(make).parameters}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value from a spec may stand where `hint` is declared."""
    origin = typing.get_origin(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, option) for option in typing.get_args(hint))
    if origin is typing.Literal:
        return any(type(value) is type(o) and value == o for o in typing.get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(
            fits(item, typing.get_args(hint)[0]) for item in value
        )
    if hint in (None, types.NoneType):
        return value is None
    if hint is float:
        return _is(value, numbers.Real) and _is_finite(value)
    if hint is int:
        return _is(value, numbers.Integral)
    for kind, protocol in KINDS.items():
        if hint is protocol:
            return kind_of(value) == kind
    return isinstance(value, hint)


def _is(value: Any, numeric: type) -> bool:
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
    for key, hint in hints_of(make).items():
        value = getattr(part, key)
        if hint not in KINDS.values() and not fits(value, hint):
            name = type(part).__name__
            raise InputError(f"{name}'s {key} takes {wanted(hint)}, got {value!r}")


def wanted(hint: Any) -> str:
    """A type as a person would say it."""
    options = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(wanted(option) for option in options)
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(repr(option) for option in options)
    if typing.get_origin(hint) is tuple:
        return f"a list of {wanted(options[0])}"
    plain = {int: "a whole number", float: "a number", str: "a string", bool: "True or False"}
    for kind, protocol in KINDS.items():
        if hint is protocol:
            return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} ({', '.join(names(kind))})"
    return plain.get(hint, getattr(hint, "__name__", "nothing"))


def declared(value: Any, hint: Any) -> Any:
    """A whole number as a float where a float is declared, so that equal parts have equal specs."""
    return float(value) if hint is float and isinstance(value, numbers.Integral) else value


def settings(part: Any) -> dict[str, Any]:
    """A part's settings, all of them, by name."""
    return {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if f.init}
