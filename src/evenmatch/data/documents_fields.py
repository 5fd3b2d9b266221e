"""The fields of one document: text, keyphrases, predictions, or what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenmatch.data.documents import SEPARATOR, Document
from evenmatch.types import NO_FLAGS

KEYPHRASES = ("keyphrases", "keywords", "keyword", "references")
PREDICTIONS = ("pred", "predictions", "prediction")


@dataclass
class _Reading:
    """One record being read; what cannot be read is noted and counts as empty."""

    record: Mapping[str, Any]
    where: str
    trouble: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        value = self.record.get(name, "")
        if isinstance(value, str):
            return value
        self._note(name, "text", value)
        return ""

    def phrases(self, name: str, value: Any) -> tuple[str, ...]:
        """Phrases from a list, or from text with separators between them."""
        if isinstance(value, str):
            return tuple(filter(None, map(str.strip, value.split(SEPARATOR))))
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(each.strip() for each in value if each.strip())
        self._note(name, f"a list of phrases, or text with {SEPARATOR} between them", value)
        return ()

    def _note(self, name: str, wanted: str, value: Any) -> None:
        found = repr(value) if len(repr(value)) < 40 else f"a {type(value).__name__}"
        self.trouble.append(f"{self.where}: {name} must be {wanted}, got {found}")


def document_of(
    record: Mapping[str, Any], where: str, wanted: Sequence[str]
) -> tuple[Document, list[str]]:
    """The document a record describes, and what could not be read in it.

    `wanted` names predictions; without any, all that there are are taken.

    >>> record = {"text": "a b", "keyphrases": "a;c", "pred": {"x": ["a"]}}
    >>> document_of(record, "x.jsonl line 1", ())[0].predictions
    {'x': ('a',)}
    """
    reading = _Reading(record, where)
    title, body = reading.text("title"), reading.text("abstract") or reading.text("text")
    gold = _gold(reading)
    given = dict(found_predictions(record))
    names = list(wanted) or list(given)
    predictions = {}
    for name in names:
        value = given.get(name, record.get(name))
        if name in given or name in record:
            predictions[name] = reading.phrases(name, value)
        else:
            reading.trouble.append(f"{where} has no prediction {name!r}")
            predictions[name] = ()
    flags = frozenset({"malformed"}) if reading.trouble else NO_FLAGS
    text = f"{title} {body}".strip()
    return Document(text, gold, predictions, flags), reading.trouble


def _gold(reading: _Reading) -> tuple[str, ...]:
    """People's phrases, under one name or in two lists, present and absent."""
    for name in KEYPHRASES:
        if name in reading.record:
            return reading.phrases(name, reading.record[name])
    two = [name for name in ("present", "absent") if name in reading.record]
    if not two:
        reading.trouble.append(f"{reading.where} has no field 'keyphrases'")
    return tuple(p for name in two for p in reading.phrases(name, reading.record[name]))


def found_predictions(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What a record holds of predictions, by system: under `pred`, `pred.NAME` or `prediction`."""
    for name in PREDICTIONS:
        value = record.get(name)
        if isinstance(value, Mapping):
            yield from value.items()
        elif value is not None:
            yield name, value
    for name, value in record.items():
        if name.startswith("pred."):
            yield name.removeprefix("pred."), value
