"""Pairs to audit a metric with: two candidates that differ in whom they speak of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from evenmatch.data.catalogue import data_sets, find
from evenmatch.data.fair_templates import ATTRIBUTES, written_pairs
from evenmatch.data.fair_texts import FairPair, Scored, fair_pair
from evenmatch.data.tabular import records
from evenmatch.errors import DataError, InputError, UnknownNameError

PUBLIC = "metric-fairness"
_SUFFIXES = (".jsonl", ".jsonl.gz", ".tsv", ".tsv.gz")


@dataclass(frozen=True)
class FairSet:
    """Pairs by the attribute they are about, and what the set is called."""

    name: str
    pairs: Mapping[str, Sequence[FairPair]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.pairs.values()))


def read_fair_pairs(data: str | PathLike[str] = "", *, attributes: Sequence[str] = ()) -> FairSet:
    """The pairs of a public set, a folder or a file; without `data`, those of evenmatch.

    `data` is the name of the public set, a folder with one JSONL file per attribute, or one JSONL
    file of `cand_a, ref_a, cand_b, ref_b`, the stereotype first; `attribute` may say what a pair is
    about, else the file's name does. `attributes` reads those only.
    """
    given = fspath(data)
    found = _read(given)
    for name in attributes:
        if name not in found:
            raise UnknownNameError(
                f"{given or 'the set'} has no pairs about {name!r}; it has: {', '.join(found)}"
            )
    kept = {name: found[name] for name in attributes or found}
    return FairSet(Path(given).name if given else "evenmatch", kept)


def _read(given: str) -> dict[str, list[FairPair]]:
    if not given:
        return {attribute: written_pairs(attribute) for attribute in ATTRIBUTES}
    if given == PUBLIC:
        return _folder(find(given))
    path = Path(given)
    if path.is_dir():
        return _folder(path)
    if path.is_file():
        return _file(path)
    if given in {each.name for each in data_sets()}:
        raise InputError(f"the data set {given!r} has no pairs to audit with; {PUBLIC!r} has")
    raise DataError(
        f"there is no data set, folder or file {given!r}; give {PUBLIC!r}, a folder, "
        "a JSONL file of cand_a, ref_a, cand_b, ref_b, or nothing for the pairs of evenmatch"
    )


def _folder(folder: Path) -> dict[str, list[FairPair]]:
    files = sorted(p for p in folder.iterdir() if p.name.endswith(_SUFFIXES))
    if not files:
        raise DataError(f"the folder {folder} has no file ATTRIBUTE.jsonl; expected one or more")
    found: dict[str, list[FairPair]] = {}
    for file in files:
        for attribute, pairs in _file(file).items():
            found.setdefault(attribute, []).extend(pairs)
    return found


def _file(path: Path) -> dict[str, list[FairPair]]:
    found: dict[str, list[FairPair]] = {}
    for attribute, pair in _pairs(path):
        found.setdefault(attribute, []).append(pair)
    if not found:
        raise DataError(f"{path} has no pair; expected a line of cand_a, ref_a, cand_b, ref_b each")
    return found


def _pairs(path: Path) -> Iterator[tuple[str, FairPair]]:
    named = path.name.partition(".")[0]
    for where, record in records(str(path)):
        texts = [_text(record, name, where) for name in ("cand_a", "ref_a", "cand_b", "ref_b")]
        scores = _joined(_scores(record, "scores_a"), _scores(record, "scores_b"), where)
        pair = fair_pair(*texts, scores=scores)
        yield str(record.get("attribute") or named), pair


def _text(record: Mapping[str, Any], name: str, where: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        raise InputError(
            f"{where} has no text {name!r}; each line has cand_a, ref_a, cand_b and ref_b"
        )
    return value


def _scores(record: Mapping[str, Any], name: str) -> Mapping[str, float]:
    scores = record.get(name)
    return scores if isinstance(scores, Mapping) else {}


def _joined(a: Mapping[str, float], b: Mapping[str, float], where: str) -> Scored:
    if a.keys() != b.keys():
        raise InputError(f"{where} has scores of other metrics for a than for b; give both or none")
    return {metric: (float(a[metric]), float(b[metric])) for metric in a}
