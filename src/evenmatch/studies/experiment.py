"""Work in cells: each is kept as a small file, so that a study goes on where it was stopped.

Runs of training as a study takes them: one after the other, until there is enough.

What a paper says of two arms, and whether it is seen here.

Scores of an arm by its seeds: the mean, its interval, and what two arms differ by.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from evenmatch.data.scores import atomic_write
from evenmatch.errors import DataError, InputError
from evenmatch.stats.bootstrap import Interval
from evenmatch.stats.p_values import p_value
from evenmatch.stats.paired import (
    ResampledScore,
    mean_of_seeds,
    percentile_bounds,
    swapped_differences,
)

_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9.]+")


@dataclass(frozen=True, slots=True)
class ResultStore:
    """A folder of results, each with the recipe it was made by.

    A result is found again only by the same recipe, so other texts or settings are worked out
    anew, in place of the old.
    """

    folder: Path

    def load(self, name: str, recipe: dict[str, Any]) -> dict[str, Any] | None:
        """What was kept under a name for this recipe, if anything was."""
        path = self._path(name)
        if not path.exists():
            return None
        try:
            kept = json.loads(path.read_text("utf-8"))
            same: bool = kept["recipe"] == _json_round_trip(recipe)
            found: dict[str, Any] = kept["found"]
        except (ValueError, KeyError, TypeError):
            raise DataError(
                f"{path} is no result of a study; remove it, and it is redone"
            ) from None
        return found if same else None

    def save(self, name: str, recipe: dict[str, Any], found: dict[str, Any]) -> None:
        """Keep a result; it appears whole or not at all."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(str(path)) as place:
            text = json.dumps({"recipe": recipe, "found": found}) + "\n"
            Path(place).write_text(text, "utf-8")

    def _path(self, name: str) -> Path:
        return self.folder / "cells" / f"{slug(name)}.json"


def slug(name: str) -> str:
    """A name as a file can have it.

    >>> slug("org/model layer 4, recursive(legacy=True)")
    'org-model-layer-4-recursive-legacy-True'
    """
    return _UNSAFE_CHARACTERS.sub("-", name).strip("-")


def make_study_folder(path: str | Path) -> Path:
    """A folder for a study, made where it is not there."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from None
    return folder


def _json_round_trip(recipe: dict[str, Any]) -> Any:
    """A recipe as it comes back from a file."""
    return json.loads(json.dumps(recipe))


_Run = TypeVar("_Run")


_Result = TypeVar("_Result")


_CURVE_POINTS = 60  # of a curve that are kept


def load_or_run(
    nodes: Iterable[_Run],
    kept: Callable[[_Run], _Result | None],
    made: Callable[[_Run], _Result | None],
) -> list[_Result]:
    """The result of each run, made now where none is kept; up to the first that was paused."""
    found: list[_Result] = []
    for node in nodes:
        result = kept(node) or made(node)
        if result is None:
            break
        found.append(result)
    return found


def describe_missing(names: Sequence[str], done: int) -> Iterator[str]:
    """A line for readers where runs are not there yet."""
    if names:
        yield f"{done} runs are done, {len(names)} are not: {', '.join(names)}; run it again"


def downsample_curve(values: Sequence[float]) -> list[float]:
    """The means of so many stretches, so that a curve keeps its shape in a small file."""
    size = -(-len(values) // _CURVE_POINTS)
    stretches = (values[i : i + size] for i in range(0, len(values), size))
    return [round(sum(each) / len(each), 4) for each in stretches]


def write_json_gz(path: Path, content: Any) -> None:
    """Write what JSON can hold, compressed; it appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content)
    with atomic_write(str(path)) as place:
        # Without a date, so that the same content is the same file.
        Path(place).write_bytes(gzip.compress(text.encode(), mtime=0))


def read_json_gz(path: Path) -> Any:
    """What `write_packed` wrote."""
    return json.loads(gzip.decompress(path.read_bytes()))


REPLICATED, REVERSED, NOT_REPLICATED = "seen", "the reverse is seen", "not seen"


@dataclass(frozen=True, slots=True)
class Claim:
    """What is said, and by metric or test set the difference seen here with its verdict."""

    statement: str
    results: Mapping[str, tuple[Interval, str]]


def evaluate_claim(one: SeededScores, less: SeededScores, metric: str) -> tuple[Interval, str]:
    """The difference, and whether it goes the way claimed: beyond chance and for every seed."""
    seen, gaps = arm_difference(one, less, metric), seed_differences(one, less, metric)
    if seen.low > 0 and min(gaps) > 0:
        return seen, REPLICATED
    if seen.high < 0 and max(gaps) < 0:
        return seen, REVERSED
    return seen, NOT_REPLICATED


def format_claim(claim: Claim) -> str:
    """A claim as a line to read; differences are times 100."""
    parts = [
        f"{where} {format_interval(seen, signed=True, times=100, places=2)}, {verdict}"
        for where, (seen, verdict) in claim.results.items()
    ]
    return f"{claim.statement}: {'; '.join(parts)}"


CONFIDENCE = 0.95


class SeededScores(Protocol):
    """An arm: its seeds, and by metric what each of them scores on the same resampled tests."""

    @property
    def seeds(self) -> tuple[int, ...]: ...
    @property
    def resampled(self) -> Mapping[str, tuple[ResampledScore, ...]]: ...


def mean_over_seeds(arm: SeededScores, metric: str) -> Interval:
    """The mean over seeds, with the bounds that resampled tests give it."""
    value, draws = mean_of_seeds(arm.resampled[metric])
    return Interval(value, *percentile_bounds(draws, CONFIDENCE))


def arm_difference(one: SeededScores, other: SeededScores, metric: str) -> Interval:
    """The mean difference of two arms on the same tests and seeds."""
    shared = shared_seeds(one, other)
    (a, a_draws), (b, b_draws) = (
        mean_of_seeds([each.resampled[metric][each.seeds.index(seed)] for seed in shared])
        for each in (one, other)
    )
    return Interval(a - b, *percentile_bounds(a_draws - b_draws, CONFIDENCE))


def permutation_p_value(one: SeededScores, other: SeededScores, metric: str) -> float:
    """The p-value of no difference for these seeds, by swapping the arms' outputs test by test.

    A test is swapped for all seeds at once, since they share its difficulty.
    """
    pairs = [
        [each.resampled[metric][each.seeds.index(seed)] for each in (one, other)]
        for seed in shared_seeds(one, other)
    ]
    value = float(np.mean([a.value - b.value for a, b in pairs]))
    draws = np.mean([swapped_differences(a, b) for a, b in pairs], axis=0)
    return p_value(draws, value, "two-sided")


def seed_differences(one: SeededScores, other: SeededScores, metric: str) -> list[float]:
    """The difference of two arms, seed by seed."""
    values = [
        {seed: drawn.value for seed, drawn in zip(each.seeds, each.resampled[metric], strict=True)}
        for each in (one, other)
    ]
    return [values[0][seed] - values[1][seed] for seed in shared_seeds(one, other)]


def shared_seeds(one: SeededScores, other: SeededScores) -> list[int]:
    """The seeds that both arms were run with."""
    return [seed for seed in one.seeds if seed in other.seeds]


def format_interval(
    found: Interval, *, signed: bool = False, times: float = 1.0, places: int = 3
) -> str:
    """A number and its bounds as a table shows them.

    >>> format_interval(Interval(0.125, 0.1, 0.15), times=100, places=1, signed=True)
    '+12.5 [+10.0, +15.0]'
    """
    form = f"{'+' if signed else ''}.{places}f"
    value, low, high = (f"{times * n:{form}}" for n in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"
