"""Documents with gold keyphrases and the keyphrases that systems predicted.

`read_documents` reads files, folders or a public set. Malformed lines and fields do not stop it:
they are listed in `DocumentSet.errors`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenmatch.data.catalogue.catalogue import canonical_name, data_sets, find_data_set
from evenmatch.data.files import (
    STANDARD_INPUT,
    display_path,
    is_json,
    read_lines,
    read_records,
    short_repr,
)
from evenmatch.errors import DataError, InputError
from evenmatch.registry.parts import check_arguments, suggest_name
from evenmatch.types import NO_FLAGS, Pair
from evenmatch.units.keyphrases import PHRASE_SEPARATOR, join_phrases

TEXT_FIELDS = ("title", "abstract", "text", "source")

KEYPHRASE_FIELDS = ("keyphrases", "keywords", "keyword", "references", "target")

PHRASE_LIST_FIELDS = ("present", "absent")

PREDICTION_FIELDS = ("pred", "predictions", "prediction")

# Between title and body of a `source`: in KPEval's records, and in those of Chan et al. (2019).
_TITLE_SEPARATORS = re.compile(r"\s*(?:\[sep\]|<eos>)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its text, its gold keyphrases and the predicted ones by system.

    `variants` are the spellings of each gold phrase, if there are any: each counts as the phrase.
    `flags` contains 'malformed' if a field was not text or a list of phrases; such a field is
    treated as empty.
    """

    text: str
    keyphrases: tuple[str, ...]
    predictions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flags: frozenset[str] = NO_FLAGS
    variants: tuple[tuple[str, ...], ...] = ()

    def to_pair(self, prediction: str) -> Pair:
        """Pair a system's phrases with the gold phrases, for scoring by a metric."""
        given = self.predictions.get(prediction, ())
        gold = join_phrases(self.variants or self.keyphrases)
        return Pair(join_phrases(given), (gold,), self.text)


@dataclass(frozen=True, slots=True)
class DocumentSet:
    """The documents of one test set, with the errors found in its file and the fields it has."""

    name: str
    documents: tuple[Document, ...]
    predictions: tuple[str, ...]
    errors: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


@check_arguments
def read_documents(
    data: str | Path,
    *,
    predictions: Sequence[str] = (),
    strict: bool = False,
    gold: bool = True,
) -> tuple[DocumentSet, ...]:
    """Read documents from a file, all files of a folder, or a public set by name.

    A file is JSONL, TSV, CSV or Parquet with the fields `title`, `abstract` (or `text`),
    `keyphrases`, and predictions under `pred.NAME` or in other fields, which `predictions` must
    then name. KPEval's fields are read too: `source`, `target` and `prediction`. Phrases are a
    list, or text with `;` between them; a gold phrase may itself be a list of variants, and a
    predicted one a list of words. A line that is not a record is left out, and a field that is not
    a list of phrases counts as empty; both are listed in `DocumentSet.errors`. With `strict`, they
    raise an `InputError`. So does a file in which no record has one of the predictions, or has
    gold keyphrases unless `gold` is False.
    """
    sets = tuple(
        _read_document_set(path, name, predictions, gold) for name, path in _find_files(str(data))
    )
    for each in sets:
        if strict and each.errors:
            raise InputError(
                f"{each.errors[0]}; correct it, or read without strict, which counts it as empty"
            )
        if not each.documents:
            raise InputError(f"there are no documents in {each.name}")
    return sets


def document_from_record(
    record: Mapping[str, Any], where: str, wanted: Sequence[str]
) -> tuple[Document, list[str]]:
    """Convert a record to a document; also return the errors found in it.

    `wanted` names the predictions to read; if empty, all are read.

    >>> record = {"text": "a b", "keyphrases": "a;c", "pred": {"x": ["a"]}}
    >>> document_from_record(record, "x.jsonl line 1", ())[0].predictions
    {'x': ('a',)}
    """
    reader = _RecordReader(record, where)
    title, body = reader.text("title"), reader.text("abstract") or reader.text("text")
    body = body or _TITLE_SEPARATORS.sub(" ", reader.text("source"))
    gold = _gold_phrases(reader)
    variants = tuple(gold) if any(len(each) > 1 for each in gold) else ()
    given = dict(iter_predictions(record))
    names = list(wanted) or list(given)
    predictions = {}
    for name in names:
        value = given.get(name, record.get(name))
        if name in given or name in record:
            predictions[name] = reader.phrases(name, _join_word_lists(value))
        else:
            reader.errors.append(f"{where} has no prediction {name!r}")
            predictions[name] = ()
    flags = frozenset({"malformed"}) if reader.errors else NO_FLAGS
    text = f"{title} {body}".strip()
    first = tuple(each[0] for each in gold)
    return Document(text, first, predictions, flags, variants), reader.errors


def iter_predictions(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield a record's predictions by system, from `pred`, `pred.NAME` or `prediction`."""
    for name in PREDICTION_FIELDS:
        value = record.get(name)
        if isinstance(value, Mapping):
            yield from value.items()
        elif value is not None:
            yield name, value
    for name, value in record.items():
        if name.startswith("pred."):
            yield name.removeprefix("pred."), value


def _join_word_lists(value: Any) -> Any:
    """Join phrases that are lists of words, as in the predictions of OpenNMT-kpg."""
    if not isinstance(value, list):
        return value
    return [
        " ".join(each)
        if isinstance(each, list) and all(isinstance(w, str) and " " not in w for w in each)
        else each
        for each in value
    ]


def _find_files(data: str) -> list[tuple[str, str]]:
    """Find the files to read, each with the name of its document set."""
    known = {each.name for each in data_sets()}
    data = canonical_name(data)
    path = find_data_set(data) if data in known and not Path(data).exists() else Path(data)
    named = data != STANDARD_INPUT and not path.suffix
    if named and not path.exists():
        near = suggest_name(data.lower(), known)
        raise DataError(
            f"there is no data set, folder or file {data!r}; {near}see: evenmatch data list"
        )
    if not path.is_dir():
        return [(_stem(data), data)]
    inside = sorted(p for p in path.iterdir() if is_json(p.name))
    if not inside:
        raise DataError(f"{path} has no .jsonl file; give a file of documents")
    return [(f"{path.name}/{_stem(p.name)}", str(p)) for p in inside]


def _stem(path: str) -> str:
    name = Path(path).name.removesuffix(".gz")
    return display_path(path) if path == "-" else name.rpartition(".")[0] or name


def _read_document_set(path: str, name: str, wanted: Sequence[str], gold: bool) -> DocumentSet:
    errors: list[str] = []
    documents: list[Document] = []
    names: dict[str, None] = {}  # of fields and predictions, in order
    for where, record in _iter_records(path, errors):
        document, found = document_from_record(record, where, wanted)
        documents.append(document)
        errors += found
        names |= dict.fromkeys([*record, *dict(iter_predictions(record))])
    if documents:
        _check_names(display_path(path), names, wanted, gold)
        if not names.keys() & set(TEXT_FIELDS):
            errors.append(
                f"no record of {display_path(path)} has a text in a field "
                f"{', '.join(TEXT_FIELDS)}; every phrase counts as absent"
            )
    systems = dict.fromkeys(system for each in documents for system in each.predictions)
    if "title" in names and not names.keys() & set(TEXT_FIELDS[1:]):
        unused = [n for n in names if n not in systems and not _is_read(n)]
        if unused:
            errors.append(
                f"{display_path(path)}: no record has abstract or text; phrases are looked up in "
                f"title only (unused fields: {', '.join(unused)})"
            )
    for system in systems:
        missing = sum(system not in each.predictions for each in documents)
        if missing:
            count = "1 document has" if missing == 1 else f"{missing} documents have"
            errors.append(f"{display_path(path)}: {count} no prediction {system!r}")
    return DocumentSet(name, tuple(documents), tuple(systems), tuple(errors), tuple(names))


def _is_read(name: str) -> bool:
    """Whether a field with this name is read as a text, gold phrases or predictions."""
    known = (*TEXT_FIELDS, *KEYPHRASE_FIELDS, *PHRASE_LIST_FIELDS, *PREDICTION_FIELDS)
    return name in known or name.startswith("pred.")


def _check_names(where: str, names: Mapping[str, None], wanted: Sequence[str], gold: bool) -> None:
    """Raise InputError if no record has one of the wanted predictions, or `gold` phrases."""
    found = f"found: {', '.join(names)}"
    if gold and not names.keys() & {*KEYPHRASE_FIELDS, *PHRASE_LIST_FIELDS}:
        raise InputError(
            f"no record of {where} has gold keyphrases in a field "
            f"{' or '.join(KEYPHRASE_FIELDS)}; rename the field ({found})"
        )
    for name in wanted:
        if name not in names:
            raise InputError(f"no record of {where} has a prediction {name!r}; {found}")


def _iter_records(path: str, errors: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not is_json(path):
        yield from read_records(path)
        return
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            where = f"{display_path(path)} line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                errors.append(f"{where} is not JSON and was left out")
                continue
            if isinstance(record, dict):
                yield where, record
            else:
                errors.append(f"{where} is not a JSON object and was left out")


@dataclass
class _RecordReader:
    """Reads the fields of one record; malformed ones are recorded as errors and read as empty."""

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
        """Read phrases from a list, or from text with separators between them."""
        if isinstance(value, str):
            value = value.split(PHRASE_SEPARATOR)
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(filter(None, map(str.strip, value)))
        self._add_error(
            name, f"a list of phrases, or text with {PHRASE_SEPARATOR} between them", value
        )
        return ()

    def variants(self, name: str) -> tuple[tuple[str, ...], ...]:
        """Read gold phrases, each with its variants: one unless the phrase is a list itself."""
        value = self.record[name]
        if not isinstance(value, list) or not any(isinstance(each, list) for each in value):
            return tuple((phrase,) for phrase in self.phrases(name, value))
        lists = (each if isinstance(each, list) else [each] for each in value)
        return tuple(filter(None, (self.phrases(name, each) for each in lists)))

    def _add_error(self, name: str, wanted: str, value: Any) -> None:
        self.errors.append(f"{self.where}: {name} must be {wanted}, got {short_repr(value)}")


def _gold_phrases(reader: _RecordReader) -> tuple[tuple[str, ...], ...]:
    """Read the gold phrases from one field, or from the two lists `present` and `absent`."""
    for name in KEYPHRASE_FIELDS:
        if name in reader.record:
            return reader.variants(name)
    lists = [name for name in PHRASE_LIST_FIELDS if name in reader.record]
    if not lists:
        reader.errors.append(f"{reader.where} has no field 'keyphrases'")
    return tuple(phrase for name in lists for phrase in reader.variants(name))
