"""The row that makes a shard fail, found by halving."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from evenmatch.uses.scale.job import Done, Failed
from evenmatch.uses.scale.shards import Shard


@dataclass(frozen=True, slots=True)
class Search:
    """Somewhere in rows `low` to `high` of a shard a row fails; `low` alone is tried at the end.

    A score depends on its pair alone, so a row that fails among others fails by itself.
    """

    shard: Shard
    reason: str
    low: int
    high: int
    over: bool = False

    @property
    def only(self) -> tuple[int, int]:
        """The rows to try next: the first half of what is left."""
        return self.low, max(self.low + 1, (self.low + self.high) // 2)

    @property
    def row(self) -> int | None:
        """The row that was found; None where no row fails by itself."""
        return self.low if self.over and self.low < self.high else None

    def narrowed(self, reply: Done | Failed) -> Search:
        """What is left after a try of `only`."""
        low, middle = self.only
        if isinstance(reply, Failed):
            alone = middle - low == 1
            return dataclasses.replace(self, high=middle, over=alone, reason=reply.reason)
        return dataclasses.replace(self, low=middle, over=middle == self.high)
