"""Files of records: JSONL, TSV and Parquet, one mapping per row, with where it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from evenmatch.data import parquet
from evenmatch.data.texts import STANDARD_INPUT, read_lines, shown
from evenmatch.errors import InputError

# A record, behind the words that say which file and row it is.
Placed: TypeAlias = tuple[str, Mapping[str, Any]]

_REFERENCE_COLUMN = re.compile(r"references?[_.]?\d*")


def is_json(path: str) -> bool:
    """Whether a file of that name, or standard input, has a JSON object on each line."""
    plain = path.lower().removesuffix(".gz")
    return path == STANDARD_INPUT or plain.endswith((".jsonl", ".json", ".ndjson"))


def is_tsv(path: str) -> bool:
    """Whether a file of that name has columns between tabs."""
    return path.lower().removesuffix(".gz").endswith(".tsv")


def records(path: str) -> Iterator[Placed]:
    """The records of a file by its suffix."""
    if is_json(path):
        return json_records(path)
    if is_tsv(path):
        return tsv_records(path)
    if path.lower().endswith(".parquet"):
        return parquet.parquet_records(path)
    raise InputError(f"cannot tell what kind of file {path} is; name it .jsonl, .tsv or .parquet")


def json_records(path: str) -> Iterator[Placed]:
    """One JSON object per line; blank lines may stand at the end only."""
    blank = 0
    for number, line in enumerate(read_lines(path), 1):
        where = f"{shown(path)} line {number}"
        if not line.strip():
            blank = blank or number
            continue
        # Blank lines at the end are no rows; one in the middle would shift those after it.
        if blank:
            raise InputError(f"{shown(path)} line {blank} is blank; expected JSON")
        yield where, json_object(line, where)


def json_object(line: str, where: str) -> dict[str, Any]:
    """The JSON object that a line holds; `where` names the file and line for messages."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise InputError(f"{where} is no JSON: {reason}") from None
    if not isinstance(record, dict):
        raise InputError(f"{where} must be a JSON object, got {type(record).__name__}")
    return record


def tsv_records(path: str) -> Iterator[Placed]:
    """A header and one record per line, split at tabs only: quotes are text like any other.

    The columns `reference`, `reference2` and so on are all `references`, empty cells too.
    """
    rows = read_lines(path)
    header = next(rows, "").split("\t")
    references = [n for n, name in enumerate(header) if _REFERENCE_COLUMN.fullmatch(name)]
    others = [(n, name) for n, name in enumerate(header) if n not in references]
    for number, line in enumerate(rows, 2):
        cells = line.split("\t")
        where = f"{shown(path)} line {number}"
        if len(cells) != len(header):
            raise InputError(
                f"{where} has {len(cells)} columns and the header {len(header)}; "
                "write text with tabs or line ends as JSONL"
            )
        record: dict[str, Any] = {name: cells[n] for n, name in others}
        if references:
            record["references"] = [cells[n] for n in references]
        yield where, record
