"""The claims of Jin & Gildea (2022) about rewards, judged by what the arms score here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenmatch.stats.bootstrap import Interval
from evenmatch.stats.paired import minimum_detectable_difference
from evenmatch.studies.experiment import (
    NOT_DECIDED,
    NOT_SEEN,
    REVERSED,
    SEEN,
    ArmScores,
    Claim,
)
from evenmatch.studies.graph_to_text import ALL_ARMS, XENT

BLEU, METEOR, CHRF, REPETITION = "BLEU", "METEOR", "chrF", "repeated"
_WANTED = 0.7  # points of BLEU that the paper's BL-R gains
_MOST_SEEDS = 50

# Table 1 of Jin & Gildea (2022), on LDC2017T10.
PAPER_SCORES: Mapping[str, Mapping[str, float]] = {
    XENT: {BLEU: 36.37, METEOR: 39.94, CHRF: 65.68},
    "BL-R": {BLEU: 37.06, METEOR: 40.30, CHRF: 66.19},
    "F_BERT": {BLEU: 36.06, METEOR: 39.85, CHRF: 65.23},
    "F_CONT": {BLEU: 36.91, METEOR: 40.34, CHRF: 66.07},
    "F_DISC": {BLEU: 37.65, METEOR: 40.61, CHRF: 66.55},
}


@dataclass(frozen=True, slots=True)
class GraphClaim:
    """A statement about two arms.

    `one` scores above `other` by about as much as in the paper's table, scores alike, or repeats
    more. The paper gives no numbers for arms that are not in its table, nor for repetition.
    """

    statement: str
    one: str
    other: str
    kind: Literal["above", "alike", "repeats"] = "above"

    def judge(self, one: ArmScores, other: ArmScores) -> Claim:
        """Return the differences found, with a verdict for each metric."""
        if self.kind == "repeats":
            return Claim(
                self.statement, {REPETITION: judge_claim(one, other, REPETITION, math.inf)}
            )
        if self.kind == "alike":  # by less than BL-R gained in the paper
            margins = _paper_gains("BL-R", XENT)
            return Claim(
                self.statement, {m: judge_likeness(one, other, m, d) for m, d in margins.items()}
            )
        gains = _paper_gains(self.one, self.other)
        return Claim(self.statement, {m: judge_claim(one, other, m, d) for m, d in gains.items()})


GRAPH_CLAIMS = (
    GraphClaim("F_DISC beats cross-entropy alone", "F_DISC", XENT),
    GraphClaim("BLEU as the reward beats cross-entropy alone", "BL-R", XENT),
    GraphClaim("F_DISC is a better reward than BLEU", "F_DISC", "BL-R"),
    GraphClaim("F_DISC is a better reward than F_CONT", "F_DISC", "F_CONT"),
    GraphClaim("F_CONT is a better reward than F_BERT", "F_CONT", "F_BERT"),
    GraphClaim("BLEU is a better reward than F_BERT", "BL-R", "F_BERT"),
    GraphClaim("F_CONT is as good a reward as BLEU", "F_CONT", "BL-R", "alike"),
    GraphClaim("texts repeat more after F_BERT than after F_DISC", "F_BERT", "F_DISC", "repeats"),
    GraphClaim(
        "rewarded alone, F_BERT makes texts repeat more than F_DISC",
        "only F_BERT", "only F_DISC", "repeats",
    ),
    GraphClaim(
        "F_DISC on the model's own embeddings is better than on those of another model",
        "F_DISC", "contextual f_disc",
    ),
)  # fmt: skip


def _paper_gains(one: str, other: str) -> dict[str, float]:
    if one in PAPER_SCORES and other in PAPER_SCORES:
        both = PAPER_SCORES[one], PAPER_SCORES[other]
        return {m: (both[0][m] - both[1][m]) / 100 for m in both[0]}
    return dict.fromkeys((BLEU, METEOR, CHRF), math.inf)


def check_graph_claims(found: Sequence[ArmScores]) -> Iterator[Claim]:
    """Yield each claim whose two arms have results with a seed in common."""
    arms = {each.arm: each for each in found}
    for claim in GRAPH_CLAIMS:
        one, other = arms.get(claim.one), arms.get(claim.other)
        if one and other and one.shared_seeds(other):
            yield claim.judge(one, other)


def judge_claim(
    one: ArmScores, less: ArmScores, metric: str, claimed: float
) -> tuple[Interval, str]:
    """Return the difference `one` - `less`, and what it says about a claimed difference above 0.

    The claim is seen if the interval over graphs and seeds, and the difference of every seed, are
    above 0, and reversed if they are below. Otherwise it is not seen if the interval excludes a
    difference as large as the one claimed, and not decided if it does not. With fewer than two
    seeds nothing is decided.
    """
    difference, by_seed = one.minus(less, metric), one.seed_differences(less, metric)
    if len(by_seed) < 2:
        return difference, NOT_DECIDED
    if difference.low > 0 and min(by_seed) > 0:
        return difference, SEEN
    if difference.high < 0 and max(by_seed) < 0:
        return difference, REVERSED
    return difference, NOT_SEEN if difference.high < claimed else NOT_DECIDED


def judge_likeness(
    one: ArmScores, other: ArmScores, metric: str, margin: float
) -> tuple[Interval, str]:
    """Return the difference `one` - `other`, and whether it is smaller than a margin.

    That is seen if the interval lies between -margin and margin, not seen if it lies outside, and
    not decided otherwise, or with fewer than two seeds.
    """
    difference = one.minus(other, metric)
    if len(one.shared_seeds(other)) < 2:
        return difference, NOT_DECIDED
    if -margin < difference.low and difference.high < margin:
        return difference, SEEN
    outside = difference.low > margin or difference.high < -margin
    return difference, NOT_SEEN if outside else NOT_DECIDED


def describe_power(found: Sequence[ArmScores]) -> Iterator[str]:
    """Yield a line with the smallest differences from cross-entropy that can be detected.

    With several seeds: by a t-test over seeds, with the standard deviation of the seed-by-seed
    differences, pooled over arms. With one seed: over test graphs alone.
    """
    plain, others = split_arms(found)
    if not plain or not others:
        return
    several = [each for each in others if len(each.shared_seeds(plain)) > 1]
    if not several:
        least = 100 * float(np.mean([each.detectable_difference(plain, BLEU) for each in others]))
        yield (
            f"with one seed, only the choice of test graphs is tested: differences in {BLEU} of at "
            f"least {least:.2f} would be detected with power 0.8; to detect 0.7, "
            f"{(least / 0.7) ** 2:.1f} times as many graphs would be needed, and several seeds "
            "to speak of the reward rather than of the run"
        )
        return
    count = min(len(each.shared_seeds(plain)) for each in several)
    sizes, needed = {}, ""
    for metric in (m for m in (BLEU, METEOR, CHRF, REPETITION) if m in plain.resampled):
        gaps = [each.seed_differences(plain, metric) for each in several]
        spread = math.sqrt(float(np.mean([np.var(gap, ddof=1) for gap in gaps])))
        sizes[metric] = 100 * minimum_detectable_difference(spread, count)
        if metric == BLEU:
            needed = _count_needed_seeds(spread)
    yield (
        f"with {count} seeds, a t-test detects differences from {XENT} with power 0.8 if they are "
        f"at least {', '.join(f'{size:.2f} ({name})' for name, size in sizes.items())}; smaller "
        f"ones may exist and go undetected; {needed} would be needed to detect {_WANTED} {BLEU}"
    )


def _count_needed_seeds(spread: float) -> str:
    """Return with how many seeds a t-test detects `_WANTED` points of BLEU, as text."""
    for count in range(2, _MOST_SEEDS + 1):
        if 100 * minimum_detectable_difference(spread, count) <= _WANTED:
            return f"{count} seeds"
    return f"more than {_MOST_SEEDS} seeds"


def split_arms(found: Sequence[ArmScores]) -> tuple[ArmScores | None, list[ArmScores]]:
    """Return the arm of cross-entropy alone, if there, and the arms with rewards."""
    plain = next((each for each in found if each.arm == XENT), None)
    seeds = plain.seeds if plain else ()
    others = [each for each in found if each.arm in ALL_ARMS and each.arm != XENT]
    return plain, [each for each in others if set(each.seeds) & set(seeds)]
