"""check_metric: everything a metric promises, for the authors of metrics to run in one line."""

from __future__ import annotations

import math
import pickle
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from evenmatch.errors import EvenmatchError
from evenmatch.registry import build
from evenmatch.registry.checks import Promise, hold_to
from evenmatch.types import Metric, Pair, Score, Scores

_NEAR = 1e-6
PAIRS = (
    Pair("the cat sat on the mat", ("the cat sat on a mat",)),
    Pair("", ("a reference",)),
    Pair("a candidate", ("",)),
    Pair("", ("",)),
    Pair("a dog barked at the postman", ("a hound was barking at the mailman",)),
    Pair("the the the cat", ("the cat",)),
    Pair("rain is expected tomorrow in the north", ("it will rain tomorrow", "rain in the north")),
)
_FLAGS = ((1, {"empty_candidate"}), (2, {"empty_reference"}), (3, {"empty_candidate"}))


def check_metric(metric: Metric, *, excused: Collection[str] = ()) -> None:
    """Raise PromiseError, naming the promise, unless the metric keeps all of them.

    `excused` names promises that this metric is known not to make, such as 'best reference' for
    one that defines what several references mean.

    >>> from evenmatch.registry import build
    >>> check_metric(build("align(vectors=hashed)"))
    """
    hold_to(metric, "metric", _PROMISES, excused)


def _declared(metric: Any) -> Iterator[str]:
    if not isinstance(metric, Metric):
        yield "it lacks signature, higher_is_better or bounds"
        return
    signature, direction = (getattr(metric, n) for n in ("signature", "higher_is_better"))
    if not isinstance(signature, str) or not isinstance(direction, bool):
        yield "signature must be a string, and higher_is_better True or False"
    low, high = metric.bounds
    if not low < high:
        yield f"its bounds are {low} and {high}"


def _one_each(metric: Metric) -> Iterator[str]:
    for pairs in ((), PAIRS[:1], PAIRS):
        found = metric(pairs)
        if not isinstance(found, Scores) or len(found.segments) != len(pairs):
            yield f"{len(pairs)} pairs did not give Scores with as many segments"


def _numbers(metric: Metric) -> Iterator[str]:
    low, high = metric.bounds
    for pair, score in zip(PAIRS, metric(PAIRS).segments, strict=True):
        numbers = [n for n in (score.value, score.precision, score.recall) if n is not None]
        if not all(isinstance(n, float) and math.isfinite(n) for n in numbers):
            yield f"{pair.candidate!r} scores {score}, where floats are wanted"
        elif not low - _NEAR <= score.value <= high + _NEAR:
            yield f"{pair.candidate!r} scores {score.value}, out of its bounds {low} to {high}"


def _flags(metric: Metric) -> Iterator[str]:
    segments = metric(PAIRS).segments
    for row, wanted in _FLAGS:
        if not wanted <= segments[row].flags:
            yield f"row {row} of its scores lacks the flag {', '.join(wanted)}"


def _alone(metric: Metric) -> Iterator[str]:
    together = metric(PAIRS)
    # What was counted from these pairs is frozen in their signature, and stays so.
    fixed = _rebuilt(together) or metric
    for name, found in (
        ("alone", [fixed([pair]).segments[0] for pair in PAIRS]),
        ("in another order", fixed(PAIRS[::-1]).segments[::-1]),
        ("beside a long text", fixed([*PAIRS, Pair("word " * 60, ("word",))]).segments[:-1]),
        ("by an equal metric", pickle.loads(pickle.dumps(metric))(PAIRS).segments),
    ):
        yield from _moved(together.segments, found, name)


def _rebuilds(metric: Metric) -> Iterator[str]:
    scores = metric(PAIRS)
    rebuilt = _rebuilt(scores)
    if rebuilt is None:
        yield f"{scores.signature!r} does not begin with a spec"
        return
    again = rebuilt(PAIRS)
    if again.signature != scores.signature:
        yield f"{scores.signature!r} rebuilds a metric that signs {again.signature!r}"
    yield from _moved(scores.segments, again.segments, "by the rebuilt metric")


def _rebuilt(scores: Scores) -> Metric | None:
    try:
        metric: Metric = build(scores.signature.split(" · ")[0])
    except EvenmatchError:
        return None
    return metric


def _moved(before: Sequence[Score], after: Sequence[Score], name: str) -> Iterator[str]:
    for pair, a, b in zip(PAIRS, before, after, strict=True):
        if abs(a.value - b.value) > _NEAR or a.flags != b.flags:
            yield f"{pair.candidate!r} scores {a.value} with others and {b.value} {name}"


def _best_reference(metric: Metric) -> Iterator[str]:
    pair = PAIRS[-1]
    best = max if metric.higher_is_better else min
    fixed = _rebuilt(metric([pair])) or metric
    singly = [fixed([Pair(pair.candidate, (r,))]).segments[0].value for r in pair.references]
    for references in (pair.references, pair.references[::-1]):
        found = fixed([Pair(pair.candidate, references)]).segments[0].value
        if abs(found - best(singly)) > _NEAR:
            yield f"references that score {singly} one by one score {found} together"


_PROMISES = (
    Promise("declared", "it says its signature, direction and bounds", _declared),
    Promise("one each", "one score per pair, in the order of the pairs", _one_each),
    Promise("numbers", "scores are finite and within the bounds", _numbers),
    Promise("flags", "an empty side is flagged and keeps its place", _flags),
    Promise("rebuilds", "the signature up to ' · ' builds what gives the same scores", _rebuilds),
    Promise("alone", "a score depends on its own pair only", _alone),
    Promise("best reference", "of several references the best counts", _best_reference),
)
