"""The input of a large run while it goes on: one file open at a time, read shard by shard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from evenmatch.data.parquet import opened_table
from evenmatch.data.tabular import is_json
from evenmatch.data.texts import opened
from evenmatch.errors import DataError
from evenmatch.types import Pair
from evenmatch.uses.scale.cuts import Cut, content_name
from evenmatch.uses.scale.lines import line_pairs, load_lines
from evenmatch.uses.scale.shards import Shard
from evenmatch.uses.scale.tables import load_rows, read_group, row_pairs


class Loader:
    """Gives the bytes of shards; those of one file in a row are read without opening it again."""

    def __init__(self) -> None:
        self._files = ExitStack()
        self._open: tuple[str, Any] = ("", None)
        self._group: tuple[str, int, Any] = ("", -1, None)

    def __call__(self, shard: Shard) -> bytes:
        """The shard's bytes, or an error where they are no longer what was planned."""
        data = self._lines(shard) if is_json(shard.file) else self._rows(shard)
        if content_name(data) != shard.cut.content:
            raise DataError(f"{shard.file} changed while it was being scored; start again")
        return data

    def close(self) -> None:
        """Let go of the file that is open."""
        self._files.close()

    def _lines(self, shard: Shard) -> bytes:
        return load_lines(self._opened(shard.file, opened), shard.cut)

    def _rows(self, shard: Shard) -> bytes:
        file, group = self._opened(shard.file, opened_table), shard.cut.at[0]
        if self._group[:2] != (shard.file, group):
            self._group = (shard.file, group, read_group(file, group))
        return load_rows(self._group[2], shard.cut)

    def _opened(self, path: str, how: Any) -> Any:
        if self._open[0] != path:
            self._files.close()
            self._open = (path, self._files.enter_context(how(path)))
        return self._open[1]


@contextmanager
def loading() -> Iterator[Loader]:
    """A loader for as long as the block runs."""
    loader = Loader()
    try:
        yield loader
    finally:
        loader.close()


def pairs_in(data: bytes, cut: Cut, path: str) -> Iterator[Pair]:
    """The pairs of a shard's bytes, by the name of the file they come from."""
    return line_pairs(data, cut, path) if is_json(path) else row_pairs(data, cut, path)
