"""Public sets of sentence pairs, and files of one's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from evenmatch.data.catalogue import find
from evenmatch.data.pairs import pair_file
from evenmatch.data.tabular import json_records
from evenmatch.errors import DataError, InputError
from evenmatch.types import Pair

# Which file of each public set is for training; the others are for judging.
TRAINING: Mapping[str, str] = {"sts-b": "train", "sick": "train", "snli": "dev"}


def read_sentence_pairs(data: str, split: str = "") -> list[Pair]:
    """The pairs of a public set, or of a file that `evenmatch score` takes; the first is judged.

    `split` is a public set's file: its training pairs unless said.
    """
    if data in TRAINING:
        path = find(data) / f"{split or TRAINING[data]}.jsonl.gz"
        if not path.is_file():
            raise DataError(f"the data set {data!r} has no split {split!r}")
        return list(_public(path))
    if not Path(data).is_file():
        raise InputError(
            f"there is no set of sentence pairs {data!r}; give a file, or one of "
            f"{', '.join(TRAINING)}"
        )
    return list(pair_file(data))


def _public(path: Path) -> Iterator[Pair]:
    for _, record in json_records(str(path)):
        yield Pair(str(record["s1"]), (str(record["s2"]),))
