"""A part into its spec string, and a metric into the signature of its scores."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable
from typing import Any

from evenmatch.errors import InputError
from evenmatch.registry.entries import entry_of
from evenmatch.registry.hints import declared, hints_of, settings
from evenmatch.types import Pinned, Sourced
from evenmatch.version import __version__


def spec(part: Any) -> str:
    """The spec that builds this part; settings at their default are left out.

    >>> from evenmatch.registry import build
    >>> spec(build("sinkhorn( epsilon = 0.5 )"))
    'sinkhorn(epsilon=0.5)'
    """
    if entry_of(part) is None:
        raise InputError(
            f"{type(part).__name__} has no spec; register its class with a name to give it one"
        )
    return _written(part, spec)


def _written(part: Any, inner: Callable[[Any], str]) -> str:
    """A part's name and settings, the parts among them as `inner` writes them."""
    found = entry_of(part)
    if found is None:
        return f"<{type(part).__name__}>"
    hints = hints_of(found.make)
    shown = [
        f"{f.name}={_literal(declared(getattr(part, f.name), hints[f.name]), inner)}"
        for f in dataclasses.fields(part)
        if f.init and getattr(part, f.name) != _default(f)
    ]
    return f"{found.name}({', '.join(shown)})" if shown else found.name


def _readable(part: Any) -> str:
    """A part's spec, with <its class> for whatever has none; nothing is built from that."""
    return _written(part, _readable)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _literal(value: Any, inner: Callable[[Any], str]) -> str:
    match value:
        case tuple():
            return f"[{', '.join(_literal(item, inner) for item in value)}]"
        case None | bool():
            return repr(value)
        case str():
            return repr(str(value))  # numpy's strings and numbers say their type in their repr
        case numbers.Integral():
            return repr(int(value))
        case numbers.Real():
            number = float(value)
            if not math.isfinite(number):
                raise InputError(f"a spec cannot hold {number}; give the part a finite number")
            return repr(number)
    return inner(value)


def pinned(part: Any) -> Any:
    """The part with every 'auto' setting and local path replaced by what it stands for now."""
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return part
    changed = {k: _pinned_value(v) for k, v in settings(part).items()}
    inner = dataclasses.replace(part, **changed)
    return inner.pinned() if isinstance(inner, Pinned) else inner


def _pinned_value(value: Any) -> Any:
    return tuple(_pinned_value(v) for v in value) if isinstance(value, tuple) else pinned(value)


def sources(part: Any) -> tuple[str, ...]:
    """What a part and the parts inside it rest on, by content; each named once."""
    if part is None or isinstance(part, str | int | float):
        return ()  # to ask such a thing for a shape takes longer than all the rest
    own = part.sources() if isinstance(part, Sourced) else ()
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        for value in settings(part).values():
            for inner in value if isinstance(value, tuple) else (value,):
                own += sources(inner)
    return tuple(dict.fromkeys(own))


def signature(part: Any, *facts: str) -> str:
    """The recipe of a score: pinned spec, version, what it rests on; up to ` · ` it rebuilds.

    A part without a spec, such as one over live weights, is shown as <its class> and not rebuilt.
    """
    own = (_readable(pinned(part)), f"evenmatch {__version__}", *sources(part), *facts)
    return " · ".join(dict.fromkeys(own))
