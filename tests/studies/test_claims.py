from __future__ import annotations

import numpy as np
import pytest

from evenmatch.stats.paired import ResampledScore
from evenmatch.studies.experiment import (
    NOT_REPLICATED,
    REPLICATED,
    REVERSED,
    ArmScores,
    Claim,
    evaluate_claim,
    format_claim,
)


def arm(*values: float) -> ArmScores:
    nothing = np.zeros(1)
    every = tuple(
        ResampledScore(v, v + np.array([-0.01, 0, 0.01]), nothing, nothing, abs) for v in values
    )
    return ArmScores("an arm", tuple(range(len(values))), {"F": every})


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((0.5, 0.6), REPLICATED),
        ((0.1, 0.2), REVERSED),
        ((0.3, 0.3), NOT_REPLICATED),
        ((0.9, 0.29), NOT_REPLICATED),
    ],
    ids=["above", "below", "equal", "one seed against it"],
)
def test_a_claim_needs_the_interval_and_every_seed(values: tuple[float, ...], verdict: str) -> None:
    difference, found = evaluate_claim(arm(*values), arm(0.3, 0.3), "F")
    assert found == verdict
    assert difference.value == pytest.approx(np.mean(values) - 0.3)


def test_a_claim_reads_as_a_line() -> None:
    claim = Claim("more is more", {"Inspec": evaluate_claim(arm(0.5), arm(0.3), "F")})
    assert format_claim(claim) == "more is more: Inspec +20.00 [+20.00, +20.00], replicated"


def test_seeds_are_resampled_with_the_documents_if_asked_for() -> None:
    """Two seeds 0.2 and 0.6, whose mean over two drawn seeds is 0.2, 0.4 or 0.6."""
    draws = np.zeros(2000)
    nothing = np.zeros(1)
    scores = tuple(ResampledScore(v, v + draws, nothing, nothing, abs) for v in (0.2, 0.6))
    fixed, resampled = (ArmScores("an arm", (1, 2), {"F": scores}, each) for each in (False, True))
    assert (fixed.mean("F").low, fixed.mean("F").high) == pytest.approx((0.4, 0.4))
    assert (resampled.mean("F").low, resampled.mean("F").high) == pytest.approx((0.2, 0.6))
    assert resampled.minus(resampled, "F").high == 0  # the same seeds are drawn for both


def test_the_detectable_difference_is_2_8_standard_errors() -> None:
    nothing = np.zeros(1)
    one, other = (
        ArmScores("an arm", (1,), {"F": (ResampledScore(0.0, draws, nothing, nothing, abs),)})
        for draws in (np.array([-0.01, 0.01]), np.zeros(2))
    )
    assert one.detectable_difference(other, "F") == pytest.approx(0.028)
