"""The parts of a run put together into one file, in order."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from evenmatch.data.addresses import is_address, upload
from evenmatch.data.parquet import join_tables
from evenmatch.data.rows import appearing


def join_parts(parts: Sequence[Path], out: str) -> None:
    """One file of all rows; it appears whole or not at all.

    At an address of another place it is made here and then copied there; whether half a copy can be
    seen on the way is up to that place.
    """
    if is_address(out):
        with tempfile.TemporaryDirectory(dir=parts[0].parent) as folder:
            whole = str(Path(folder) / Path(out).name)
            join_parts(parts, whole)
            upload(whole, out)
        return
    with appearing(out) as place:
        if out.lower().endswith(".parquet"):
            join_tables([str(part) for part in parts], place)
        else:
            opened: Any = gzip.open if out.lower().endswith(".gz") else open
            with opened(place, "wb") as sink:
                _chain(parts, sink, headed=form_of(out) == ".tsv")
        with open(place, "rb+") as file:
            os.fsync(file.fileno())


def form_of(out: str) -> str:
    """The suffix of the parts of a file: they are not compressed."""
    return Path(out.lower().removesuffix(".gz")).suffix


def _chain(parts: Sequence[Path], sink: IO[bytes], *, headed: bool) -> None:
    """Text after text, of those with a header only the first one's."""
    for n, part in enumerate(parts):
        with part.open("rb") as source:
            if headed and n:
                source.readline()
            shutil.copyfileobj(source, sink, 1 << 20)
