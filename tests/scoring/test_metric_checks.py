"""Every metric passes the published check; each broken one here breaks one promise of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import evenmatch as em
from evenmatch.errors import PromiseError
from evenmatch.registry import CallContext
from evenmatch.scoring.engine import EngineMetric, ReadyMetric
from evenmatch.scoring.metric_contract import check_metric
from evenmatch.types import Pair, Score, Scores
from tests.support.parts import Row, rows

SOUND = "align(vectors=hashed)"


@pytest.mark.parametrize("row", rows("metric"))
def test_every_metric_passes_the_published_check(row: Row) -> None:
    check_metric(em.build(row.spec), excused=row.excused)


def scores(pairs: Sequence[Pair], name: str) -> Scores:
    found = em.build(SOUND)(pairs)
    return Scores(found.segments, f"{name} · 1.0")


@dataclass(frozen=True)
class Whole:
    """A sound metric that the broken ones are made from."""

    @property
    def signature(self) -> str:
        return "whole · 1.0"

    @property
    def higher_is_better(self) -> bool:
        return True

    @property
    def bounds(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        return scores(pairs, "whole")


@dataclass(frozen=True)
class Silent:
    """Says nothing about itself."""

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        return scores(pairs, "silent")


def broken(name: str, call: Any, **declared: Any) -> type:
    """A sound metric but for what is given."""
    members: dict[str, Any] = {
        "__doc__": f"A metric that is {name}.",
        "__module__": __name__,
        "__qualname__": name,
        "__call__": lambda self, pairs: call(pairs),
    }
    for key in ("signature", "higher_is_better", "bounds"):
        value = declared.get(key, f"{name} · 1.0" if key == "signature" else getattr(Whole(), key))
        members[key] = property(_constant(value))
    return dataclass(frozen=True)(type(name, (), members))


def _constant(value: Any) -> Any:
    return lambda _: value


def replaced(found: Scores, change: Any) -> Scores:
    return Scores(tuple(change(s) for s in found.segments), found.signature)


Inverted = broken("Inverted", lambda p: scores(p, "inverted"), bounds=(1.0, 0.0))
Dropping = broken("Dropping", lambda p: scores([q for q in p if q.candidate], "dropping"))
Percent = broken(
    "Percent",
    lambda p: replaced(scores(p, "percent"), lambda s: Score(s.value * 100, flags=s.flags)),
)
Undefined = broken(
    "Undefined",
    lambda p: replaced(scores(p, "undefined"), lambda s: Score(float("nan"), flags=s.flags)),
)
Unflagged = broken(
    "Unflagged", lambda p: replaced(scores(p, "unflagged"), lambda s: Score(s.value))
)
Anonymous = broken("Anonymous", lambda p: scores(p, "no such metric"))
Impostor = broken("Impostor", lambda p: scores(p, "align(vectors=hashed, alignment=lsa)"))
Ranking = broken(
    "Ranking",
    lambda p: replaced(
        scores(p, "ranking"), lambda s: Score(s.value / max(1, len(p)), flags=s.flags)
    ),
)
LastOnly = broken(
    "LastOnly",
    lambda p: scores([Pair(q.candidate, q.references[-1:]) for q in p], "lastonly"),
)
Numbers = broken("Numbers", lambda p: Scores(tuple(1.0 for _ in p), "numbers"))  # type: ignore[misc]  # the mistake
Listing = broken("Listing", lambda p: [1.0 for _ in p])
Unsigned = broken("Unsigned", lambda p: Scores(scores(p, "").segments, None))  # type: ignore[arg-type]  # the mistake


@dataclass(frozen=True)
class Opened(EngineMetric):
    """Drops a row of each chunk."""

    bounds = (0.0, 1.0)

    def open(self, context: CallContext) -> ReadyMetric:
        return ReadyMetric(lambda chunk: ([Score(1.0) for _ in chunk.pairs[1:]], None))


BROKEN = (
    Whole,
    Numbers,
    Listing,
    Unsigned,
    Opened,
    Silent,
    Inverted,
    Dropping,
    Percent,
    Undefined,
    Unflagged,
    Anonymous,
    Impostor,
    Ranking,
    LastOnly,
)


@pytest.fixture(autouse=True)
def registered(registry: None) -> None:
    for make in BROKEN:
        em.register("metric", make.__name__.lower())(make)


def test_a_sound_metric_without_alignment_passes() -> None:
    check_metric(Whole())


@pytest.mark.parametrize(
    ("make", "promise", "complaint"),
    [
        (Silent, "declared", "it lacks signature, higher_is_better or bounds"),
        (Inverted, "declared", "its bounds are 1.0 and 0.0"),
        (Dropping, "one each", "7 pairs did not give Scores with as many segments"),
        (Percent, "numbers", "outside its bounds 0.0 to 1.0"),
        (Undefined, "numbers", "expected finite floats"),
        (Unflagged, "flags", "row 1 of its scores lacks the flag empty_candidate"),
        (Anonymous, "rebuilds", "'no such metric · 1.0' does not begin with a spec"),
        (Impostor, "rebuilds", "rebuilds a metric with the signature"),
        (Ranking, "alone", "with others and .* alone"),
        (LastOnly, "best reference", "one by one score"),
    ],
)
def test_a_broken_metric_is_caught_by_name(make: Any, promise: str, complaint: str) -> None:
    with pytest.raises(PromiseError, match=rf"breaks the promise '{promise}'.*{complaint}"):
        check_metric(make())


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("dropping", "the metric dropping returned 2 scores for 3 pairs; expected one per pair"),
        ("opened", "the metric opened returned 2 scores for 3 pairs; expected one per pair"),
        ("blend(parts=[dropping], weights=[1.0])", "dropping returned 2 scores for 3 pairs"),
        ("numbers", "the metric numbers returned float as a score; expected em.Score"),
        ("listing", "the metric listing returned list; expected em.Scores with a signature"),
        ("unsigned", "the metric unsigned returned Scores; expected em.Scores with a signature"),
        ("silent", "the metric silent lacks signature, higher_is_better, bounds or __call__"),
    ],
)
def test_no_score_is_computed_with_a_metric_that_breaks_its_contract(
    metric: str, message: str
) -> None:
    texts = ["", "abc", "abcde"]
    with pytest.raises(em.EvenmatchError, match=message):
        em.score(texts, texts, metric)


def test_a_metric_that_defines_several_references_may_be_excused() -> None:
    check_metric(LastOnly(), excused=["best reference"])


def test_a_part_that_is_no_metric_is_refused() -> None:
    with pytest.raises(PromiseError, match=r"'registered'.*registered as alignment"):
        check_metric(em.Lsa())  # type: ignore[arg-type]  # the wrong kind is the point
