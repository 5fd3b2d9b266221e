from __future__ import annotations

import numpy as np
import pytest

from evenmatch.stats.paired import ResampledScore
from evenmatch.studies.experiment import SEEN, ArmScores, Claim, format_claim


def arm(*values: float) -> ArmScores:
    nothing = np.zeros(1)
    every = tuple(
        ResampledScore(v, v + np.array([-0.01, 0, 0.01]), nothing, nothing, abs) for v in values
    )
    return ArmScores("an arm", tuple(range(len(values))), {"F": every})


def test_a_claim_reads_as_a_line() -> None:
    claim = Claim("more is more", {"Inspec": (arm(0.5).minus(arm(0.3), "F"), SEEN)})
    assert format_claim(claim) == "more is more: Inspec +20.00 [+20.00, +20.00], seen"


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
