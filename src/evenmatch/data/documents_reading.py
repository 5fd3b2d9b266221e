"""read_documents: files of documents with keyphrases; a bad line does not stop the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenmatch.data.catalogue import data_sets, find
from evenmatch.data.documents import Document, DocumentSet
from evenmatch.data.documents_fields import document_of
from evenmatch.data.tabular import is_json, records
from evenmatch.data.texts import read_lines, shown
from evenmatch.errors import DataError, InputError


def read_documents(
    data: str | Path, *, predictions: Sequence[str] = (), strict: bool = False
) -> tuple[DocumentSet, ...]:
    """Documents from a file, every file of a folder, or a public set by name.

    A file is JSONL, TSV or Parquet with `title`, `abstract` (or `text`), `keyphrases`, and
    predictions under `pred.NAME` or in fields of their own, which `predictions` then names. A line
    that is no record is left out, a field that is no list of phrases counts as an empty one; both
    are told in `trouble`. `strict` refuses them.
    """
    sets = tuple(_read(path, name, predictions) for name, path in _files(str(data)))
    for each in sets:
        if strict and each.trouble:
            raise InputError(f"{each.trouble[0]}; mend it, or read without strict to pass over it")
        if not each.documents:
            raise InputError(f"there is no document in {each.name}")
    return sets


def _files(data: str) -> list[tuple[str, str]]:
    """The files meant, each with the name of its set."""
    known = {each.name for each in data_sets()}
    path = find(data) if data in known and not Path(data).exists() else Path(data)
    if not path.is_dir():
        return [(_stem(data), data)]
    inside = sorted(p for p in path.iterdir() if is_json(p.name))
    if not inside:
        raise DataError(f"{path} holds no .jsonl file; give a file of documents")
    return [(f"{path.name}/{_stem(p.name)}", str(p)) for p in inside]


def _stem(path: str) -> str:
    name = Path(path).name.removesuffix(".gz")
    return shown(path) if path == "-" else name.rpartition(".")[0] or name


def _read(path: str, name: str, wanted: Sequence[str]) -> DocumentSet:
    trouble: list[str] = []
    documents: list[Document] = []
    for where, record in _records(path, trouble):
        document, own = document_of(record, where, wanted)
        documents.append(document)
        trouble += own
    systems = dict.fromkeys(system for each in documents for system in each.predictions)
    for system in systems:
        missing = sum(system not in each.predictions for each in documents)
        if missing:
            trouble.append(f"{shown(path)}: {missing} documents have no prediction {system!r}")
    return DocumentSet(name, tuple(documents), tuple(systems), tuple(trouble))


def _records(path: str, trouble: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not is_json(path):
        yield from records(path)
        return
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            where = f"{shown(path)} line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                trouble.append(f"{where} is no JSON and was left out")
                continue
            if isinstance(record, dict):
                yield where, record
            else:
                trouble.append(f"{where} is no JSON object and was left out")
