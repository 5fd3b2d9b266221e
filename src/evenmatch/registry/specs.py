"""Spec strings: read a spec into a part, and write a part as a spec.

A spec is a name with settings: `sinkhorn(epsilon=0.1)`. It is parsed as a Python expression that
may contain only names, keyword calls, constants and lists of those; nothing is evaluated.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import math
import numbers
import re
from collections.abc import Callable
from typing import Any

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.registry.parts import (
    RegistryEntry,
    cast_setting,
    check_values,
    describe_type,
    entry_of,
    find_entry,
    kind_of,
    kind_of_hint,
    setting_types,
    takes_text,
)

MAX_SPEC_LENGTH = 20_000
_MODEL_NAME = re.compile(r"[\w.]+(?:-[\w.]+)*-(?:x?large|base|small|\w*cased|mnli|v\d)\b[\w.-]*")
_PAPER_NAME = re.compile(r"\s*([A-Za-z]\w*(?:[-@]\w+|\+\+)+)\s*(?:\(|$)")  # ROUGE-L, chrF++, F1@5


def build(text: str, kind: str | None = None) -> Any:
    """Create the part that a spec describes.

    `kind` is the kind of part that is expected; an unknown name is compared with names of it.

    >>> build("sinkhorn(epsilon=0.5)")
    Sinkhorn(epsilon=0.5, iterations=1000, tolerance=1e-06)
    """
    if not isinstance(text, str):
        raise InputError(f"a spec must be a string, got {type(text).__name__}")
    if len(text) > MAX_SPEC_LENGTH:
        raise InputError(f"a spec may have {MAX_SPEC_LENGTH} characters, got {len(text)}")
    if _MODEL_NAME.fullmatch(text.strip()):
        raise UnknownNameError(
            f"unknown {kind or 'name'} {text.strip()!r}; a model is a setting of a metric: "
            f"bertscore(model={text.strip()!r})"
        )
    if paper_name := _PAPER_NAME.match(text):
        find_entry(paper_name[1], kind)  # raises an error with the names that are close
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InputError(
            f"cannot read the spec {_shorten(text)!r} ({_shorten(why)}); "
            "write a name with settings, like sinkhorn(epsilon=0.1), and texts in quotes, like "
            "model='roberta-large'"
        ) from None
    if isinstance(tree, ast.Tuple) and tree.elts:
        given = [ast.get_source_segment(text.strip(), each) or "" for each in tree.elts]
        raise InputError(
            f"{_shorten(text)!r} names several parts; give one each time: "
            f"{_shorten(' '.join(f'-m {each}' for each in given))}, in Python a list"
        )
    if not isinstance(tree, (ast.Name, ast.Call)):
        raise InputError(f"the spec {_shorten(text)!r} is not a part; write a name, like bertscore")
    try:
        return _parse_node(tree, text.strip(), kind)
    except RecursionError:
        raise InputError(f"the spec {_shorten(text)!r} is nested too deeply") from None


def spec(part: Any) -> str:
    """Return the spec that builds this part; settings at their default are omitted.

    >>> from evenmatch.registry import build
    >>> spec(build("sinkhorn( epsilon = 0.5 )"))
    'sinkhorn(epsilon=0.5)'
    """
    if entry_of(part) is None:
        raise InputError(
            f"{type(part).__name__} has no spec; register its class with a name to give it one"
        )
    return _format_part(part, spec)


def _parse_node(node: ast.expr, text: str, kind: str | None = None) -> Any:
    """Convert a syntax tree to a value; only names, keyword calls and constants are allowed."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as constant):
            return constant
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return tuple(_parse_node(element, text, kind) for element in elements)
        case ast.Name(id=name):
            return _make_part(find_entry(name, kind), {})
        case ast.Call(func=ast.Name(id=name), args=[], keywords=keywords):
            entry = find_entry(name, kind)
            hints = setting_types(entry.factory)
            settings: dict[str, Any] = {}
            for keyword in keywords:
                if keyword.arg is None or keyword.arg in settings:
                    raise InputError(f"settings of {name} must be given once each, by name")
                if keyword.arg not in hints:  # before its value, whose names may be unknown too
                    check_values(name, {keyword.arg: None}, hints)
                hint = hints[keyword.arg]
                kind = kind_of_hint(hint)
                bare = isinstance(keyword.value, ast.Name | ast.BinOp | ast.Attribute)
                if bare and kind is None and takes_text(hint):
                    given = ast.get_source_segment(text, keyword.value) or ""
                    constant = given.capitalize() in ("True", "False", "None")
                    how = "write" if constant else "write it in quotes:"
                    shown = given.capitalize() if constant else repr(_shorten(given))
                    raise InputError(
                        f"{name}'s {keyword.arg} takes {describe_type(hint)}; {how} "
                        f"{keyword.arg}={shown}"
                    )
                settings[keyword.arg] = _parse_node(keyword.value, text, kind)
            return _make_part(entry, settings)
        case ast.Call(func=ast.Name(id=name)):
            raise InputError(f"settings of {name} must be given by name, like {name}(key=value)")
    raise InputError(
        "a spec may contain only names, settings and constants, "
        f"not {_shorten(ast.unparse(node))!r}"
    )


def _make_part(entry: RegistryEntry, settings: dict[str, Any]) -> Any:
    name, factory = entry.name, entry.factory
    hints = setting_types(factory)
    check_values(name, settings, hints, show=_describe_value)
    for key, parameter in inspect.signature(factory).parameters.items():
        if parameter.default is inspect.Parameter.empty and key not in settings:
            raise InputError(f"{name} needs the setting {key!r}: {name}({key}=...)")
    return factory(**{key: cast_setting(value, hints[key]) for key, value in settings.items()})


def _describe_value(value: Any) -> str:
    kind = kind_of(value)
    return f"the {kind} part {_shorten(spec(value))}" if kind else _shorten(repr(value))


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _format_part(part: Any, inner: Callable[[Any], str]) -> str:
    """Write the name and settings of a part; `inner` formats the parts among its settings."""
    entry = entry_of(part)
    if entry is None:
        return f"<{type(part).__name__}>"
    hints = setting_types(entry.factory)
    shown = [
        f"{f.name}={_format_literal(cast_setting(getattr(part, f.name), hints[f.name]), inner)}"
        for f in dataclasses.fields(part)
        if f.init and getattr(part, f.name) != _default_value(f)
    ]
    return f"{entry.name}({', '.join(shown)})" if shown else entry.name


def display_spec(part: Any) -> str:
    """Write a spec for display, with `<ClassName>` for parts that are not registered."""
    return _format_part(part, display_spec)


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
            return repr(str(value))  # the repr of numpy strings and numbers contains their type
        case numbers.Integral():
            return repr(int(value))
        case numbers.Real() if math.isfinite(value):
            return repr(float(value))
        case numbers.Real():
            raise InputError(f"a spec cannot contain {float(value)}; use a finite number")
    return inner(value)
