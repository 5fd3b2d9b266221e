"""Runs of training as a study takes them: one after the other, until there is enough."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from evenmatch.data.rows import appearing

_Node = TypeVar("_Node")
_Result = TypeVar("_Result")

_POINTS = 60  # of a curve that are kept


def carry_out(
    nodes: Iterable[_Node],
    kept: Callable[[_Node], _Result | None],
    made: Callable[[_Node], _Result | None],
) -> list[_Result]:
    """The result of each run, made now where none is kept; up to the first that was paused."""
    found: list[_Result] = []
    for node in nodes:
        result = kept(node) or made(node)
        if result is None:
            break
        found.append(result)
    return found


def missing(names: Sequence[str], done: int) -> Iterator[str]:
    """A line for readers where runs are not there yet."""
    if names:
        yield f"{done} runs are done, {len(names)} are not: {', '.join(names)}; run it again"


def thinned(values: Sequence[float]) -> list[float]:
    """The means of so many stretches, so that a curve keeps its shape in a small file."""
    size = -(-len(values) // _POINTS)
    stretches = (values[i : i + size] for i in range(0, len(values), size))
    return [round(sum(each) / len(each), 4) for each in stretches]


def write_packed(path: Path, content: Any) -> None:
    """Write what JSON can hold, compressed; it appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content)
    with appearing(str(path)) as place:
        # Without a date, so that the same content is the same file.
        Path(place).write_bytes(gzip.compress(text.encode(), mtime=0))


def read_packed(path: Path) -> Any:
    """What `write_packed` wrote."""
    return json.loads(gzip.decompress(path.read_bytes()))
