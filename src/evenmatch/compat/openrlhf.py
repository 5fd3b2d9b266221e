"""A reward as OpenRLHF calls it: --reward.remote_url FILE.py, this file or one of your own.

from evenmatch.compat.openrlhf import for_openrlhf
reward_func = for_openrlhf(em.reward("bertscore"))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenmatch.types import Pair
from evenmatch.uses.train.rewards import Reward, reward
from evenmatch.uses.train.rewards_responses import references_of, response_of


@dataclass(frozen=True)
class OpenRlhfReward:
    """A function of queries (prompt and response in one), prompts and labels (references)."""

    reward: Reward

    def __call__(
        self, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **more: Any
    ) -> dict[str, Any]:
        """Tensors of rewards and of scores, which are the same, and which texts were odd."""
        import torch

        found = self.reward.rated(
            [
                Pair(response_of(query, prompt), references_of(label))
                for query, prompt, label in zip(queries, prompts, labels, strict=True)
            ]
        )
        odd = [float(row in found.odd) for row in range(len(found.values))]
        values = torch.tensor(found.values)
        return {"rewards": values, "scores": values, "extra_logs": {"odd": torch.tensor(odd)}}


def for_openrlhf(reward: Reward) -> OpenRlhfReward:
    """The reward as a `reward_func` for OpenRLHF."""
    return OpenRlhfReward(reward)


reward_func = for_openrlhf(reward("f_disc"))
