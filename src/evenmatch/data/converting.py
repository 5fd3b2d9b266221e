"""Upstream's files into ours: the converters by name, and how what they give is written."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from evenmatch.errors import DataError

# A file of ours: its name, and its lines with their ends.
Converted: TypeAlias = tuple[str, Iterable[str]]


class Converter(Protocol):
    """Makes our files from a folder that has upstream's as REPOSITORY/PATH."""

    def __call__(self, originals: Path, /) -> Iterator[Converted]: ...


_MODULES: Mapping[str, str] = {
    "amr": "trees",
    "crows": "tables",
    "daseg": "wmt",
    "data_to_text": "pickles",
    "fairness": "tables",
    "gum": "trees",
    "kp20k": "tables",
    "menli": "tables",
    "realsumm": "pickles",
    "sick": "tables",
    "snli": "tables",
    "stsb": "tables",
    "summeval": "pickles",
    "unchanged": "trees",
    "wmt18": "wmt",
    "wmt19": "wmt",
}


def converter(name: str) -> Converter:
    """The converter of that name, which is a function of one of the modules beside this one."""
    module = import_module(f"evenmatch.data.converting_{_MODULES[name]}")
    found: Converter = getattr(module, name)
    return found


def plain_lines(path: Path) -> Iterator[str]:
    """The lines of a file without their ends; a byte order mark is part of the first.

    Some systems' outputs begin with one, and what they gave is what was judged.
    """
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n").removesuffix("\r")


def json_lines(records: Iterable[Any]) -> Iterator[str]:
    """Records as the lines of a JSONL file, without needless spaces."""
    for record in records:
        yield json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def write(converted: Iterator[Converted], folder: Path) -> dict[str, str]:
    """Write files, gzipped where their names say so; the sha256 of each one's content."""
    folder.mkdir(parents=True)
    found = {}
    try:
        for name, lines in converted:
            found[name] = _write(lines, folder / name)
    except (ValueError, LookupError, TypeError, AttributeError, csv.Error) as error:
        raise DataError(
            f"upstream's files are not as expected ({type(error).__name__}: {error}); "
            "nothing was kept"
        ) from None
    return found


def _write(lines: Iterable[str], path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("wb") as raw:
        # No time and no name in the header: the same content is the same file.
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw
        for line in chain(lines, [""]):
            packed.write(line.encode())
            digest.update(line.encode())
        if packed is not raw:
            packed.close()
    return digest.hexdigest()
