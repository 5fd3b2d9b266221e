"""A reward as TRL's trainers call it: GRPOTrainer(..., reward_funcs=for_trl(reward("f_disc")))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenmatch.errors import InputError
from evenmatch.types import Pair
from evenmatch.uses.train.rewards import Reward
from evenmatch.uses.train.rewards_responses import references_of, text_of


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
        found = self.reward.rated(
            [Pair(text_of(c), references_of(r)) for c, r in zip(completions, given, strict=True)]
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
