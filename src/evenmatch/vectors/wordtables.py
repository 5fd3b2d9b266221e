"""Tables of word vectors, as word2vec and GloVe write them: found, read, looked up."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from evenmatch.errors import DataError
from evenmatch.storage import contents
from evenmatch.storage.contents import BY_CONTENT
from evenmatch.types import NO_FLAGS, Array, Units
from evenmatch.units.words import Words
from evenmatch.vectors.states import States


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table on this disk: its file, and the hash of its content."""

    path: Path
    digest: str

    @property
    def name(self) -> str:
        """The table by content, as a signature shows it."""
        return f"{BY_CONTENT}{self.digest[:16]}"


def find(table: str) -> TableFile:
    """The table of that file or content hash."""
    if table.startswith(BY_CONTENT):
        path = contents.recall("tables", table)
        if path is not None and path.is_file():
            found = TableFile(path, contents.file_digest(path))
            if found.name == table:
                return found
        raise DataError(
            f"no vector table with the content {table} has been used on this machine; "
            "give the file that holds it instead"
        )
    path = Path(table).expanduser()
    if not path.is_file():
        raise DataError(f"there is no vector table {table}; give a file of words and numbers")
    found = TableFile(path, contents.file_digest(path))
    contents.remember("tables", found.name, path)
    return found


@dataclass(frozen=True, eq=False)
class WordTable:
    """Words looked up in a table, as written or in lower case."""

    rows: Mapping[str, int]
    matrix: Array

    def __call__(self, texts: Sequence[str]) -> list[States]:
        """One row per word; the last row of the matrix is zero and stands for the unknown."""
        return [self._one(Words()(text)) for text in texts]

    def _one(self, units: Units) -> States:
        lost = len(self.matrix) - 1
        keys = np.array([self._row(w, lost) for w in units.words], dtype=np.int64)
        spans = np.array(units.spans, dtype=np.int32).reshape(-1, 2)
        unknown = keys.size > 0 and bool((keys == lost).all())
        flags = frozenset({"unknown_only"}) if unknown else NO_FLAGS
        return States(units.text, keys, spans, {}, {0: self.matrix[keys]}, flags)

    def _row(self, word: str, lost: int) -> int:
        return self.rows.get(word, self.rows.get(word.lower(), lost))


@lru_cache(maxsize=2)
def read(table: TableFile) -> WordTable:
    """The table itself; of a word that stands there twice the first vector counts."""
    rows: dict[str, int] = {}
    vectors: list[Array] = []
    try:
        for word, vector in _entries(table.path):
            if vectors and len(vector) != len(vectors[0]):
                raise DataError(
                    f"{table.path} gives {word!r} {len(vector)} numbers, not {len(vectors[0])}"
                )
            rows.setdefault(word, len(vectors))
            vectors.append(vector)
    except DataError:
        raise
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"cannot read the vector table {table.path}: {error}") from None
    if not vectors:
        raise DataError(f"the vector table {table.path} is empty")
    return WordTable(rows, np.vstack([*vectors, np.zeros_like(vectors[0])]))


def _entries(path: Path) -> Iterator[tuple[str, Array]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file):
            word, *numbers = line.rstrip().split(" ")
            if number == 0 and len(numbers) == 1:
                continue  # word2vec's first line: how many words, how many numbers each
            yield word, np.array([n for n in numbers if n], dtype=np.float32)
