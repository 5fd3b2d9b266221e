"""The plan of a large run: its input cut into shards of rows, each known by its content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evenmatch.data.addresses import check_rereadable, files_under, is_address, local
from evenmatch.data.tabular import is_json
from evenmatch.errors import DataError, InputError
from evenmatch.uses.scale.cuts import Cut
from evenmatch.uses.scale.lines import cut_lines
from evenmatch.uses.scale.tables import cut_table


@dataclass(frozen=True, slots=True)
class Shard:
    """So many rows of one file: `first` counts from the first row of the whole input."""

    number: int
    first: int
    file: str
    cut: Cut

    @property
    def rows(self) -> int:
        """How many rows it holds."""
        return self.cut.rows

    def range_of(self, begin: int, end: int) -> str:
        """The place of some of its rows, in words; both are counted from its first row."""
        low, high = self.first + begin, self.first + end - 1
        own = self.cut.begin + begin + 1, self.cut.begin + end
        rows = f"row {low}" if low == high else f"rows {low} to {high}"
        what = "line" if is_json(self.file) else "row"
        place = f"{what} {own[0]}" if low == high else f"{what}s {own[0]} to {own[1]}"
        return f"{rows} ({self.file} {place})"

    @property
    def words(self) -> str:
        """Where it lies, for messages."""
        return self.range_of(0, self.rows)


def plan_shards(path: str, rows: int) -> list[Shard]:
    """The shards of a JSONL or Parquet file, or of all such files of a folder in name order.

    Reads the whole input once: shards are known by their content, so that a later run can tell
    whether what is done still fits.
    """
    if rows < 1:
        raise InputError(f"a shard holds at least 1 row, got {rows}")
    shards: list[Shard] = []
    first = 0
    for file in _files(local(path)):
        for cut in _cuts(file, rows):
            shards.append(Shard(len(shards), first, file, cut))
            first += cut.rows
    if not shards:
        raise InputError("there is nothing to score: the input holds no pair")
    return shards


def _files(path: str) -> list[str]:
    if is_address(path):
        # Asked whether it is a folder, a web server would send the whole file.
        found = _known(path, [path] if _is_known(path) else files_under(path))
        check_rereadable(found[0])
        return found
    place = Path(path)
    if place.is_dir():
        return _known(path, sorted(str(p) for p in place.rglob("*") if p.is_file()))
    if place.exists() and not place.is_file():
        raise InputError(f"{path} can be read only once; save it to a file first")
    return _known(path, [path])


def _known(path: str, files: list[str]) -> list[str]:
    """The files of pairs among those a path stands for."""
    found = [file for file in files if _is_known(file)]
    if not found and files == [path]:
        raise InputError(
            f"cannot cut {path} into shards; give .jsonl or .parquet, or a folder of them"
        )
    if not found:
        raise DataError(f"the folder {path} holds no .jsonl and no .parquet file")
    return found


def _is_known(path: str) -> bool:
    return path != "-" and (is_json(path) or path.lower().endswith(".parquet"))


def _cuts(file: str, rows: int) -> Iterator[Cut]:
    return cut_lines(file, rows) if is_json(file) else cut_table(file, rows)
