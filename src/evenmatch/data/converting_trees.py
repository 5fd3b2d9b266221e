"""Converters for sets of trees and graphs, and for files that are kept as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenmatch.data.converting import Converted, json_lines, plain_lines

_PACKED = ".conllu"


def unchanged(originals: Path) -> Iterator[Converted]:
    """Upstream's files as they are; large ones gzipped."""
    for path in sorted(path for path in originals.rglob("*") if path.is_file()):
        with path.open(encoding="utf-8", newline="") as file:
            yield path.name + (".gz" if path.suffix == _PACKED else ""), file


def amr(originals: Path) -> Iterator[Converted]:
    """Graphs in PENMAN notation, each below lines that begin with #."""
    path = originals / "wuhao050698/AMR/amr-bank-struct-v3.0.txt"
    yield "lpp_v3.0.jsonl.gz", json_lines(_graphs(path))


def _graphs(path: Path) -> Iterator[dict[str, str]]:
    for block in "\n".join(plain_lines(path)).split("\n\n"):
        lines = block.strip("\n").split("\n")
        said = dict(_said(line) for line in lines if line.startswith("# ::"))
        graph = "\n".join(line for line in lines if not line.startswith("#"))
        if "id" in said:
            yield {"id": said["id"].split()[0], "snt": said["snt"], "amr": graph}


def _said(line: str) -> tuple[str, str]:
    key, _, value = line.removeprefix("# ::").partition(" ")
    return key, value


def gum(originals: Path) -> Iterator[Converted]:
    """Trees in brackets over many lines, each put on one."""
    folder = originals / "amir-zeldes/gum/const"
    records = (record for path in sorted(folder.glob("*.ptb")) for record in _trees(path))
    yield "gum_const.jsonl.gz", json_lines(records)


def _trees(path: Path) -> Iterator[dict[str, Any]]:
    depth, number, parts = 0, 0, list[str]()
    for line in plain_lines(path):
        parts += line.split()
        depth += line.count("(") - line.count(")")
        if parts and not depth:
            yield {"doc": path.stem, "n": number, "tree": " ".join(parts)}
            number, parts = number + 1, []
