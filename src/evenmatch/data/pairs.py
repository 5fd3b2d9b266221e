"""Files of pairs: line-aligned texts, JSONL, TSV and Parquet, read a pair at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from evenmatch.data import parquet
from evenmatch.data.records import pair_of
from evenmatch.data.tabular import is_json, is_tsv, json_records, tsv_records
from evenmatch.data.texts import (
    STANDARD_INPUT,
    count_lines,
    is_rereadable,
    read_lines,
    shown,
)
from evenmatch.errors import InputError
from evenmatch.types import Pair


class PairFile(Protocol):
    """Pairs in a file; going over it again reads the file again."""

    def __iter__(self) -> Iterator[Pair]: ...
    @property
    def rereadable(self) -> bool: ...
    @property
    def total(self) -> int: ...


def pair_file(path: str) -> PairFile:
    """The pairs of a file by its suffix; standard input is JSONL."""
    if is_json(path):
        return JsonFile(path)
    if is_tsv(path):
        return TsvFile(path)
    if path.lower().endswith(".parquet"):
        return parquet.ParquetPairs(path)
    raise InputError(
        f"cannot tell what kind of file {path} is; name it .jsonl, .tsv or .parquet, "
        "or give line-aligned texts with -c and -r"
    )


@dataclass(frozen=True)
class LineFiles:
    """Line-aligned texts: candidates, one file per reference, and perhaps sources."""

    candidates: str
    references: tuple[str, ...]
    sources: str = ""

    def __post_init__(self) -> None:
        if self._paths.count(STANDARD_INPUT) > 1:
            raise InputError("standard input (-) can stand for one file only")

    def __iter__(self) -> Iterator[Pair]:
        last = 1 + len(self.references)
        for texts in self._rows():
            yield Pair(texts[0], tuple(texts[1:last]), texts[last] if self.sources else None)

    @property
    def rereadable(self) -> bool:
        """Whether every file can be read twice."""
        return all(map(is_rereadable, self._paths))

    @property
    def total(self) -> int:
        """The number of pairs, checked to be the same in all files; 0 where one is a pipe."""
        if not self.rereadable:
            return 0
        counts = [count_lines(path) for path in self._paths]
        self._check(counts)
        return counts[0]

    @property
    def _paths(self) -> tuple[str, ...]:
        return (self.candidates, *self.references, *([self.sources] if self.sources else []))

    def _rows(self) -> Iterator[list[str]]:
        files = [read_lines(path) for path in self._paths]
        given = 0
        while True:
            row = [next(file, None) for file in files]
            texts = [text for text in row if text is not None]
            if len(texts) < len(files):
                break
            given += 1
            yield texts
        self._check(
            [
                given + (text is not None) + sum(1 for _ in file)
                for text, file in zip(row, files, strict=True)
            ]
        )

    def _check(self, counts: Sequence[int]) -> None:
        for path, lines in zip(self._paths, counts, strict=True):
            if lines != counts[0]:
                raise InputError(
                    f"{shown(self.candidates)} has {_lines(counts[0])} but {shown(path)} has "
                    f"{_lines(lines)}; give one line per candidate"
                )


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


@dataclass(frozen=True)
class JsonFile:
    """One JSON object per line, with the fields that `records` names."""

    path: str

    def __iter__(self) -> Iterator[Pair]:
        return (pair_of(record, where) for where, record in json_records(self.path))

    @property
    def rereadable(self) -> bool:
        """Whether the file can be read twice."""
        return is_rereadable(self.path)

    @property
    def total(self) -> int:
        """The number of lines; 0 where it cannot be known before reading."""
        return count_lines(self.path) if self.rereadable else 0


@dataclass(frozen=True)
class TsvFile:
    """A header and one pair per line, read as `tsv_records` says."""

    path: str

    def __iter__(self) -> Iterator[Pair]:
        return (pair_of(record, where) for where, record in tsv_records(self.path))

    @property
    def rereadable(self) -> bool:
        """Whether the file can be read twice."""
        return is_rereadable(self.path)

    @property
    def total(self) -> int:
        """The number of lines below the header; 0 where it cannot be known before reading."""
        return max(0, count_lines(self.path) - 1) if self.rereadable else 0
