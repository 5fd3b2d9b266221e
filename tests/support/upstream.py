"""Write upstream files to a folder and convert them, for the tests of converters."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from evenmatch.data.catalogue.convert import CONVERTERS, write_converted

# Upstream files by repository and path.
Files: TypeAlias = Mapping[str, str | bytes]


def convert(name: str, files: Files, folder: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    for path, content in files.items():
        target = folder / "upstream" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    sums = write_converted(CONVERTERS[name](folder / "upstream"), folder / "made")
    return {path.name: list(lines(path)) for path in (folder / "made").iterdir()}, sums


def lines(path: Path) -> Iterator[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from (line.removesuffix("\n") for line in file)
