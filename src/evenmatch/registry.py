"""Names for parts: a spec string builds a part, and a part says its spec.

A spec is a name with settings: `sinkhorn(epsilon=0.1)`. It is read as a Python expression that may
hold nothing but names, keyword calls, constants and lists of those; nothing is ever evaluated.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import importlib.metadata
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.types import (
    Encoder,
    Metric,
    Parser,
    Pinned,
    Reducer,
    Similarity,
    Solver,
    Sourced,
    Splitter,
    Weighting,
)
from evenmatch.version import __version__

GROUP = "evenmatch"
LONGEST_SPEC = 20_000
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


@cache
def _entry_points() -> Mapping[str, importlib.metadata.EntryPoint]:
    return {point.name: point for point in importlib.metadata.entry_points(group=GROUP)}


def entry(name: str) -> Entry:
    """The registered entry of that name, its module loaded on first use."""
    if name not in _entries and name in _entry_points():
        _entry_points()[name].load()
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
            point.load()
    return tuple(sorted(n for n, e in _entries.items() if kind in (None, e.kind)))


def build(text: str) -> Any:
    """The part a spec describes.

    >>> build("sinkhorn(epsilon=0.5)")
    Sinkhorn(epsilon=0.5, iterations=1000, tolerance=1e-06)
    """
    if not isinstance(text, str):
        raise InputError(f"a spec is a string, got {type(text).__name__}")
    if len(text) > LONGEST_SPEC:
        raise InputError(f"a spec may have {LONGEST_SPEC} characters, this one has {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise InputError(
            f"cannot read the spec {_short(text)!r} ({error.args[0]}); "
            "write a name with settings, like sinkhorn(epsilon=0.1)"
        ) from None
    if not isinstance(tree, (ast.Name, ast.Call)):
        raise InputError(f"the spec {_short(text)!r} names no part; write a name, like bertscore")
    try:
        return _value(tree, text)
    except RecursionError:
        raise InputError(f"the spec {_short(text)!r} is nested too deeply") from None


def _value(node: ast.expr, text: str) -> Any:
    """A spec's syntax tree as a value; anything but names, calls and constants is refused."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as constant):
            return constant
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return tuple(_value(element, text) for element in elements)
        case ast.Name(id=name):
            return _make(name, {})
        case ast.Call(func=ast.Name(id=name), args=[], keywords=keywords):
            settings: dict[str, Any] = {}
            for keyword in keywords:
                if keyword.arg is None or keyword.arg in settings:
                    raise InputError(f"settings of {name} must be given once each, by name")
                settings[keyword.arg] = _value(keyword.value, text)
            return _make(name, settings)
        case ast.Call(func=ast.Name(id=name)):
            raise InputError(f"settings of {name} must be given by name, like {name}(key=value)")
    raise InputError(
        f"a spec holds only names, settings and constants, not {_short(ast.unparse(node))!r}"
    )


def _make(name: str, settings: dict[str, Any]) -> Any:
    make = entry(name).make
    hints = _hints(make)
    for key, value in settings.items():
        if key not in hints:
            known = ", ".join(hints) or "none"
            near = difflib.get_close_matches(key, hints, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise InputError(f"{name} has no setting {key!r}; {hint}known: {known}")
        if not _fits(value, hints[key]):
            raise InputError(f"{name}'s {key} takes {_wanted(hints[key])}, got {_shown(value)}")
    missing = [k for k, p in inspect.signature(make).parameters.items() if _required(p)]
    if absent := [k for k in missing if k not in settings]:
        raise InputError(f"{name} needs the setting {absent[0]!r}: {name}({absent[0]}=...)")
    return make(**settings)


def _required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty


@cache
def _hints(make: Callable[..., Any]) -> Mapping[str, Any]:
    """The settings a maker takes, with their types."""
    hints = typing.get_type_hints(make.__init__ if inspect.isclass(make) else make)
    return {key: hints[key] for key in inspect.signature(make).parameters}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value from a spec may stand where `hint` is declared."""
    origin = typing.get_origin(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if origin is typing.Literal:
        return any(type(value) is type(o) and value == o for o in typing.get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(
            _fits(item, typing.get_args(hint)[0]) for item in value
        )
    if hint in (None, types.NoneType):
        return value is None
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint in (int, str, bool):
        return type(value) is hint
    for kind, protocol in KINDS.items():
        if hint is protocol:
            return kind_of(value) == kind
    return isinstance(value, hint)


def _wanted(hint: Any) -> str:
    """A type as a person would say it."""
    options = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(_wanted(option) for option in options)
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(repr(option) for option in options)
    if typing.get_origin(hint) is tuple:
        return f"a list of {_wanted(options[0])}"
    plain = {int: "a whole number", float: "a number", str: "a string", bool: "True or False"}
    for kind, protocol in KINDS.items():
        if hint is protocol:
            return f"a {kind} ({', '.join(names(kind))})"
    return plain.get(hint, getattr(hint, "__name__", "nothing"))


def _shown(value: Any) -> str:
    kind = kind_of(value)
    return f"the {kind} {_short(spec(value))}" if kind else _short(repr(value))


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def kind_of(part: Any) -> str | None:
    """The kind a part is registered under, or None where it is not a part."""
    found = _entry_of(part)
    return found.kind if found else None


def _entry_of(part: Any) -> Entry | None:
    return next((e for e in _entries.values() if e.make is type(part)), None)


def settings(part: Any) -> dict[str, Any]:
    """A part's settings, all of them, by name."""
    return {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if f.init}


def spec(part: Any) -> str:
    """The spec that builds this part; settings at their default are left out.

    >>> spec(build("sinkhorn( epsilon = 0.5 )"))
    'sinkhorn(epsilon=0.5)'
    """
    found = _entry_of(part)
    if found is None:
        raise InputError(
            f"{type(part).__name__} has no spec; register its class with a name to give it one"
        )
    shown = [
        f"{f.name}={_literal(getattr(part, f.name))}"
        for f in dataclasses.fields(part)
        if f.init and getattr(part, f.name) != _default(f)
    ]
    return f"{found.name}({', '.join(shown)})" if shown else found.name


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _literal(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_literal(item) for item in value)}]"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    return spec(value)


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
    own = part.sources() if isinstance(part, Sourced) else ()
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        for value in settings(part).values():
            for inner in value if isinstance(value, tuple) else (value,):
                own += sources(inner)
    return tuple(dict.fromkeys(own))


def signature(part: Any, *facts: str) -> str:
    """The recipe of a score: pinned spec, version, what it rests on; up to ` · ` it rebuilds."""
    own = (spec(pinned(part)), f"evenmatch {__version__}", *sources(part), *facts)
    return " · ".join(dict.fromkeys(own))
