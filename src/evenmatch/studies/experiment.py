"""The runner of all studies: stored results, runs over several seeds, and claims to check.

`ResultStore` keeps each result in a small file, so that a study resumes where it was stopped. An
arm is one condition of an experiment, run with several seeds; an `Experiment` trains the runs of a
`Study` one after the other. A `Claim` is a statement of a paper about two arms, with the difference
found here.
"""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from evenmatch.data.scores import replace_file
from evenmatch.errors import DataError, InputError
from evenmatch.protocols import Metric
from evenmatch.registry.parts import check_at_least
from evenmatch.scoring.metric import score_metrics
from evenmatch.stats.bootstrap import Interval, percentile_bounds
from evenmatch.stats.p_values import p_value
from evenmatch.stats.paired import (
    ResampledScore,
    mean_of_seeds,
    swapped_differences,
)
from evenmatch.types import Array, Pair, Run

# Verdicts on a claimed difference.
SEEN, NOT_SEEN, REVERSED, NOT_DECIDED = "seen", "not seen", "reversed", "not decided"
CONFIDENCE = 0.95
_DETECTABLE_ERRORS = 1.96 + 0.84  # standard errors: two-sided level 0.05, power 0.8
_CURVE_POINTS = 60  # points stored of a curve
_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9.]+")
_StudyT = TypeVar("_StudyT", bound="Study")


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
            # Compare with the recipe as it is read back from a file: tuples become lists.
            same = kept["recipe"] == json.loads(json.dumps(recipe))
            found: dict[str, Any] = kept["found"]
        except (ValueError, KeyError, TypeError):
            raise DataError(
                f"{path} is not a result of a study; remove it to compute it again"
            ) from None
        return found if same else None

    def save(self, name: str, recipe: dict[str, Any], found: dict[str, Any]) -> None:
        """Store a result atomically."""
        text = json.dumps({"recipe": recipe, "found": found}) + "\n"
        write_atomically(self._path(name), text.encode())

    def load_or_compute(
        self,
        recipes: Mapping[str, dict[str, Any]],
        compute: Callable[[list[str]], Iterable[dict[str, Any]]],
    ) -> dict[str, dict[str, Any]]:
        """Return the result of each name; those not stored are computed together and stored."""
        stored = {name: self.load(name, recipe) for name, recipe in recipes.items()}
        missing = [name for name, found in stored.items() if found is None]
        if missing:
            for name, found in zip(missing, compute(missing), strict=True):
                self.save(name, recipes[name], found)
                stored[name] = found
        return {name: found for name, found in stored.items() if found is not None}

    def load_or_score(
        self,
        metrics: Mapping[str, Metric],
        recipe: Mapping[str, Any],
        make_pairs: Callable[[], Sequence[Pair]],
        run: Run,
    ) -> Iterator[tuple[str, Array, float]]:
        """Yield the scores of the same pairs by each metric, with its name and its seconds.

        Scores that are not stored are computed in one pass. `recipe` identifies the pairs.
        """

        def compute(missing: list[str]) -> Iterator[dict[str, Any]]:
            pairs, started = make_pairs(), time.perf_counter()
            scores = score_metrics([metrics[name] for name in missing], pairs, run)
            seconds = round((time.perf_counter() - started) / len(missing), 3)
            for each in scores:
                values = [round(s.value, 6) for s in each.segments]
                yield {"values": values, "seconds": seconds}

        recipes = {name: {"metric": m.signature, **recipe} for name, m in metrics.items()}
        for name, found in self.load_or_compute(recipes, compute).items():
            yield name, np.array(found["values"]), found.get("seconds", 0.0)

    def _path(self, name: str) -> Path:
        return self.folder / "cells" / f"{slug(name)}.json"


class ArmRun(Protocol):
    """One run of an experiment: an arm with a seed."""

    @property
    def seed(self) -> int: ...
    @property
    def arm(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Trained:
    """A model in its folder, after training or as far as training came before it was stopped."""

    folder: Path
    evaluations: Sequence[tuple[int, float]]  # step and validation result
    curves: Mapping[str, Sequence[float]]  # values of every step, by name
    steps: int
    ended: bool
    checkpoint: Path | None = None  # a large file, removed when the result is stored


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run: evaluations, curves, duration, and what its model generates."""

    run: Any
    evaluations: Sequence[tuple[int, float]]
    curves: Mapping[str, Sequence[float]]
    seconds: float
    outputs: Any


class Study(Protocol):
    """What an experiment trains: a design with `runs()`, and how to train and test one run.

    A run comes after the run it continues. `recipe` returns all settings and data that determine
    its result. `train` trains its model or continues to; `generate` returns the outputs of the
    model on the test data as JSON-compatible values, which are stored in `output_folder`.
    """

    @property
    def design(self) -> Any: ...
    @property
    def output_folder(self) -> str: ...
    def recipe(self, run: Any) -> dict[str, Any]: ...
    def train(self, run: Any, experiment: Experiment[Any]) -> Trained: ...
    def generate(self, model: Trained, run: Any) -> Any: ...


@dataclass(frozen=True)
class Experiment(Generic[_StudyT]):
    """The runs of a study in a folder: results in `cells`, weights in `models`, and outputs."""

    study: _StudyT
    folder: Path
    should_stop: Callable[[], bool] = lambda: False
    log: Callable[[str], None] = lambda _: None

    def __call__(self) -> list[RunResult]:
        """Run what has no result yet and return all results; fewer if `should_stop` ended it."""
        found: list[RunResult] = []
        for run in self.study.design.runs():
            result = self.load_result(run) or self._train_and_save(run)
            if result is None:
                break
            found.append(result)
        return found

    def results(self) -> list[RunResult]:
        """Return the results that are stored."""
        return [result for run in self.study.design.runs() if (result := self.load_result(run))]

    def load_result(self, run: ArmRun) -> RunResult | None:
        """Return the stored result of a run, or None."""
        found = ResultStore(self.folder).load(run_name(run), self.study.recipe(run))
        if found is None:
            return None
        return RunResult(
            run,
            [(int(step), float(value)) for step, value in found["looks"]],
            # Results of one curve have it at the top.
            found["curves"] if "curves" in found else {"told": found["told"]},
            found["seconds"],
            json.loads(gzip.decompress(self._outputs_path(run).read_bytes())),
        )

    def model_folder(self, run: ArmRun) -> Path:
        """Return the folder of a run's model."""
        return self.folder / "models" / slug(run_name(run))

    def save_outputs(self, run: ArmRun, outputs: Any) -> None:
        """Store what the model of a run generates."""
        text = json.dumps(outputs).encode()
        # Without a time stamp, so that equal outputs give equal files.
        write_atomically(self._outputs_path(run), gzip.compress(text, mtime=0))

    def describe_missing(self) -> Iterator[str]:
        """Yield how many runs have no results, if any, and then a line for each of their arms."""
        runs = self.study.design.runs()
        missing = [run for run in runs if self.load_result(run) is None]
        if missing:
            done = len(runs) - len(missing)
            yield f"{done} runs are done, {len(missing)} are not; run the study again to continue"
        for arm in dict.fromkeys(run.arm for run in missing):
            seeds = [str(run.seed) for run in missing if run.arm == arm]
            yield f"not done: {arm}, {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(seeds)}"

    def _train_and_save(self, run: ArmRun) -> RunResult | None:
        start, name = time.monotonic(), run_name(run)
        trained = self.study.train(run, self)
        if not trained.ended:
            self.log(f"{name}: paused after step {trained.steps}")
            return None
        self.save_outputs(run, self.study.generate(trained, run))
        seconds = round(time.monotonic() - start)
        found = {
            "looks": list(trained.evaluations),
            "curves": {key: downsample_curve(own) for key, own in trained.curves.items()},
            "steps": trained.steps,
            "seconds": seconds,
        }
        ResultStore(self.folder).save(name, self.study.recipe(run), found)
        if trained.checkpoint:
            trained.checkpoint.unlink()
        step, best = max(trained.evaluations, key=lambda each: each[1])
        self.log(f"{name}: {trained.steps} steps in {seconds} s, best {best:.4f} at step {step}")
        return self.load_result(run)

    def _outputs_path(self, run: ArmRun) -> Path:
        name = f"{slug(run_name(run))}.json.gz"
        return self.folder / self.study.output_folder / name


def run_name(run: ArmRun) -> str:
    """Return the name of a run in files and reports."""
    return f"{run.arm} seed {run.seed}"


def check_arms(arms: Sequence[str], seeds: Sequence[int], known: Iterable[str]) -> None:
    """Raise InputError unless there are arms, all of them known, and seeds from 0."""
    known = list(known)
    for arm in arms:
        if arm not in known:
            raise InputError(f"the experiment has no arm {arm!r}; known: {', '.join(known)}")
    if not (arms and seeds):
        raise InputError("the experiment needs at least one arm and one seed")
    check_at_least(0, seed=min(seeds))


def results_by_arm(results: Sequence[RunResult], arms: Iterable[str]) -> dict[str, list[RunResult]]:
    """Return the results of each arm that has any, seed by seed."""
    by_arm = {arm: [result for result in results if result.run.arm == arm] for arm in arms}
    return {arm: own for arm, own in by_arm.items() if own}


@dataclass(frozen=True, slots=True, eq=False)
class ArmScores:
    """An arm: its seeds, and by metric the score of each seed on the same resampled test sets.

    Intervals are over test items; with `resample_seeds`, each resample also draws seeds with
    replacement, the same for all arms with as many (a hierarchical bootstrap).
    """

    arm: str
    seeds: tuple[int, ...]
    resampled: Mapping[str, tuple[ResampledScore, ...]]
    resample_seeds: bool = False

    def mean(self, metric: str) -> Interval:
        """Return the mean over seeds, with a bootstrap interval."""
        value, draws = self._mean_of_seeds(self.resampled[metric])
        return Interval(value, *percentile_bounds(draws, CONFIDENCE))

    def minus(self, other: ArmScores, metric: str) -> Interval:
        """Return the mean difference over shared seeds, with a bootstrap interval."""
        value, draws = self._difference(other, metric)
        return Interval(value, *percentile_bounds(draws, CONFIDENCE))

    def detectable_difference(self, other: ArmScores, metric: str) -> float:
        """Return the smallest true difference that a z-test at the 5 % level finds with power 0.8.

        The standard error is that of the resamples. For a t-test over few seeds, see
        `stats.paired.minimum_detectable_difference`.
        """
        _, draws = self._difference(other, metric)
        return float(_DETECTABLE_ERRORS * np.std(draws))

    def seed_differences(self, other: ArmScores, metric: str) -> list[float]:
        """Return the difference for each shared seed."""
        return [a.value - b.value for a, b in self._shared_scores(other, metric)]

    def permutation_p_value(self, other: ArmScores, metric: str) -> float:
        """Return the p-value of a permutation test that swaps the arms' outputs item by item.

        A test item is swapped for all seeds at once, since they share its difficulty.
        """
        pairs = self._shared_scores(other, metric)
        draws = np.mean([swapped_differences(a, b) for a, b in pairs], axis=0)
        return p_value(draws, float(np.mean(self.seed_differences(other, metric))), "two-sided")

    def shared_seeds(self, other: ArmScores) -> list[int]:
        """Return the seeds that both arms were run with."""
        return [seed for seed in self.seeds if seed in other.seeds]

    def _difference(self, other: ArmScores, metric: str) -> tuple[float, Array]:
        pairs = self._shared_scores(other, metric)
        (a, a_draws), (b, b_draws) = map(self._mean_of_seeds, zip(*pairs, strict=True))
        return a - b, a_draws - b_draws

    def _mean_of_seeds(self, scores: Sequence[ResampledScore]) -> tuple[float, Array]:
        value, draws = mean_of_seeds(scores)
        if not self.resample_seeds:
            return value, draws
        every = np.stack([each.resamples for each in scores])
        chosen = np.random.default_rng(0).integers(len(scores), size=every.shape)
        return value, np.take_along_axis(every, chosen, axis=0).mean(0)

    def _shared_scores(
        self, other: ArmScores, metric: str
    ) -> list[tuple[ResampledScore, ResampledScore]]:
        own, others = (
            dict(zip(arm.seeds, arm.resampled[metric], strict=True)) for arm in (self, other)
        )
        return [(own[seed], others[seed]) for seed in self.shared_seeds(other)]


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement, and by metric or test set the difference found here with its verdict."""

    statement: str
    results: Mapping[str, tuple[Interval, str]]


def format_claim(claim: Claim) -> str:
    """Return a claim as a line of text; differences are times 100."""
    parts = [
        f"{where} {format_interval(difference, signed=True, times=100, places=2)}, {verdict}"
        for where, (difference, verdict) in claim.results.items()
    ]
    return f"{claim.statement}: {'; '.join(parts)}"


def format_interval(
    found: Interval | None, *, signed: bool = False, times: float = 1.0, places: int = 3
) -> str:
    """Format a number and its interval for a table; a dash for None.

    >>> format_interval(Interval(0.125, 0.1, 0.15), times=100, places=1, signed=True)
    '+12.5 [+10.0, +15.0]'
    """
    if found is None:
        return "-"
    form = f"{'+' if signed else ''}.{places}f"
    value, low, high = (f"{times * n + 0.0:{form}}" for n in (found.value, found.low, found.high))
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


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically; its folder is created if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)


def slug(name: str) -> str:
    """Return a name that is safe as a file name.

    >>> slug("org/model layer 4, recursive(legacy=True)")
    'org-model-layer-4-recursive-legacy-True'
    """
    return _UNSAFE_CHARACTERS.sub("-", name).strip("-")
