"""Text files line by line: UTF-8, gzipped or not, or standard input."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from evenmatch.data.addresses import opened_anywhere
from evenmatch.errors import DataError

STANDARD_INPUT = "-"
_BLOCK = 1 << 20
_BYTE_ORDER_MARK = "\ufeff"


def read_lines(path: str) -> Iterator[str]:
    """Each line of a file without its end; empty lines stay in their place.

    Only a line feed ends a line, so that characters such as U+2028 cannot shift the lines of two
    files against each other; one carriage return before it is taken for part of the ending.
    """
    with opened(path) as file:
        for number, raw in enumerate(file, 1):
            yield line_text(raw, number, path)


def line_text(raw: bytes, number: int, path: str) -> str:
    """One line of a file, the first being number 1, as text without its end."""
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{shown(path)} line {number} is no UTF-8 text (byte {error.start + 1}); "
            "save the file as UTF-8"
        ) from None
    if number == 1:
        line = line.removeprefix(_BYTE_ORDER_MARK)
    return line.removesuffix("\n").removesuffix("\r")


def count_lines(path: str) -> int:
    """How many lines `read_lines` would give, without decoding them."""
    count, last = 0, b"\n"
    with opened(path) as file:
        while block := file.read(_BLOCK):
            count += block.count(b"\n")
            last = block
    return count + (not last.endswith(b"\n"))


def is_rereadable(path: str) -> bool:
    """Whether a file can be read a second time: a pipe and standard input cannot."""
    return path != STANDARD_INPUT and (not Path(path).exists() or Path(path).is_file())


def shown(path: str) -> str:
    """A file's name as messages say it."""
    return "standard input" if path == STANDARD_INPUT else path


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """A file's bytes, decompressed where it is gzipped; damage is said in one line."""
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        with opened_anywhere(path) as raw:
            if not path.endswith(".gz"):
                yield raw
                return
            with gzip.open(raw, "rb") as file:
                yield cast(IO[bytes], file)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path} is no whole gzip file ({error}); compress it again") from None
