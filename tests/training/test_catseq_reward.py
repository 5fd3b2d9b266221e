from __future__ import annotations

import numpy as np
import pytest

from evenmatch.metrics.keyphrases.keyphrase_metric import KeyphraseMetric
from evenmatch.metrics.keyphrases.phrase_similarity import ByMetric
from evenmatch.training.keyphrases.objectives import (
    MemoizedMetric,
    compute_returns,
    group_rewards,
    reward_metric,
)
from evenmatch.training.keyphrases.sequences import END_ID, PAD_ID, SPLIT_ID, KeyphraseExample
from evenmatch.types import Pair, Scores

EXAMPLE = KeyphraseExample(("deep", "nets", "parse"), (("deep", "nets"),), (("logic",), ("trees",)))
A = 9  # some word


def reward(written: str, name: str = "f1") -> list[float]:
    found: list[float] = group_rewards(reward_metric(name), [EXAMPLE], [tuple(written.split())])[0]
    return [round(float(value), 4) for value in found]


def test_each_group_is_rewarded_by_its_own_phrases() -> None:
    assert reward("deep net <peos> logic <eos>") == [1.0, 0.5]  # F1@G: half of two, cut at two
    assert reward("logic <peos> deep net <eos>") == [0.0, 0.0]


def test_a_phrase_written_twice_is_wrong_the_second_time() -> None:
    assert reward("deep nets <sep> deep net <peos> <eos>")[0] == pytest.approx(2 / 3, abs=1e-4)


def test_fg_rewards_a_phrase_that_is_nearly_right_and_f1_does_not() -> None:
    written = "deep learning <peos> <eos>"
    assert reward(written, "fg")[0] == 0.5
    assert reward(written, "f1")[0] == 0.0


def test_any_spec_is_a_reward() -> None:
    assert reward("deep nets <peos> <eos>", "chrf")[0] > 0.9


def test_without_its_mark_all_phrases_are_rewarded_as_present() -> None:
    assert reward("deep nets <eos>", "fg") == [1.0, 0.0]


def test_words_up_to_the_mark_gain_both_rewards_and_later_words_the_second() -> None:
    tokens = np.array([[A, SPLIT_ID, A, END_ID, PAD_ID]])
    assert compute_returns(np.array([[1.0, 0.25]]), tokens).tolist() == [
        [1.25, 1.25, 0.25, 0.25, 0.0]
    ]


def test_a_reward_without_its_mark_is_paid_at_the_last_word() -> None:
    tokens = np.array([[A, A, END_ID, PAD_ID]])
    assert compute_returns(np.array([[1.0, 0.5]]), tokens).tolist() == [[1.5, 1.5, 1.5, 0.0]]


def test_what_never_ended_is_paid_at_its_last_word_too() -> None:
    tokens = np.array([[A, SPLIT_ID, A]])
    assert compute_returns(np.array([[1.0, 0.5]]), tokens).tolist() == [[1.5, 1.5, 0.5]]


class Counting:
    """Says 1 of any two texts, and counts how many it was asked about."""

    higher_is_better, bounds, signature = True, (0.0, 1.0), "counting"

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, pairs: list[Pair]) -> Scores:
        from evenmatch.types import Score

        self.asked += len(pairs)
        return Scores(tuple(Score(float(len(pair.candidate))) for pair in pairs), "counting")


def test_what_was_said_of_two_phrases_is_remembered_until_there_is_too_much_of_it() -> None:
    base = Counting()
    metric = MemoizedMetric(base, max_pairs=2)  # type: ignore[arg-type]  # a double of a metric
    pairs = [Pair("a", ("b",)), Pair("aa", ("b",))]
    assert [s.value for s in metric(pairs).segments] == [1.0, 2.0]
    assert [s.value for s in metric(pairs[::-1]).segments] == [2.0, 1.0]
    assert base.asked == 2
    metric([Pair("c", ("b",))])
    metric(pairs)
    assert base.asked == 5


def test_a_reward_by_a_model_remembers_and_others_are_as_they_were() -> None:
    metric = reward_metric("fg(similarity=by_metric)")
    assert isinstance(metric, KeyphraseMetric)
    assert isinstance(metric.similarity, ByMetric)
    assert isinstance(metric.similarity.metric, MemoizedMetric)
    assert reward_metric("chrf").signature == reward_metric("chrf").signature
