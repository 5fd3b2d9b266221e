"""Values of records in files of ratings, or a refusal that says where and what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evenmatch.errors import InputError


def value_of(record: Mapping[str, Any], name: str, where: str) -> Any:
    """A field that must be there."""
    if name not in record:
        raise InputError(f"{where} has no {name!r}; its fields: {', '.join(record) or 'none'}")
    return record[name]


def text_of(record: Mapping[str, Any], name: str, where: str) -> str:
    """A field that must be text."""
    return as_text(value_of(record, name, where), name, where)


def as_text(value: Any, name: str, where: str) -> str:
    """The value, which must be text."""
    if not isinstance(value, str):
        raise InputError(f"the {name} of {where} must be a string, got {_short(value)}")
    return value


def name_of(record: Mapping[str, Any], name: str, where: str) -> str:
    """A field that names something: text, or a whole number as text.

    >>> name_of({"segment": 7}, "segment", "x.jsonl line 1")
    '7'
    """
    value = value_of(record, name, where)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (isinstance(value, str) or whole) or value == "":
        raise InputError(f"the {name} of {where} must be a name or a number, got {_short(value)}")
    return str(value)


def texts_of(value: Any, name: str, where: str) -> tuple[str, ...]:
    """A text or a list of texts."""
    return tuple(
        as_text(each, name, where) for each in (value if isinstance(value, list) else [value])
    )


def number_of(record: Mapping[str, Any], name: str, where: str) -> float:
    """A field that must be a number; null, empty and NaN are NaN.

    >>> number_of({"rating": "0.5"}, "rating", "x.tsv line 2")
    0.5
    """
    value = value_of(record, name, where)
    if value is None or value == "":
        return math.nan
    try:
        number = math.inf if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.inf
    if math.isinf(number):
        raise InputError(f"the {name} of {where} must be a finite number, got {_short(value)}")
    return number


def _short(value: Any) -> str:
    return repr(value) if len(repr(value)) < 40 else f"a {type(value).__name__}"
