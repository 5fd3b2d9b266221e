"""A spec string into the part it describes.

A spec is a name with settings: `sinkhorn(epsilon=0.1)`. It is read as a Python expression that may
hold nothing but names, keyword calls, constants and lists of those; nothing is ever evaluated.

A part into its spec string, and a metric into the signature of its scores.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import math
import numbers
from collections.abc import Callable
from typing import Any

from evenmatch.errors import InputError
from evenmatch.protocols import HasSources, Pinnable
from evenmatch.registry.parts import (
    cast_setting,
    describe_type,
    entry_of,
    find_entry,
    kind_of,
    matches_type,
    part_settings,
    setting_types,
)
from evenmatch.version import __version__

MAX_SPEC_LENGTH = 20_000


def build(text: str) -> Any:
    """The part a spec describes.

    >>> build("sinkhorn(epsilon=0.5)")
    Sinkhorn(epsilon=0.5, iterations=1000, tolerance=1e-06)
    """
    if not isinstance(text, str):
        raise InputError(f"a spec is a string, got {type(text).__name__}")
    if len(text) > MAX_SPEC_LENGTH:
        raise InputError(f"a spec may have {MAX_SPEC_LENGTH} characters, this one has {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InputError(
            f"cannot read the spec {_shorten(text)!r} ({_shorten(why)}); "
            "write a name with settings, like sinkhorn(epsilon=0.1)"
        ) from None
    if not isinstance(tree, (ast.Name, ast.Call)):
        raise InputError(f"the spec {_shorten(text)!r} names no part; write a name, like bertscore")
    try:
        return _parse_node(tree, text)
    except RecursionError:
        raise InputError(f"the spec {_shorten(text)!r} is nested too deeply") from None


def _parse_node(node: ast.expr, text: str) -> Any:
    """A spec's syntax tree as a value; anything but names, calls and constants is refused."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as constant):
            return constant
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return tuple(_parse_node(element, text) for element in elements)
        case ast.Name(id=name):
            return _make_part(name, {})
        case ast.Call(func=ast.Name(id=name), args=[], keywords=keywords):
            settings: dict[str, Any] = {}
            for keyword in keywords:
                if keyword.arg is None or keyword.arg in settings:
                    raise InputError(f"settings of {name} must be given once each, by name")
                settings[keyword.arg] = _parse_node(keyword.value, text)
            return _make_part(name, settings)
        case ast.Call(func=ast.Name(id=name)):
            raise InputError(f"settings of {name} must be given by name, like {name}(key=value)")
    raise InputError(
        f"a spec holds only names, settings and constants, not {_shorten(ast.unparse(node))!r}"
    )


def _make_part(name: str, settings: dict[str, Any]) -> Any:
    make = find_entry(name).factory
    hints = setting_types(make)
    for key, value in settings.items():
        if key not in hints:
            known = ", ".join(hints) or "none"
            near = difflib.get_close_matches(key, hints, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise InputError(f"{name} has no setting {key!r}; {hint}known: {known}")
        if not matches_type(value, hints[key]):
            raise InputError(
                f"{name}'s {key} takes {describe_type(hints[key])}, got {_describe_value(value)}"
            )
    missing = [k for k, p in inspect.signature(make).parameters.items() if _is_required(p)]
    if absent := [k for k in missing if k not in settings]:
        raise InputError(f"{name} needs the setting {absent[0]!r}: {name}({absent[0]}=...)")
    return make(**{key: cast_setting(value, hints[key]) for key, value in settings.items()})


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty


def _describe_value(value: Any) -> str:
    kind = kind_of(value)
    return f"the {kind} part {_shorten(spec(value))}" if kind else _shorten(repr(value))


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


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
    return _format_part(part, spec)


def _format_part(part: Any, inner: Callable[[Any], str]) -> str:
    """A part's name and settings, the parts among them as `inner` writes them."""
    found = entry_of(part)
    if found is None:
        return f"<{type(part).__name__}>"
    hints = setting_types(found.factory)
    shown = [
        f"{f.name}={_format_literal(cast_setting(getattr(part, f.name), hints[f.name]), inner)}"
        for f in dataclasses.fields(part)
        if f.init and getattr(part, f.name) != _default_value(f)
    ]
    return f"{found.name}({', '.join(shown)})" if shown else found.name


def _display_spec(part: Any) -> str:
    """A part's spec, with <its class> for whatever has none; nothing is built from that."""
    return _format_part(part, _display_spec)


def _default_value(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _format_literal(value: Any, inner: Callable[[Any], str]) -> str:
    match value:
        case tuple():
            return f"[{', '.join(_format_literal(item, inner) for item in value)}]"
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


def pin(part: Any) -> Any:
    """The part with every 'auto' setting and local path replaced by what it stands for now."""
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return part
    changed = {k: _pin_value(v) for k, v in part_settings(part).items()}
    inner = dataclasses.replace(part, **changed)
    return inner.pin() if isinstance(inner, Pinnable) else inner


def _pin_value(value: Any) -> Any:
    return tuple(_pin_value(v) for v in value) if isinstance(value, tuple) else pin(value)


def collect_sources(part: Any) -> tuple[str, ...]:
    """What a part and the parts inside it rest on, by content; each named once."""
    if part is None or isinstance(part, str | int | float):
        return ()  # to ask such a thing for a shape takes longer than all the rest
    own = part.sources() if isinstance(part, HasSources) else ()
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        for value in part_settings(part).values():
            for inner in value if isinstance(value, tuple) else (value,):
                own += collect_sources(inner)
    return tuple(dict.fromkeys(own))


def make_signature(part: Any, *facts: str) -> str:
    """The recipe of a score: pinned spec, version, what it rests on; up to ` · ` it rebuilds.

    A part without a spec, such as one over live weights, is shown as <its class> and not rebuilt.
    """
    own = (_display_spec(pin(part)), f"evenmatch {__version__}", *collect_sources(part), *facts)
    return " · ".join(dict.fromkeys(own))
