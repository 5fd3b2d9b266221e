from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from evenmatch.uses.keyphrases.resampling import Drawn
from evenmatch.uses.study.claims import REVERSE, SEEN, UNSEEN, Claim, judged, sentence


@dataclass(frozen=True)
class Arm:
    seeds: tuple[int, ...]
    drawn: Mapping[str, tuple[Drawn, ...]]


def arm(*values: float) -> Arm:
    nothing = np.zeros(1)
    every = tuple(Drawn(v, v + np.array([-0.01, 0, 0.01]), nothing, nothing, abs) for v in values)
    return Arm(tuple(range(len(values))), {"F": every})


@pytest.mark.parametrize(
    ("values", "verdict"),
    [((0.5, 0.6), SEEN), ((0.1, 0.2), REVERSE), ((0.3, 0.3), UNSEEN), ((0.9, 0.29), UNSEEN)],
    ids=["above", "below", "equal", "one seed against it"],
)
def test_a_claim_is_seen_beyond_chance_and_for_every_seed(
    values: tuple[float, ...], verdict: str
) -> None:
    seen, found = judged(arm(*values), arm(0.3, 0.3), "F")
    assert found == verdict
    assert seen.value == pytest.approx(np.mean(values) - 0.3)


def test_a_claim_reads_as_a_line() -> None:
    claim = Claim("more is more", {"Inspec": judged(arm(0.5), arm(0.3), "F")})
    assert sentence(claim) == "more is more: Inspec +20.00 [+20.00, +20.00], seen"
