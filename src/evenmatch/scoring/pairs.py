"""What a user hands in, checked: candidates and references into pairs, or a clear refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenmatch.errors import InputError
from evenmatch.types import Pair


def make_pairs(candidates: Any, references: Any, sources: Any = None) -> list[Pair]:
    """One pair per candidate; references are strings, or lists of strings of any length."""
    _check_list("candidates", candidates)
    _check_list("references", references)
    if len(candidates) != len(references):
        raise InputError(_length_error(candidates, references))
    if sources is None:
        sources = [None] * len(candidates)
    else:
        _check_list("sources", sources)
        if len(sources) != len(candidates):
            raise InputError(f"{len(candidates)} candidates but {len(sources)} sources")
    nested = [not isinstance(r, str) for r in references]
    if any(nested) and not all(nested):
        raise InputError(
            f"references mix strings and lists: row {nested.index(not nested[0])} differs from "
            "row 0; give all strings or all lists of strings"
        )
    return [
        Pair(
            _text(candidate, "candidate", row),
            _references(reference, row),
            None if source is None else _text(source, "source", row),
        )
        for row, (candidate, reference, source) in enumerate(
            zip(candidates, references, sources, strict=True)
        )
    ]


def check_pairs(pairs: Sequence[Pair]) -> None:
    """Refuse pairs that could only be misread; those from `make_pairs` always pass."""
    for row, pair in enumerate(pairs):
        _text(pair.candidate, "candidate", row)
        references: Any = pair.references
        if isinstance(references, str):
            raise InputError(
                f"the references of row {row} must be a tuple of strings, got one string; "
                "write (reference,)"
            )
        _references(references, row)


def _check_list(name: str, value: Any) -> None:
    if isinstance(value, str):
        raise InputError(f"{name} must be a list of texts, got one string; write [{name[:-1]}]")
    if isinstance(value, (bytes, dict, set)) or not isinstance(value, Sequence):
        raise InputError(f"{name} must be a list of texts, got {type(value).__name__}")


def _length_error(candidates: Sequence[Any], references: Sequence[Any]) -> str:
    what = (
        "references" if not references or isinstance(references[0], str) else "lists of references"
    )
    message = f"{len(candidates)} candidates but {len(references)} {what}; give one per candidate"
    first = references[0] if references else None
    if not isinstance(first, str) and isinstance(first, Sequence) and len(first) == len(candidates):
        message += " (these look transposed: one list per candidate, not one per reference stream)"
    return message


def _references(value: Any, row: int) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (bytes, dict, set)) or not isinstance(value, Sequence):
        raise InputError(
            f"the reference of row {row} must be a string or a list of strings, "
            f"got {type(value).__name__}"
        )
    if not value:
        raise InputError(f"row {row} has no reference; give at least one (it may be empty text)")
    return tuple(_text(v, "reference", row) for v in value)


def _text(value: Any, what: str, row: int) -> str:
    if not isinstance(value, str):
        shown = repr(value) if len(repr(value)) < 40 else type(value).__name__
        raise InputError(f"the {what} of row {row} must be a string, got {shown}")
    return value
