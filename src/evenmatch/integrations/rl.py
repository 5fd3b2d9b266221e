"""Reward functions for reinforcement-learning libraries: TRL, OpenRLHF and verl.

Each adapter wraps a `Reward` in the function that the library calls:

- TRL: `GRPOTrainer(..., reward_funcs=em.for_trl(em.reward("f_disc")))`
- OpenRLHF: `--reward.remote_url FILE.py`, where FILE.py contains
  `reward_func = em.for_openrlhf(em.reward("bertscore"))`
- verl: `custom_reward_function.path=FILE.py`, where FILE.py contains
  `compute_score = em.for_verl(em.reward("bertscore"))`

OpenRLHF and verl can also be given this file itself: at its end it defines these functions for
the metric `f_disc`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenmatch.errors import InputError
from evenmatch.protocols import Metric
from evenmatch.registry.parts import check_arguments
from evenmatch.training.rewards.responses import as_references, completion_text, extract_response
from evenmatch.training.rewards.rewards import Reward, reward
from evenmatch.types import Pair


@dataclass(frozen=True)
class TrlReward:
    """Reward function for TRL: called with completions and the columns of the data set."""

    reward: Reward
    references: str
    name: str

    @property
    def __name__(self) -> str:
        """The name in TRL's logs."""
        return self.name

    def __call__(self, completions: Sequence[Any], **columns: Any) -> list[float]:
        """Return one reward per completion; completions are strings or lists of chat messages."""
        if self.references not in columns:
            raise InputError(
                f"the data set has no column {self.references!r} with references; "
                f"its columns: {', '.join(map(repr, columns))}; name one: for_trl(references=...)"
            )
        references = columns[self.references]
        _check_same_length(completions, references, "references")
        texts = [completion_text(completion) for completion in completions]
        found = self.reward.evaluate(_make_pairs(texts, references))
        log = columns.get("log_metric")
        if log is not None:  # newer versions of TRL pass this function
            log(f"{self.name}/odd", len(found.odd) / max(len(found.values), 1))
        return list(found.values)


@check_arguments
def for_trl(
    reward: Reward | str | Metric, *, references: str = "references", name: str = "evenmatch"
) -> TrlReward:
    """Make a reward function for TRL's trainers (GRPO, RLOO and others that take such functions).

    `reward` is a reward, or the name, spec or object of a metric. `references` is the column of
    the data set with a reference, or a list of references, for each prompt. The share of texts
    that could not be scored is logged as `<name>/odd`.
    """
    return TrlReward(_to_reward(reward), references, name)


@dataclass(frozen=True)
class OpenRlhfReward:
    """Reward function for OpenRLHF, called with queries, prompts and labels.

    A query is a prompt followed by its response; a label is a reference or a list of references.
    """

    reward: Reward

    def __call__(
        self, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **more: Any
    ) -> dict[str, Any]:
        """Return the rewards, the same tensor as scores, and a log of the texts not scored."""
        import torch

        _check_same_length(queries, prompts, "prompts")
        texts = [extract_response(*each) for each in zip(queries, prompts, strict=True)]
        found = self.reward.evaluate(_make_pairs(texts, labels))
        odd = [float(row in found.odd) for row in range(len(found.values))]
        values = torch.tensor(found.values)
        return {"rewards": values, "scores": values, "extra_logs": {"odd": torch.tensor(odd)}}


def for_openrlhf(reward: Reward | str | Metric) -> OpenRlhfReward:
    """Make a `reward_func` for OpenRLHF from a reward, or the name, spec or object of a metric."""
    return OpenRlhfReward(_to_reward(reward))


@dataclass(frozen=True)
class VerlReward:
    """Reward function for verl, called with a solution and its ground truth.

    The ground truth is a reference or a list of references.
    """

    reward: Reward

    def __call__(
        self,
        data_source: Any,
        solution_str: str,
        ground_truth: Any,
        extra_info: Any = None,
        **more: Any,
    ) -> float:
        """Return the reward of one text, for verl's default reward managers."""
        return self.reward([Pair(solution_str, as_references(ground_truth))])[0]

    def compute_batch(
        self,
        data_sources: Sequence[Any],
        solution_strs: Sequence[str],
        ground_truths: Sequence[Any],
        extra_infos: Any = None,
        **more: Any,
    ) -> list[float]:
        """Return the rewards of many texts at once, for verl's batch reward manager."""
        return self.reward(_make_pairs(solution_strs, ground_truths))


def for_verl(reward: Reward | str | Metric) -> VerlReward:
    """Make a `compute_score` for verl from a reward, or the name, spec or object of a metric.

    Its method `compute_batch` is for the batch manager.
    """
    return VerlReward(_to_reward(reward))


def _to_reward(given: Reward | str | Metric) -> Reward:
    return given if isinstance(given, Reward) else reward(given)


def _make_pairs(texts: Sequence[str], references: Sequence[Any]) -> list[Pair]:
    _check_same_length(texts, references, "references")
    return [Pair(text, as_references(r)) for text, r in zip(texts, references, strict=True)]


def _check_same_length(texts: Sequence[Any], others: Sequence[Any], what: str) -> None:
    for name, given in (("texts", texts), (what, others)):
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Collection):
            raise InputError(f"expected a list of {name}, got {type(given).__name__}")
    if len(texts) != len(others):
        raise InputError(f"{len(texts)} texts but {len(others)} {what}; give one per text")


# The names that OpenRLHF and verl look for when they are given this file.
reward_func = for_openrlhf(reward("f_disc"))
compute_score = for_verl(reward("f_disc"))
compute_scores = compute_score.compute_batch
