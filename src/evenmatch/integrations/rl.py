"""Reward functions for reinforcement-learning libraries: TRL, OpenRLHF and verl.

Each adapter wraps a `Reward` in the function that the library calls:

- TRL: `GRPOTrainer(..., reward_funcs=em.for_trl(em.reward("f_disc")))`
- OpenRLHF: `--reward.remote_url FILE.py`, where FILE.py contains
  `reward_func = em.for_openrlhf(em.reward("bertscore"))`
- verl: `reward.custom_reward_function.path=FILE.py`, where FILE.py contains
  `compute_score = em.for_verl(em.reward("bertscore")).compute_async`

OpenRLHF and verl can also be given this file itself: at its end it defines these functions for
the metric `f_disc`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from evenmatch.errors import InputError
from evenmatch.protocols import Metric
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.inputs import check_pairs
from evenmatch.training.rewards import (
    Reward,
    as_references,
    completion_text,
    extract_response,
    reward,
)
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
        _check_equal_lengths({"completions": completions, self.references: references})
        found = self.reward.evaluate(
            [
                Pair(completion_text(c), as_references(r))
                for c, r in zip(completions, references, strict=True)
            ]
        )
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

        _check_equal_lengths({"queries": queries, "prompts": prompts, "labels": labels})
        found = self.reward.evaluate(
            [
                Pair(extract_response(query, prompt), as_references(label))
                for query, prompt, label in zip(queries, prompts, labels, strict=True)
            ]
        )
        odd = [float(row in found.odd) for row in range(len(found.values))]
        values = torch.tensor(found.values)
        return {"rewards": values, "scores": values, "extra_logs": {"odd": torch.tensor(odd)}}


def for_openrlhf(reward: Reward | str | Metric) -> OpenRlhfReward:
    """Make a `reward_func` for OpenRLHF from a reward, or the name, spec or object of a metric."""
    return OpenRlhfReward(_to_reward(reward))


WaitingCall: TypeAlias = tuple[Pair, "asyncio.Future[float]"]

# Time to wait for more calls: verl scores each response of a batch as soon as it is decoded.
GATHER_SECONDS = 0.01


@dataclass(frozen=True)
class VerlReward:
    """Reward function for verl, called with a solution and its ground truth.

    The ground truth is a reference or a list of references. `compute_async` is for the reward loop
    of current versions, which awaits one call per response; calls that wait at the same time are
    scored in one pass. Calling the object itself scores one text, and `compute_batch` many, for
    the reward managers of older versions.
    """

    reward: Reward
    # Waiting calls and the task that scores them, by event loop; neither compared nor pickled.
    _waiting: WeakKeyDictionary[Any, tuple[list[WaitingCall], asyncio.Task[None]]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[Any, ...]:
        return VerlReward, (self.reward,)

    async def compute_async(
        self,
        data_source: Any,
        solution_str: str,
        ground_truth: Any,
        extra_info: Any = None,
        **more: Any,
    ) -> float:
        """Return the reward of one text; concurrent calls are gathered into one pass."""
        pair = Pair(solution_str, as_references(ground_truth))
        check_pairs([pair])  # here, so that an invalid text fails its own call only
        loop = asyncio.get_running_loop()
        future: asyncio.Future[float] = loop.create_future()
        if loop not in self._waiting:
            self._waiting[loop] = [], loop.create_task(self._score_waiting(loop))
        self._waiting[loop][0].append((pair, future))
        return await future

    async def _score_waiting(self, loop: asyncio.AbstractEventLoop) -> None:
        """Score the calls that wait, then those that came meanwhile, until there are none."""
        calls = self._waiting[loop][0]
        try:
            await asyncio.sleep(GATHER_SECONDS)
            while calls:
                batch = [(pair, future) for pair, future in calls if not future.done()]
                calls.clear()
                done = loop.run_in_executor(None, self.reward, [pair for pair, _ in batch])
                await asyncio.wait([done])
                error = done.exception()
                for row, (_, future) in enumerate(batch):
                    if future.done():
                        continue  # cancelled meanwhile
                    if error:
                        future.set_exception(error)
                    else:
                        future.set_result(done.result()[row])
        finally:
            del self._waiting[loop]

    def __call__(
        self,
        data_source: Any,
        solution_str: str,
        ground_truth: Any,
        extra_info: Any = None,
        **more: Any,
    ) -> float:
        """Return the reward of one text."""
        return self.reward([Pair(solution_str, as_references(ground_truth))])[0]

    def compute_batch(
        self,
        data_sources: Sequence[Any],
        solution_strs: Sequence[str],
        ground_truths: Sequence[Any],
        extra_infos: Any = None,
        **more: Any,
    ) -> list[float]:
        """Return the rewards of many texts at once."""
        _check_equal_lengths({"solution_strs": solution_strs, "ground_truths": ground_truths})
        pairs = zip(solution_strs, ground_truths, strict=True)
        return self.reward([Pair(text, as_references(truth)) for text, truth in pairs])


def for_verl(reward: Reward | str | Metric) -> VerlReward:
    """Make a `compute_score` for verl from a reward, or the name, spec or object of a metric.

    Its method `compute_async` is for current versions of verl; see `VerlReward`.
    """
    return VerlReward(_to_reward(reward))


def _to_reward(given: Reward | str | Metric) -> Reward:
    return given if isinstance(given, Reward) else reward(given)


def _check_equal_lengths(columns: Mapping[str, Any]) -> None:
    for name, given in columns.items():
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Collection):
            raise InputError(f"expected a list of {name}, got {type(given).__name__}")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {count}" for name, count in lengths.items())
        raise InputError(f"the columns must have one row per text, but {told}")


# The names that OpenRLHF and verl look for when they are given this file.
reward_func = for_openrlhf(reward())
compute_score = for_verl(reward()).compute_async
