"""Files of pairs: line-aligned texts, JSONL, TSV, CSV and Parquet, read one pair at a time.

`open_pair_file` chooses the format by suffix and `LineAlignedFiles` reads parallel text files. A
record has the fields `candidate` (or `prediction`), `references` (or `reference`) and optionally
`source`; its other fields are kept with the pair. `read_sentence_pairs` reads public sets of
sentence pairs, and `read_everyday_sample` the small sample that comes with evenmatch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.files import (
    STANDARD_INPUT,
    check_text,
    count_lines,
    display_path,
    is_csv,
    is_json,
    is_parquet,
    is_rereadable,
    is_tsv,
    open_parquet,
    read_json_records,
    read_lines,
    read_records,
)
from evenmatch.errors import InputError
from evenmatch.types import Pair

CANDIDATE_FIELDS = ("candidate", "prediction")

REFERENCE_FIELDS = ("references", "reference")

SOURCE_FIELD = "source"

PAIR_FIELDS = (*CANDIDATE_FIELDS, *REFERENCE_FIELDS, SOURCE_FIELD)

# The split of each public set that is used for training; the others are for evaluation.
TRAINING_SPLITS: Mapping[str, str] = {"sts-b": "train", "sick": "train", "snli": "dev"}


def open_pair_file(path: str) -> RecordFile:
    """Open a file of pairs in the format given by its suffix; standard input is JSONL."""
    if not (is_json(path) or is_tsv(path) or is_csv(path) or is_parquet(path)):
        raise InputError(
            f"unknown file type of {path}; name it .jsonl, .tsv, .csv or .parquet, "
            "or give line-aligned text files with -c and -r"
        )
    return RecordFile(path)


@dataclass(frozen=True)
class RecordFile:
    """A JSONL, TSV, CSV or Parquet file whose records have the fields of `pair_from_record`.

    Every iteration reads the file again.
    """

    path: str

    def __iter__(self) -> Iterator[Pair]:
        return (pair_from_record(record, where) for where, record in read_records(self.path))

    @property
    def rereadable(self) -> bool:
        """Whether the file can be read more than once."""
        return is_rereadable(self.path)

    @property
    def total(self) -> int:
        """Number of records (for JSONL, of lines); 0 if unknown before reading."""
        if is_parquet(self.path):
            with open_parquet(self.path) as file:
                return int(file.metadata.num_rows)
        if is_csv(self.path) or not self.rereadable:  # a row of CSV may have several lines
            return 0
        return max(0, count_lines(self.path) - is_tsv(self.path))


@dataclass(frozen=True)
class LineAlignedFiles:
    """Line-aligned text files: candidates, one file per reference, and optionally sources."""

    candidates: str
    references: tuple[str, ...]
    sources: str = ""

    def __post_init__(self) -> None:
        if self._paths.count(STANDARD_INPUT) > 1:
            raise InputError("standard input (-) can be used for one file only")

    def __iter__(self) -> Iterator[Pair]:
        last = 1 + len(self.references)
        counts = [0] * len(self._paths)
        for texts in zip_longest(*map(read_lines, self._paths)):
            counts = [n + (text is not None) for n, text in zip(counts, texts, strict=True)]
            if None not in texts:
                yield Pair(texts[0], texts[1:last], texts[last] if self.sources else None)
        self._check(counts)

    @property
    def rereadable(self) -> bool:
        """Whether every file can be read more than once."""
        return all(map(is_rereadable, self._paths))

    @property
    def total(self) -> int:
        """Number of pairs, checked to be the same in all files; 0 if one of them is a pipe."""
        if not self.rereadable:
            return 0
        counts = [count_lines(path) for path in self._paths]
        self._check(counts)
        return counts[0]

    @property
    def _paths(self) -> tuple[str, ...]:
        return (self.candidates, *self.references, *([self.sources] if self.sources else []))

    def _check(self, counts: Sequence[int]) -> None:
        for path, lines in zip(self._paths, counts, strict=True):
            if lines != counts[0]:
                raise InputError(
                    f"{display_path(self.candidates)} has {_format_line_count(counts[0])} but "
                    f"{display_path(path)} has {_format_line_count(lines)}; "
                    "give one line per candidate"
                )


PairFile: TypeAlias = RecordFile | LineAlignedFiles


def read_system_files(
    systems: Mapping[str, str], references: Sequence[str], sources: str = ""
) -> tuple[dict[str, list[str]], list[list[str]], list[str] | None]:
    """Read the line-aligned candidates of several systems, given by name, and their references.

    Returns the candidates by system, the references of each line, and the sources if there are any.
    """
    paths = [*systems.values(), *references, *([sources] if sources else [])]
    if paths.count(STANDARD_INPUT) > 1:
        raise InputError("standard input (-) can be used for one file only")
    texts = [list(read_lines(path)) for path in paths]
    for path, lines in zip(paths, texts, strict=True):
        if len(lines) != len(texts[0]):
            raise InputError(
                f"{display_path(paths[0])} has {len(texts[0])} lines but "
                f"{display_path(path)} has {len(lines)}; "
                "give one line per segment in every file"
            )
    several = texts[len(systems) :][: len(references)]
    return (
        dict(zip(systems, texts, strict=False)),
        list(map(list, zip(*several, strict=True))),
        texts[-1] if sources else None,
    )


def pair_from_record(record: Mapping[str, Any], where: str) -> Pair:
    """Convert a record to a pair; `where` names the file and line in messages.

    >>> pair_from_record({"prediction": "a", "reference": "b"}, "x.jsonl line 1")
    Pair(candidate='a', references=('b',), source=None)
    """
    candidate = check_text(_find_field(record, CANDIDATE_FIELDS, where), "candidate", where)
    given = _find_field(record, REFERENCE_FIELDS, where)
    several = given if isinstance(given, list) else [given]
    if not several:
        raise InputError(f"{where} has no reference; give at least one (it may be empty text)")
    references = tuple(check_text(reference, "reference", where) for reference in several)
    source = record.get(SOURCE_FIELD)
    return Pair(
        candidate,
        references,
        None if source is None else check_text(source, SOURCE_FIELD, where),
        {name: value for name, value in record.items() if name not in PAIR_FIELDS} or None,
    )


def read_sentence_pairs(data: str) -> list[Pair]:
    """Read sentence pairs of a public set, or of any file that `evenmatch score` accepts.

    The first sentence is the candidate. Of a public set, the training split is read.
    """
    if data in TRAINING_SPLITS:
        path = find_data_set(data) / f"{TRAINING_SPLITS[data]}.jsonl.gz"
        records = (record for _, record in read_json_records(str(path)))
        return [Pair(str(record["s1"]), (str(record["s2"]),)) for record in records]
    if not Path(data).is_file():
        raise InputError(
            f"no set of sentence pairs is called {data!r}; give a file, or one of "
            f"{', '.join(TRAINING_SPLITS)}"
        )
    return list(open_pair_file(data))


def read_everyday_sample() -> dict[str, list[Pair]]:
    """Read the pairs of each of four made-up systems, all for the same twelve items in order.

    >>> {system: len(pairs) for system, pairs in read_everyday_sample().items()}
    {'good': 12, 'repetitive': 12, 'terse': 12, 'wrong': 12}
    """
    text = (files("evenmatch.data") / "sample" / "everyday.jsonl").read_text("utf-8")
    systems: dict[str, list[Pair]] = {}
    for line in text.splitlines():
        item = json.loads(line)
        for system, candidate in item["systems"].items():
            systems.setdefault(system, []).append(Pair(candidate, tuple(item["references"])))
    return systems


def _find_field(record: Mapping[str, Any], names: tuple[str, str], where: str) -> Any:
    for name in names:
        if name in record:
            return record[name]
    fields = ", ".join(map(repr, record)) or "none"
    raise InputError(
        f"{where} has no field {names[0]!r} or {names[1]!r}; rename one of its fields: {fields}"
    )


def _format_line_count(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
