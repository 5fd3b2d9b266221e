"""A reward as TRL's trainers call it: GRPOTrainer(..., reward_funcs=for_trl(reward("f_disc"))).

A reward as OpenRLHF calls it: --reward.remote_url FILE.py, this file or one of your own.

from evenmatch.integrations.rl import for_openrlhf
reward_func = for_openrlhf(em.reward("bertscore"))

A reward as verl calls it: custom_reward_function.path of this file or one of your own.

from evenmatch.integrations.rl import for_verl
compute_score = for_verl(em.reward("bertscore"))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenmatch.errors import InputError
from evenmatch.training.rewards.responses import as_references, completion_text, extract_response
from evenmatch.training.rewards.rewards import Reward, reward
from evenmatch.types import Pair


@dataclass(frozen=True)
class TrlReward:
    """A function of completions and of the data set's columns, one of which has the references."""

    reward: Reward
    references: str
    name: str

    @property
    def __name__(self) -> str:
        """What TRL's logs call it."""
        return self.name

    def __call__(self, completions: Sequence[Any], **columns: Any) -> list[float]:
        """One number per completion; completions are strings, or lists of chat messages."""
        if self.references not in columns:
            raise InputError(
                f"the data set has no column {self.references!r} with references; "
                f"its columns: {', '.join(map(repr, columns))}; name one: for_trl(references=...)"
            )
        given = columns[self.references]
        found = self.reward.evaluate(
            [
                Pair(completion_text(c), as_references(r))
                for c, r in zip(completions, given, strict=True)
            ]
        )
        log = columns.get("log_metric")
        if log is not None:  # shown beside TRL's own numbers, by versions that have it
            log(f"{self.name}/odd", len(found.odd) / max(len(found.values), 1))
        return list(found.values)


def for_trl(
    reward: Reward, *, references: str = "references", name: str = "evenmatch"
) -> TrlReward:
    """The reward as a reward function for TRL (GRPO, RLOO and others that take such functions).

    `references` is the column of the data set with a reference, or a list of them, for each prompt.
    The share of texts that were too odd to judge is logged as `<name>/odd`.
    """
    return TrlReward(reward, references, name)


@dataclass(frozen=True)
class OpenRlhfReward:
    """A function of queries (prompt and response in one), prompts and labels (references)."""

    reward: Reward

    def __call__(
        self, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **more: Any
    ) -> dict[str, Any]:
        """Tensors of rewards and of scores, which are the same, and which texts were odd."""
        import torch

        found = self.reward.evaluate(
            [
                Pair(extract_response(query, prompt), as_references(label))
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
        return self.reward([Pair(solution_str, as_references(ground_truth))])[0]

    def compute_batch(
        self,
        data_sources: Sequence[Any],
        solution_strs: Sequence[str],
        ground_truths: Sequence[Any],
        extra_infos: Any = None,
        **more: Any,
    ) -> list[float]:
        """The rewards of many texts in one go, as verl's batch manager asks for them."""
        pairs = zip(solution_strs, ground_truths, strict=True)
        return self.reward([Pair(text, as_references(truth)) for text, truth in pairs])


def for_verl(reward: Reward) -> VerlReward:
    """The reward as a `compute_score` for verl; its `many` is that of the batch manager."""
    return VerlReward(reward)


compute_score = for_verl(reward("f_disc"))


compute_scores = compute_score.compute_batch
