"""Pairs of texts to train on, whatever they come from: a list, a file, or rated data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

from evenmatch.data.pairs import pair_file
from evenmatch.data.ratings_reading import RATED, read_ratings
from evenmatch.errors import InputError
from evenmatch.types import Pair

Texts: TypeAlias = str | PathLike[str] | Sequence[Pair]

_EVERY = 10
_GIVEN = "pairs"


def read_pairs(data: Texts) -> list[Pair]:
    """Every pair of a list, of a file such as `evenmatch score` takes, or of rated data."""
    if not isinstance(data, (str, PathLike)):
        return list(data)
    given = fspath(data)
    if given in RATED or Path(given).is_dir():
        return [pair for each in read_ratings(given) for pair in each.pairs(each.cells())]
    return list(pair_file(given))


def split(data: Texts, tests: Sequence[Texts]) -> tuple[list[Pair], Mapping[str, list[Pair]]]:
    """Pairs to train on, and those to judge by under their names: given, or every tenth."""
    pairs = read_pairs(data)
    if tests:
        return pairs, {_name(test, i): read_pairs(test) for i, test in enumerate(tests, 1)}
    apart = pairs[::_EVERY]
    if len(apart) < 2:
        raise InputError(
            f"{len(pairs)} pairs are too few to set some apart; give others to judge by"
        )
    rest = [pair for i, pair in enumerate(pairs) if i % _EVERY]
    return rest, {"held out": apart}


def _name(data: Texts, number: int) -> str:
    return fspath(data) if isinstance(data, (str, PathLike)) else f"{_GIVEN} {number}"
