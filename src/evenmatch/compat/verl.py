"""A reward as verl calls it: custom_reward_function.path of this file or one of your own.

from evenmatch.compat.verl import for_verl
compute_score = for_verl(em.reward("bertscore"))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenmatch.types import Pair
from evenmatch.uses.train.rewards import Reward, reward
from evenmatch.uses.train.rewards_responses import references_of


@dataclass(frozen=True)
class VerlReward:
    """A function of one solution and its ground truth: a reference, or several."""

    reward: Reward

    def __call__(
        self,
        data_source: Any,
        solution_str: str,
        ground_truth: Any,
        extra_info: Any = None,
        **more: Any,
    ) -> float:
        """The reward of one text, as verl's usual managers ask for it."""
        return self.reward([Pair(solution_str, references_of(ground_truth))])[0]

    def many(
        self,
        data_sources: Sequence[Any],
        solution_strs: Sequence[str],
        ground_truths: Sequence[Any],
        extra_infos: Any = None,
        **more: Any,
    ) -> list[float]:
        """The rewards of many texts in one go, as verl's batch manager asks for them."""
        pairs = zip(solution_strs, ground_truths, strict=True)
        return self.reward([Pair(text, references_of(truth)) for text, truth in pairs])


def for_verl(reward: Reward) -> VerlReward:
    """The reward as a `compute_score` for verl; its `many` is that of the batch manager."""
    return VerlReward(reward)


compute_score = for_verl(reward("f_disc"))
compute_scores = compute_score.many
