"""`check_metric`: check that a metric follows all rules of the scoring interface.

Authors of a metric call it in a test. Each rule is a named `Promise`; `_PROMISES` at the end of
the file lists them.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from evenmatch.errors import EvenmatchError
from evenmatch.protocols import Metric
from evenmatch.registry import build
from evenmatch.registry.contracts import Promise, check_promises
from evenmatch.types import Pair, Score, Scores

_TOLERANCE = 1e-6


CHECK_PAIRS = (
    Pair("the cat sat on the mat", ("the cat sat on a mat",)),
    Pair("", ("a reference",)),
    Pair("a candidate", ("",)),
    Pair("", ("",)),
    Pair("a dog barked at the postman", ("a hound was barking at the mailman",)),
    Pair("the the the cat", ("the cat",)),
    Pair("rain is expected tomorrow in the north", ("it will rain tomorrow", "rain in the north")),
)


_EXPECTED_FLAGS = ((1, {"empty_candidate"}), (2, {"empty_reference"}), (3, {"empty_candidate"}))


def check_metric(metric: Metric, *, excused: Collection[str] = ()) -> None:
    """Raise PromiseError for the first promise that the metric breaks.

    `excused` names promises to skip, such as 'best reference' for a metric that defines its own
    treatment of several references.

    >>> from evenmatch.registry import build
    >>> check_metric(build("align(vectors=hashed)"))
    """
    check_promises(metric, "metric", _PROMISES, excused)


def _check_declarations(metric: Any) -> Iterator[str]:
    if not isinstance(metric, Metric):
        yield "it lacks signature, higher_is_better or bounds"
        return
    signature, direction = (getattr(metric, n) for n in ("signature", "higher_is_better"))
    if not isinstance(signature, str) or not isinstance(direction, bool):
        yield "signature must be a string, and higher_is_better True or False"
    low, high = metric.bounds
    if not low < high:
        yield f"its bounds are {low} and {high}"


def _check_one_per_pair(metric: Metric) -> Iterator[str]:
    for pairs in ((), CHECK_PAIRS[:1], CHECK_PAIRS):
        found = metric(pairs)
        if not isinstance(found, Scores) or len(found.segments) != len(pairs):
            yield f"{len(pairs)} pairs did not give Scores with as many segments"


def _check_values(metric: Metric) -> Iterator[str]:
    low, high = metric.bounds
    for pair, score in zip(CHECK_PAIRS, metric(CHECK_PAIRS).segments, strict=True):
        numbers = [n for n in (score.value, score.precision, score.recall) if n is not None]
        if not all(isinstance(n, float) and math.isfinite(n) for n in numbers):
            yield f"{pair.candidate!r} scores {score}; expected finite floats"
        elif not low - _TOLERANCE <= score.value <= high + _TOLERANCE:
            yield f"{pair.candidate!r} scores {score.value}, outside its bounds {low} to {high}"


def _check_flags(metric: Metric) -> Iterator[str]:
    segments = metric(CHECK_PAIRS).segments
    for row, wanted in _EXPECTED_FLAGS:
        if not wanted <= segments[row].flags:
            yield f"row {row} of its scores lacks the flag {', '.join(wanted)}"


def _check_independence(metric: Metric) -> Iterator[str]:
    together = metric(CHECK_PAIRS)
    # The signature holds the tables counted from these pairs, so the rebuilt metric counts no more.
    fixed = _rebuild_metric(together) or metric
    for name, found in (
        ("alone", [fixed([pair]).segments[0] for pair in CHECK_PAIRS]),
        ("in another order", fixed(CHECK_PAIRS[::-1]).segments[::-1]),
        ("beside a long text", fixed([*CHECK_PAIRS, Pair("word " * 60, ("word",))]).segments[:-1]),
        ("by an equal metric", pickle.loads(pickle.dumps(metric))(CHECK_PAIRS).segments),
    ):
        yield from _score_differences(together.segments, found, name)


def _check_rebuilding(metric: Metric) -> Iterator[str]:
    scores = metric(CHECK_PAIRS)
    rebuilt = _rebuild_metric(scores)
    if rebuilt is None:
        yield f"{scores.signature!r} does not begin with a spec"
        return
    again = rebuilt(CHECK_PAIRS)
    if again.signature != scores.signature:
        yield f"{scores.signature!r} rebuilds a metric with the signature {again.signature!r}"
    yield from _score_differences(scores.segments, again.segments, "by the rebuilt metric")


def _rebuild_metric(scores: Scores) -> Metric | None:
    try:
        metric: Metric = build(scores.signature.split(" · ")[0])
    except EvenmatchError:
        return None
    return metric


def _score_differences(before: Sequence[Score], after: Sequence[Score], name: str) -> Iterator[str]:
    for pair, a, b in zip(CHECK_PAIRS, before, after, strict=True):
        if abs(a.value - b.value) > _TOLERANCE or a.flags != b.flags:
            yield f"{pair.candidate!r} scores {a.value} with others and {b.value} {name}"


def _check_best_reference(metric: Metric) -> Iterator[str]:
    pair = CHECK_PAIRS[-1]
    best = max if metric.higher_is_better else min
    fixed = _rebuild_metric(metric([pair])) or metric
    singly = [fixed([Pair(pair.candidate, (r,))]).segments[0].value for r in pair.references]
    for references in (pair.references, pair.references[::-1]):
        found = fixed([Pair(pair.candidate, references)]).segments[0].value
        if abs(found - best(singly)) > _TOLERANCE:
            yield f"references that score {singly} one by one score {found} together"


_PROMISES = (
    Promise("declared", "it declares signature, direction and bounds", _check_declarations),
    Promise("one each", "one score per pair, in the order of the pairs", _check_one_per_pair),
    Promise("numbers", "scores are finite and within the bounds", _check_values),
    Promise("flags", "a pair with an empty side is flagged and not dropped", _check_flags),
    Promise(
        "rebuilds",
        "the signature up to ' · ' builds a metric with the same scores",
        _check_rebuilding,
    ),
    Promise("alone", "a score depends on its own pair only", _check_independence),
    Promise(
        "best reference", "with several references the best score counts", _check_best_reference
    ),
)
