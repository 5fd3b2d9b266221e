"""Any metric as a reward between 0 and 1, and what ordinary operators make of rewards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenmatch.errors import InputError
from evenmatch.scoring.settings import make_run
from evenmatch.scoring.together import as_metric
from evenmatch.types import Metric, Pair
from evenmatch.uses.train.rewards_judging import Rated, judge
from evenmatch.uses.train.rewards_shape import Length, Repetition
from evenmatch.uses.train.rewards_terms import Clipped, Constant, Joined, Judged, Term, leaves
from evenmatch.version import __version__


def reward(metric: str | Metric, **run: Any) -> Reward:
    """A metric as a reward: between 0 and 1, higher for better, and never an error for odd text.

    What a metric's bounds are decides how its score becomes a reward: scores between 0 and 1 stay
    as they are; other finite ranges are divided by their upper bound, what is below 0 being 0;
    log-probabilities become probabilities; unbounded scores go through x / (1 + x) or, of either
    sign, through the logistic function; where lower is better, the reward is 1 minus that. `run`
    settings (device, threads, batch_tokens, cache) are those of `score`.

    >>> overlap = reward("align(vectors=hashed, alignment=lsa)")
    >>> (overlap - 0.5).clip(0, 1)([Pair("a b", ("a b",)), Pair("", ("a b",))])
    [0.5, 0.0]
    """
    return Reward(Judged(as_metric(metric), make_run(**run)))


def length_term(low: float = 0.8, high: float = 1.25) -> Reward:
    """A reward for length: 1 from `low` to `high` times the reference's words, less outside.

    Half the words that `low` asks for, or twice those that `high` allows, are worth 0.5. Of several
    references the one that suits best counts.

    >>> length_term()([Pair("a b", ("a b",)), Pair("a b a b a b a b a b", ("a b c d",))])
    [1.0, 0.5]
    """
    return Reward(Length(float(low), float(high)))


def repetition_term(size: int = 2) -> Reward:
    """A reward for not repeating: the share of runs of `size` words that are new in the text.

    >>> repetition_term()([Pair("the cat the cat the", ("a cat",))])
    [0.5]
    """
    return Reward(Repetition(size))


@dataclass(frozen=True)
class Reward:
    """What a text is worth to a trainer; `+`, `-`, `*` and `clip` make new rewards of old ones."""

    term: Term

    def __call__(self, pairs: Sequence[Pair]) -> list[float]:
        """One finite number per pair, in order."""
        return list(self.rated(pairs).values)

    def rated(self, pairs: Sequence[Pair]) -> Rated:
        """The rewards, and the rows that were too odd to judge: no words, or none known.

        In such a row every metric counts as 0; nothing a policy can write ends the training.
        """
        judged = judge(leaves(self.term), pairs)
        odd = sorted({row for found in judged.values() for row in found.odd})
        worth = {leaf: found.values for leaf, found in judged.items()}
        return Rated(tuple(self.term.worth(worth, row) for row in range(len(pairs))), tuple(odd))

    @property
    def signature(self) -> str:
        """The expression of its metrics, then what they rest on."""
        metrics = [leaf.metric for leaf in leaves(self.term) if isinstance(leaf, Judged)]
        facts = [fact for metric in metrics for fact in metric.signature.split(" · ")[1:]]
        every = dict.fromkeys([f"evenmatch {__version__}", *facts])
        return " · ".join([self.term.written(), *every])

    def clip(self, low: float, high: float) -> Reward:
        """The reward, but never below `low` or above `high`."""
        return Reward(Clipped(self.term, float(low), float(high)))

    def __add__(self, other: Reward | float) -> Reward:
        return _joined("+", self, other)

    def __radd__(self, other: float) -> Reward:
        return _joined("+", other, self)

    def __sub__(self, other: Reward | float) -> Reward:
        return _joined("-", self, other)

    def __rsub__(self, other: float) -> Reward:
        return _joined("-", other, self)

    def __mul__(self, other: Reward | float) -> Reward:
        return _joined("*", self, other)

    def __rmul__(self, other: float) -> Reward:
        return _joined("*", other, self)


def _joined(operator: str, left: Reward | float, right: Reward | float) -> Reward:
    return Reward(Joined(operator, _term(left), _term(right)))


def _term(side: Any) -> Term:
    if isinstance(side, Reward):
        return side.term
    if isinstance(side, (int, float)) and not isinstance(side, bool) and math.isfinite(side):
        return Constant(float(side))
    raise InputError(f"a reward joins with rewards and finite numbers only, got {side!r}")
