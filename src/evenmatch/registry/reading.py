"""A spec string into the part it describes.

A spec is a name with settings: `sinkhorn(epsilon=0.1)`. It is read as a Python expression that may
hold nothing but names, keyword calls, constants and lists of those; nothing is ever evaluated.
"""

from __future__ import annotations

import ast
import difflib
import inspect
from typing import Any

from evenmatch.errors import InputError
from evenmatch.registry.entries import entry, kind_of
from evenmatch.registry.hints import declared, fits, hints_of, wanted
from evenmatch.registry.writing import spec

LONGEST_SPEC = 20_000


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
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InputError(
            f"cannot read the spec {_short(text)!r} ({_short(why)}); "
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
    hints = hints_of(make)
    for key, value in settings.items():
        if key not in hints:
            known = ", ".join(hints) or "none"
            near = difflib.get_close_matches(key, hints, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise InputError(f"{name} has no setting {key!r}; {hint}known: {known}")
        if not fits(value, hints[key]):
            raise InputError(f"{name}'s {key} takes {wanted(hints[key])}, got {_shown(value)}")
    missing = [k for k, p in inspect.signature(make).parameters.items() if _required(p)]
    if absent := [k for k in missing if k not in settings]:
        raise InputError(f"{name} needs the setting {absent[0]!r}: {name}({absent[0]}=...)")
    return make(**{key: declared(value, hints[key]) for key, value in settings.items()})


def _required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty


def _shown(value: Any) -> str:
    kind = kind_of(value)
    return f"the {kind} {_short(spec(value))}" if kind else _short(repr(value))


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
