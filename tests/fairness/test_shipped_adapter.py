"""The gender adapter that comes with evenmatch: fairer, and not blind."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenmatch.data.fairness_sets import FairnessSet, read_fair_pairs
from evenmatch.fairness.audit import audit
from evenmatch.fairness.counterfactuals import wrong_gender_penalties
from evenmatch.fairness.debias import contrast_cases, fairness_pair_cases
from evenmatch.fairness.training_data import pronoun_contrasts
from evenmatch.registry import build
from evenmatch.types import Run

pytestmark = pytest.mark.model

PLAIN, EVEN = ("bertscore", "f_disc"), ("bertscore_even", "f_disc_even")


def _biases(metrics: tuple[str, ...], pairs: FairnessSet) -> list[tuple[float, float]]:
    found = audit(list(metrics), pairs, worst=0, resamples=10, trials=10)
    return [(each.bias, each.raw) for each in found.biases]


def test_it_lowers_the_bias_on_our_own_pairs() -> None:
    own = read_fair_pairs(attributes=["gender"])
    for before, after in zip(_biases(PLAIN, own), _biases(EVEN, own), strict=True):
        assert after[0] < 0.7 * before[0]
        assert after[1] < 0.7 * before[1]


def test_a_wrong_gender_goes_on_costing() -> None:
    cases = fairness_pair_cases(read_fair_pairs(attributes=["gender"]).pairs["gender"])
    costs = wrong_gender_penalties([build(name) for name in (*PLAIN, *EVEN)], cases, Run())
    assert costs[2] >= 0.9 * costs[0]
    assert costs[3] >= 0.9 * costs[1]


@pytest.mark.parametrize("kind", ["noun", "name"])
def test_a_wrong_gender_costs_where_only_a_noun_or_a_name_shows_it(kind: str) -> None:
    cases = contrast_cases(pronoun_contrasts(kind))
    before, after = wrong_gender_penalties(
        [build("bertscore"), build("bertscore_even")], cases, Run()
    )
    assert after >= 0.9 * before > 0


@pytest.mark.slow
def test_it_takes_three_fifths_of_the_bias_that_the_paper_measures(data: Path) -> None:
    public = read_fair_pairs("metric-fairness", attributes=["gender"])
    [(before, raw_before)] = _biases(PLAIN[:1], public)
    [(after, raw_after)] = _biases(EVEN[:1], public)
    assert after < 0.4 * before
    assert raw_after < 0.4 * raw_before
