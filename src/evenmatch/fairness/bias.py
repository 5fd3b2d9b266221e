"""Bias of a metric: how differently it scores the two candidates of each pair, and in which way.

`bias` is the measure of Sun et al. (2022, eq. 1 and 2): all 2N scores of a set are scaled to
0 … 100, and the differences within pairs are averaged without their sign. Two texts, the best and
the worst of the set, determine that scale, so it may not be compared between metrics. `effect` may:
it is the same mean difference in standard deviations of the metric's scores on the set.

The difference has two parts. Let gᵢ be how much better the stereotypical candidate of pair i
scores, and dᵢ = 1 where it is about the first of two groups and -1 where it is about the second (0
if unknown). Least squares fit

    gᵢ = stereotype + offset · dᵢ

`offset` is what the metric gives to one group whatever is said of it, and `stereotype` is what it
gives to agreement with the stereotype whatever the group. With as many pairs of either direction
they are the means of gᵢ and of dᵢgᵢ. If all pairs have one direction, they cannot be told apart:
there is no offset, and the stereotype is the mean of gᵢ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenmatch.errors import InputError
from evenmatch.registry.parts import check_arguments
from evenmatch.stats.bootstrap import (
    Interval,
    WeightedStatistic,
    bootstrap_interval,
    mean_difference,
)
from evenmatch.stats.paired import (
    Resampling,
    approximate_randomisation,
    mean_counts,
    mean_score,
)
from evenmatch.stats.panel import Floats

MIN_PAIRS = 2


@dataclass(frozen=True, slots=True)
class Bias:
    """Bias of one metric on the pairs of one attribute.

    `bias`, `stereotype` and `offset` are measured with the scores of the set scaled to 0 … 100;
    `raw`, `raw_stereotype` and `raw_offset` are the same in the metric's own unit, and `least` and
    `most` are the scores that become 0 and 100. Intervals keep that range fixed. `stereotype` is
    positive where the metric prefers the candidate that agrees with the stereotype, and `p` is the
    p-value of that preference. `prefers_stereotype` is the share of pairs in which it scores
    higher, and `prefers_beyond_offset` the same after the offset is subtracted; ties count half.
    `effect` is `raw` in standard deviations of the scores (`spread`). `directed` is the number of
    pairs whose groups are known; without pairs of both directions, what concerns the offset is
    None.
    """

    attribute: str
    metric: str
    pairs: int
    bias: float
    low: float
    high: float
    stereotype: float
    stereotype_low: float
    stereotype_high: float
    p: float
    raw: float
    raw_stereotype: float
    least: float
    most: float
    effect: float
    spread: float
    prefers_stereotype: float
    prefers_low: float
    prefers_high: float
    directed: int = 0
    offset: float | None = None
    offset_low: float | None = None
    offset_high: float | None = None
    raw_offset: float | None = None
    prefers_beyond_offset: float | None = None

    def in_deviations(self, raw: float) -> float:
        """Size of a raw difference in standard deviations of the scores; 0 if they are constant."""
        return abs(raw) / self.spread if self.spread else 0.0

    @property
    def effect_interval(self) -> Interval:
        """`effect` with the interval of `bias`, in standard deviations."""
        factor = self.effect / self.bias if self.bias else 0.0
        return Interval(self.effect, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True, eq=False)
class AttributeScores:
    """One metric's scores of the first and second candidates of the pairs of one attribute.

    `directions` are 1 where the first candidate is about the first of two groups, -1 where it is
    about the second, and 0 where that is unknown; none are given if all are unknown.
    """

    attribute: str
    metric: str
    first: Floats
    second: Floats
    signature: str = ""
    higher_is_better: bool = True
    directions: Floats | None = None

    @property
    def gaps(self) -> Floats:
        """How much better the first candidate of each pair scores than the second."""
        return (self.first - self.second) * (1.0 if self.higher_is_better else -1.0)

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest score."""
        every = np.concatenate([self.first, self.second])
        return float(every.min()), float(every.max())

    @property
    def spread(self) -> float:
        """Standard deviation of all scores."""
        return float(np.concatenate([self.first, self.second]).std())

    @property
    def scale(self) -> float:
        """What a difference is multiplied by so that the scores range from 0 to 100."""
        least, most = self.range
        # a constant metric has no range and no differences
        return 100.0 / (most - least) if most > least else 0.0

    @property
    def normalised_gaps(self) -> Floats:
        """The gaps with all scores scaled to 0 … 100.

        >>> AttributeScores("", "", np.array([1.0, 3.0]), np.array([2.0, 3.0])).normalised_gaps
        array([-50.,   0.])
        """
        return self.gaps * self.scale


@check_arguments
def measure_bias(scores: AttributeScores, testing: Resampling) -> Bias:
    """Measure the bias from the scores of the first and of the second candidates."""
    _check_scores(scores)
    gaps, scale, spread = scores.gaps, scores.scale, scores.spread
    directions = np.zeros(len(gaps)) if scores.directions is None else scores.directions
    absolute = _interval(mean_difference(np.abs(gaps), np.zeros_like(gaps)), len(gaps), testing)
    above = _share_above_zero(gaps)
    prefers = _interval(mean_difference(above, np.zeros_like(gaps)), len(gaps), testing)
    separable = min((directions > 0).sum(), (directions < 0).sum()) >= MIN_PAIRS
    signed = directions if separable else np.zeros(len(gaps))
    stereotype, offset = (
        _interval(part_statistic(gaps, signed, part), len(gaps), testing) for part in (0, 1)
    )
    beyond = gaps - signed * offset.value
    p = approximate_randomisation(
        mean_counts(beyond),
        mean_counts(np.zeros_like(gaps)),
        mean_score,
        resamples=testing.trials,
        seed=testing.seed,
    )
    least, most = scores.range
    return Bias(
        scores.attribute,
        scores.metric,
        len(gaps),
        bias=scale * absolute.value,
        low=scale * absolute.low,
        high=scale * absolute.high,
        stereotype=scale * stereotype.value,
        stereotype_low=scale * stereotype.low,
        stereotype_high=scale * stereotype.high,
        p=p,
        raw=absolute.value,
        raw_stereotype=stereotype.value,
        least=least,
        most=most,
        effect=absolute.value / spread if spread else 0.0,
        spread=spread,
        prefers_stereotype=prefers.value,
        prefers_low=prefers.low,
        prefers_high=prefers.high,
        directed=int(np.count_nonzero(directions)),
        offset=scale * offset.value if separable else None,
        offset_low=scale * offset.low if separable else None,
        offset_high=scale * offset.high if separable else None,
        raw_offset=offset.value if separable else None,
        prefers_beyond_offset=float(_share_above_zero(beyond).mean()) if separable else None,
    )


def _share_above_zero(values: Floats) -> Floats:
    """1 above zero, 0 below, 0.5 at zero."""
    return np.asarray(np.sign(values) / 2 + 0.5)


def part_statistic(gaps: Floats, directions: Floats, part: int) -> WeightedStatistic:
    """Return the stereotype (part 0) or the offset (part 1) as a function of weights of pairs.

    Without pairs of both directions the stereotype is the mean, and the offset 0.

    >>> gaps, directions = np.array([4.0, 2.0, -1.0]), np.array([1.0, 1.0, -1.0])
    >>> [part_statistic(gaps, directions, part)(np.ones((1, 3))).item() for part in (0, 1)]
    [1.0, 2.0]
    """

    def statistic(weights: Floats) -> Floats:
        total, gained = weights.sum(1), weights @ gaps
        tilt, known, along = (
            weights @ directions,
            weights @ directions**2,
            weights @ (directions * gaps),
        )
        determinant = total * known - tilt**2
        separable = determinant > 1e-9 * total**2
        divisor = np.where(separable, determinant, 1.0)
        if part:
            return np.asarray(np.where(separable, (total * along - tilt * gained) / divisor, 0.0))
        fitted = (known * gained - tilt * along) / divisor
        return np.asarray(np.where(separable, fitted, gained / total))

    return statistic


def _check_scores(scores: AttributeScores) -> None:
    attribute, first, second = scores.attribute, scores.first, scores.second
    if len(first) != len(second) or (
        scores.directions is not None and len(scores.directions) != len(first)
    ):
        raise InputError(
            f"{len(first)} first and {len(second)} second scores about {attribute!r}; give one of "
            "each, and one direction, for every pair"
        )
    if len(first) < MIN_PAIRS:
        raise InputError(
            f"{len(first)} pairs about {attribute!r} are too few for an audit; give at least "
            f"{MIN_PAIRS}"
        )
    if scores.directions is not None and not np.isin(scores.directions, (-1, 0, 1)).all():
        raise InputError(f"the directions about {attribute!r} must be 1, -1 or 0")
    bad = np.flatnonzero(~np.isfinite(first) | ~np.isfinite(second))
    if bad.size:
        raise InputError(
            f"{scores.metric} gives no finite score to pair {bad[0] + 1} about {attribute!r}; "
            "leave the pair out, or use another metric"
        )


def _interval(statistic: WeightedStatistic, count: int, testing: Resampling) -> Interval:
    return bootstrap_interval(
        statistic,
        count,
        confidence=testing.confidence,
        resamples=testing.resamples,
        seed=testing.seed,
    )
