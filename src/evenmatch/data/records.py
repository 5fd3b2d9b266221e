"""One record of a pair file: its fields into a pair, or a refusal that says where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenmatch.errors import InputError
from evenmatch.types import Pair

CANDIDATE = ("candidate", "prediction")
REFERENCES = ("references", "reference")
SOURCE = "source"
FIELDS = (*CANDIDATE, *REFERENCES, SOURCE)


def pair_of(record: Mapping[str, Any], where: str) -> Pair:
    """The pair a record describes; `where` names the file and line for messages.

    >>> pair_of({"prediction": "a", "reference": "b"}, "x.jsonl line 1")
    Pair(candidate='a', references=('b',), source=None)
    """
    candidate = _text(_field(record, CANDIDATE, where), "candidate", where)
    given = _field(record, REFERENCES, where)
    several = given if isinstance(given, list) else [given]
    if not several:
        raise InputError(f"{where} has no reference; give at least one (it may be empty text)")
    references = tuple(_text(reference, "reference", where) for reference in several)
    source = record.get(SOURCE)
    return Pair(candidate, references, None if source is None else _text(source, SOURCE, where))


def _field(record: Mapping[str, Any], names: tuple[str, str], where: str) -> Any:
    for name in names:
        if name in record:
            return record[name]
    fields = ", ".join(map(repr, record)) or "none"
    raise InputError(f"{where} has no field {names[0]!r} or {names[1]!r}; its fields: {fields}")


def _text(value: Any, what: str, where: str) -> str:
    if not isinstance(value, str):
        found = repr(value) if len(repr(value)) < 40 else f"a {type(value).__name__}"
        raise InputError(f"the {what} of {where} must be a string, got {found}")
    return value
