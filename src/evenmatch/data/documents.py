"""Documents with keyphrases, and what systems predicted for them.

The fields of one document: text, keyphrases, predictions, or what is wrong with them.

read_documents: files of documents with keyphrases; a bad line does not stop the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenmatch.data.catalogue.catalogue import data_sets, find_data_set
from evenmatch.data.files import display_path, is_json, read_lines, read_records
from evenmatch.errors import DataError, InputError
from evenmatch.types import NO_FLAGS, Pair

PHRASE_SEPARATOR = ";"


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its text, the keyphrases people gave it, and each system's.

    `flags` has 'malformed' where a field could not be read as phrases or text, and was taken for
    empty.
    """

    text: str
    keyphrases: tuple[str, ...]
    predictions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flags: frozenset[str] = NO_FLAGS

    def to_pair(self, prediction: str) -> Pair:
        """A system's phrases against people's, as metrics take them."""
        given = self.predictions.get(prediction, ())
        return Pair(_join_phrases(given), (_join_phrases(self.keyphrases),), self.text)


@dataclass(frozen=True, slots=True)
class DocumentSet:
    """The documents of one test set, and what was wrong with the file they came from."""

    name: str
    documents: tuple[Document, ...]
    predictions: tuple[str, ...]
    errors: tuple[str, ...] = ()


def _join_phrases(phrases: Sequence[str]) -> str:
    return f"{PHRASE_SEPARATOR} ".join(phrases)


KEYPHRASE_FIELDS = ("keyphrases", "keywords", "keyword", "references")


PREDICTION_FIELDS = ("pred", "predictions", "prediction")


@dataclass
class _RecordReader:
    """One record being read; what cannot be read is noted and counts as empty."""

    record: Mapping[str, Any]
    where: str
    errors: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        value = self.record.get(name, "")
        if isinstance(value, str):
            return value
        self._add_error(name, "text", value)
        return ""

    def phrases(self, name: str, value: Any) -> tuple[str, ...]:
        """Phrases from a list, or from text with separators between them."""
        if isinstance(value, str):
            return tuple(filter(None, map(str.strip, value.split(PHRASE_SEPARATOR))))
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(each.strip() for each in value if each.strip())
        self._add_error(
            name, f"a list of phrases, or text with {PHRASE_SEPARATOR} between them", value
        )
        return ()

    def _add_error(self, name: str, wanted: str, value: Any) -> None:
        found = repr(value) if len(repr(value)) < 40 else f"a {type(value).__name__}"
        self.errors.append(f"{self.where}: {name} must be {wanted}, got {found}")


def document_from_record(
    record: Mapping[str, Any], where: str, wanted: Sequence[str]
) -> tuple[Document, list[str]]:
    """The document a record describes, and what could not be read in it.

    `wanted` names predictions; without any, all that there are are taken.

    >>> record = {"text": "a b", "keyphrases": "a;c", "pred": {"x": ["a"]}}
    >>> document_from_record(record, "x.jsonl line 1", ())[0].predictions
    {'x': ('a',)}
    """
    reading = _RecordReader(record, where)
    title, body = reading.text("title"), reading.text("abstract") or reading.text("text")
    gold = _gold_phrases(reading)
    given = dict(iter_predictions(record))
    names = list(wanted) or list(given)
    predictions = {}
    for name in names:
        value = given.get(name, record.get(name))
        if name in given or name in record:
            predictions[name] = reading.phrases(name, value)
        else:
            reading.errors.append(f"{where} has no prediction {name!r}")
            predictions[name] = ()
    flags = frozenset({"malformed"}) if reading.errors else NO_FLAGS
    text = f"{title} {body}".strip()
    return Document(text, gold, predictions, flags), reading.errors


def _gold_phrases(reading: _RecordReader) -> tuple[str, ...]:
    """People's phrases, under one name or in two lists, present and absent."""
    for name in KEYPHRASE_FIELDS:
        if name in reading.record:
            return reading.phrases(name, reading.record[name])
    two = [name for name in ("present", "absent") if name in reading.record]
    if not two:
        reading.errors.append(f"{reading.where} has no field 'keyphrases'")
    return tuple(p for name in two for p in reading.phrases(name, reading.record[name]))


def iter_predictions(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What a record holds of predictions, by system: under `pred`, `pred.NAME` or `prediction`."""
    for name in PREDICTION_FIELDS:
        value = record.get(name)
        if isinstance(value, Mapping):
            yield from value.items()
        elif value is not None:
            yield name, value
    for name, value in record.items():
        if name.startswith("pred."):
            yield name.removeprefix("pred."), value


def read_documents(
    data: str | Path, *, predictions: Sequence[str] = (), strict: bool = False
) -> tuple[DocumentSet, ...]:
    """Documents from a file, every file of a folder, or a public set by name.

    A file is JSONL, TSV or Parquet with `title`, `abstract` (or `text`), `keyphrases`, and
    predictions under `pred.NAME` or in fields of their own, which `predictions` then names. A line
    that is no record is left out, a field that is no list of phrases counts as an empty one; both
    are told in `trouble`. `strict` refuses them.
    """
    sets = tuple(
        _read_document_set(path, name, predictions) for name, path in _find_files(str(data))
    )
    for each in sets:
        if strict and each.errors:
            raise InputError(f"{each.errors[0]}; mend it, or read without strict to pass over it")
        if not each.documents:
            raise InputError(f"there is no document in {each.name}")
    return sets


def _find_files(data: str) -> list[tuple[str, str]]:
    """The files meant, each with the name of its set."""
    known = {each.name for each in data_sets()}
    path = find_data_set(data) if data in known and not Path(data).exists() else Path(data)
    if not path.is_dir():
        return [(_stem(data), data)]
    inside = sorted(p for p in path.iterdir() if is_json(p.name))
    if not inside:
        raise DataError(f"{path} holds no .jsonl file; give a file of documents")
    return [(f"{path.name}/{_stem(p.name)}", str(p)) for p in inside]


def _stem(path: str) -> str:
    name = Path(path).name.removesuffix(".gz")
    return display_path(path) if path == "-" else name.rpartition(".")[0] or name


def _read_document_set(path: str, name: str, wanted: Sequence[str]) -> DocumentSet:
    trouble: list[str] = []
    documents: list[Document] = []
    for where, record in _iter_records(path, trouble):
        document, own = document_from_record(record, where, wanted)
        documents.append(document)
        trouble += own
    systems = dict.fromkeys(system for each in documents for system in each.predictions)
    for system in systems:
        missing = sum(system not in each.predictions for each in documents)
        if missing:
            trouble.append(
                f"{display_path(path)}: {missing} documents have no prediction {system!r}"
            )
    return DocumentSet(name, tuple(documents), tuple(systems), tuple(trouble))


def _iter_records(path: str, trouble: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not is_json(path):
        yield from read_records(path)
        return
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            where = f"{display_path(path)} line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                trouble.append(f"{where} is no JSON and was left out")
                continue
            if isinstance(record, dict):
                yield where, record
            else:
                trouble.append(f"{where} is no JSON object and was left out")
