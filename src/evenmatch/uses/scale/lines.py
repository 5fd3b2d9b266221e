"""Stretches of JSONL: cut without reading what is in them, carried as bytes, read by a worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import islice
from typing import IO

from evenmatch.data.records import pair_of
from evenmatch.data.tabular import json_object
from evenmatch.data.texts import line_text, opened
from evenmatch.errors import InputError
from evenmatch.types import Pair
from evenmatch.uses.scale.cuts import Cut, content_name


def cut_lines(path: str, rows: int) -> Iterator[Cut]:
    """The stretches of a file of lines; blank lines at its end are no rows."""
    held: list[tuple[Cut, int]] = []  # a stretch, its rows up to the last that is not blank
    with opened(path) as file:
        for cut, filled in _stretches(file, rows):
            if filled:
                yield from (before for before, _ in held)
                held = []
            held.append((cut, filled))
    last, filled = held[0] if held else (None, 0)
    if last is not None and filled:
        yield dataclasses.replace(last, rows=filled)


def _stretches(file: IO[bytes], rows: int) -> Iterator[tuple[Cut, int]]:
    begin = offset = 0
    while lines := list(islice(file, rows)):
        data = b"".join(lines)
        filled = max((n for n, line in enumerate(lines, 1) if line.strip()), default=0)
        yield Cut(begin, len(lines), (offset, len(data)), content_name(data)), filled
        begin += len(lines)
        offset += len(data)


def load_lines(file: IO[bytes], cut: Cut) -> bytes:
    """The bytes of a stretch."""
    offset, size = cut.at
    file.seek(offset)
    return file.read(size)


def line_pairs(data: bytes, cut: Cut, path: str) -> Iterator[Pair]:
    """The pairs in a stretch, one by one; one that is none raises an error that says where."""
    lines = data.split(b"\n")
    for number, raw in enumerate(lines[: cut.rows], cut.begin + 1):
        line = line_text(raw, number, path)
        where = f"{path} line {number}"
        if not line.strip():
            raise InputError(f"{where} is blank; expected JSON")
        yield pair_of(json_object(line, where), where)
