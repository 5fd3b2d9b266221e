"""Metrics and shapes asked for rewards: between 0 and 1, odd texts counted and not raised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenmatch.errors import EvenmatchError
from evenmatch.scoring.pairs import check_pairs
from evenmatch.scoring.together import score_together
from evenmatch.types import Metric, Pair, Run, Score
from evenmatch.uses.train.rewards_shape import Length, Repetition
from evenmatch.uses.train.rewards_terms import Judged, Leaf

# Nothing can be said of such a text; that two empty texts are alike is no merit of a policy.
_ODD = frozenset({"empty_candidate", "empty_reference", "unknown_only"})
_PLAIN = Pair("a plain text", ("a plain text",))


@dataclass(frozen=True, slots=True)
class Rated:
    """Rewards in input order, and the rows whose text was too odd to judge."""

    values: tuple[float, ...]
    odd: tuple[int, ...] = ()


def judge(leaves: Sequence[Leaf], pairs: Sequence[Pair]) -> dict[Leaf, Rated]:
    """What each leaf gives each pair, between 0 and 1; equal texts are read once for all."""
    check_pairs(pairs)
    sound = [_sound(pair) for pair in pairs]
    metrics = [leaf for leaf in leaves if isinstance(leaf, Judged)]
    found: dict[Leaf, Rated] = {
        leaf: _shaped(leaf, sound) for leaf in leaves if not isinstance(leaf, Judged)
    }
    for run in dict.fromkeys(leaf.run for leaf in metrics):
        asked = [leaf for leaf in metrics if leaf.run == run]
        rows = _scored([leaf.metric for leaf in asked], sound, run)
        found |= {leaf: rated(leaf.metric, row) for leaf, row in zip(asked, rows, strict=True)}
    return found


def _shaped(leaf: Length | Repetition, pairs: Sequence[Pair]) -> Rated:
    values = [leaf.rate(pair) for pair in pairs]
    odd = tuple(row for row, value in enumerate(values) if value is None)
    return Rated(tuple(value or 0.0 for value in values), odd)


def rated(metric: Metric, scores: Sequence[Score | None]) -> Rated:
    """Scores of a metric as rewards; None is a text that the metric refused."""
    bounds, higher = metric.bounds, metric.higher_is_better
    odd = [s is None or bool(s.flags & _ODD) or not math.isfinite(s.value) for s in scores]
    values = [
        0.0 if s is None or strange else as_reward(s.value, bounds, higher)
        for s, strange in zip(scores, odd, strict=True)
    ]
    return Rated(tuple(values), tuple(row for row, strange in enumerate(odd) if strange))


def as_reward(value: float, bounds: tuple[float, float], higher_is_better: bool) -> float:
    """A score as a number between 0 and 1, higher for better.

    >>> as_reward(0.0, (-math.inf, 0.0), True), as_reward(1.0, (0.0, math.inf), False)
    (1.0, 0.5)
    """
    share = min(max(_share(value, *bounds), 0.0), 1.0)
    return share if higher_is_better else 1.0 - share


def _share(value: float, low: float, high: float) -> float:
    if math.isfinite(high):
        if math.isfinite(low):
            start = max(low, 0.0) if high > 0 else low  # of a cosine, only what is above 0 counts
            return (value - start) / (high - start)
        return math.exp(min(value - high, 0.0))  # a log-probability, or anything that ends above
    if math.isfinite(low):
        above = max(value - low, 0.0)
        return above / (1.0 + above)
    return 0.5 * (1.0 + math.tanh(value / 2.0))  # the logistic function, which cannot overflow


def _sound(pair: Pair) -> Pair:
    """The pair without halves of characters, which no tokenizer takes."""
    texts = [t.encode("utf-8", "replace").decode() for t in (pair.candidate, *pair.references)]
    return Pair(texts[0], tuple(texts[1:]), pair.source)


def _scored(
    metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run
) -> list[Sequence[Score | None]]:
    """The scores of each metric; where a text is refused, None in its row and the others scored."""
    try:
        return [scores.segments for scores in score_together(metrics, pairs, run)]
    except EvenmatchError:
        # A model that is not there fails on any text: that is for the user to know.
        score_together(metrics, [_PLAIN], run)
    return [[_one(metric, pair, run) for pair in pairs] for metric in metrics]


def _one(metric: Metric, pair: Pair, run: Run) -> Score | None:
    try:
        return score_together([metric], [pair], run)[0].segments[0]
    except EvenmatchError:
        return None
