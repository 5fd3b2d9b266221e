"""What all studies share: stored results, runs over several seeds, and claims to check.

`ResultStore` keeps each result in a small file, so that a study resumes where it was stopped. An
arm is one condition of an experiment, run with several seeds. A `Claim` is a statement of a paper
about two arms, with the difference found here.
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

REPLICATED, REVERSED, NOT_REPLICATED = "replicated", "reversed", "not replicated"
CONFIDENCE = 0.95
_CURVE_POINTS = 60  # points stored of a curve
_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9.]+")
_Run = TypeVar("_Run")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ResultStore:
    """A folder of results, each stored with the recipe that produced it.

    A result is returned only for an equal recipe; with other texts or settings it is computed
    again and replaced.
    """

    folder: Path

    def load(self, name: str, recipe: dict[str, Any]) -> dict[str, Any] | None:
        """Return the result stored under a name with this recipe, or None."""
        path = self._path(name)
        if not path.exists():
            return None
        try:
            kept = json.loads(path.read_text("utf-8"))
            same: bool = kept["recipe"] == _json_round_trip(recipe)
            found: dict[str, Any] = kept["found"]
        except (ValueError, KeyError, TypeError):
            raise DataError(
                f"{path} is not a result of a study; remove it to compute it again"
            ) from None
        return found if same else None

    def save(self, name: str, recipe: dict[str, Any], found: dict[str, Any]) -> None:
        """Store a result atomically."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(str(path)) as place:
            text = json.dumps({"recipe": recipe, "found": found}) + "\n"
            Path(place).write_text(text, "utf-8")

    def _path(self, name: str) -> Path:
        return self.folder / "cells" / f"{slug(name)}.json"


def load_or_run(
    nodes: Iterable[_Run],
    load: Callable[[_Run], _Result | None],
    run: Callable[[_Run], _Result | None],
) -> list[_Result]:
    """Load or compute the result of each run, up to the first that is paused (returns None)."""
    found: list[_Result] = []
    for node in nodes:
        result = load(node) or run(node)
        if result is None:
            break
        found.append(result)
    return found


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement, and by metric or test set the difference found here with its verdict."""

    statement: str
    results: Mapping[str, tuple[Interval, str]]


def evaluate_claim(one: SeededScores, less: SeededScores, metric: str) -> tuple[Interval, str]:
    """Return the difference `one` - `less`, and whether it is as claimed.

    A claim is replicated if the interval and the difference of every seed are above 0, and
    reversed if all are below 0.
    """
    difference, by_seed = arm_difference(one, less, metric), seed_differences(one, less, metric)
    if difference.low > 0 and min(by_seed) > 0:
        return difference, REPLICATED
    if difference.high < 0 and max(by_seed) < 0:
        return difference, REVERSED
    return difference, NOT_REPLICATED


def format_claim(claim: Claim) -> str:
    """Return a claim as a line of text; differences are times 100."""
    parts = [
        f"{where} {format_interval(difference, signed=True, times=100, places=2)}, {verdict}"
        for where, (difference, verdict) in claim.results.items()
    ]
    return f"{claim.statement}: {'; '.join(parts)}"


def describe_missing(names: Sequence[str], done: int) -> Iterator[str]:
    """Yield a line that names the runs without results, if there are any."""
    if names:
        yield (
            f"{done} runs are done, {len(names)} are not: {', '.join(names)}; "
            "run the study again to continue"
        )


class SeededScores(Protocol):
    """An arm: its seeds, and by metric the score of each seed on the same resampled test sets."""

    @property
    def seeds(self) -> tuple[int, ...]: ...
    @property
    def resampled(self) -> Mapping[str, tuple[ResampledScore, ...]]: ...


def mean_over_seeds(arm: SeededScores, metric: str) -> Interval:
    """Return the mean over seeds, with a bootstrap interval over test items."""
    value, draws = mean_of_seeds(arm.resampled[metric])
    return Interval(value, *percentile_bounds(draws, CONFIDENCE))


def arm_difference(one: SeededScores, other: SeededScores, metric: str) -> Interval:
    """Return the mean difference of two arms over shared seeds, with a bootstrap interval."""
    shared = shared_seeds(one, other)
    (a, a_draws), (b, b_draws) = (
        mean_of_seeds([each.resampled[metric][each.seeds.index(seed)] for seed in shared])
        for each in (one, other)
    )
    return Interval(a - b, *percentile_bounds(a_draws - b_draws, CONFIDENCE))


def permutation_p_value(one: SeededScores, other: SeededScores, metric: str) -> float:
    """Return the p-value of a permutation test that swaps the arms' outputs item by item.

    A test item is swapped for all seeds at once, since they share its difficulty.
    """
    pairs = [
        [each.resampled[metric][each.seeds.index(seed)] for each in (one, other)]
        for seed in shared_seeds(one, other)
    ]
    value = float(np.mean([a.value - b.value for a, b in pairs]))
    draws = np.mean([swapped_differences(a, b) for a, b in pairs], axis=0)
    return p_value(draws, value, "two-sided")


def seed_differences(one: SeededScores, other: SeededScores, metric: str) -> list[float]:
    """Return the difference of two arms for each shared seed."""
    values = [
        {seed: score.value for seed, score in zip(each.seeds, each.resampled[metric], strict=True)}
        for each in (one, other)
    ]
    return [values[0][seed] - values[1][seed] for seed in shared_seeds(one, other)]


def shared_seeds(one: SeededScores, other: SeededScores) -> list[int]:
    """Return the seeds that both arms were run with."""
    return [seed for seed in one.seeds if seed in other.seeds]


def format_interval(
    found: Interval, *, signed: bool = False, times: float = 1.0, places: int = 3
) -> str:
    """Format a number and its interval for a table.

    >>> format_interval(Interval(0.125, 0.1, 0.15), times=100, places=1, signed=True)
    '+12.5 [+10.0, +15.0]'
    """
    form = f"{'+' if signed else ''}.{places}f"
    value, low, high = (f"{times * n:{form}}" for n in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"


def make_study_folder(path: str | Path) -> Path:
    """Create the folder of a study unless it exists."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from None
    return folder


def downsample_curve(values: Sequence[float]) -> list[float]:
    """Return the means of consecutive segments of a curve, at most `_CURVE_POINTS` of them."""
    size = -(-len(values) // _CURVE_POINTS)
    segments = (values[i : i + size] for i in range(0, len(values), size))
    return [round(sum(each) / len(each), 4) for each in segments]


def write_json_gz(path: Path, content: Any) -> None:
    """Write a JSON value, compressed, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content)
    with atomic_write(str(path)) as place:
        # Without a time stamp, so that equal content gives equal files.
        Path(place).write_bytes(gzip.compress(text.encode(), mtime=0))


def read_json_gz(path: Path) -> Any:
    """Read a file written by `write_json_gz`."""
    return json.loads(gzip.decompress(path.read_bytes()))


def slug(name: str) -> str:
    """Return a name that is safe as a file name.

    >>> slug("org/model layer 4, recursive(legacy=True)")
    'org-model-layer-4-recursive-legacy-True'
    """
    return _UNSAFE_CHARACTERS.sub("-", name).strip("-")


def _json_round_trip(recipe: dict[str, Any]) -> Any:
    """Return a recipe as it is read back from a file."""
    return json.loads(json.dumps(recipe))
