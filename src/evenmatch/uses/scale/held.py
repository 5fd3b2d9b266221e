"""What stays between calls of one program: its pairs as shards, its workers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType

from evenmatch.types import Pair
from evenmatch.uses.scale.cuts import Cut, content_name
from evenmatch.uses.scale.job import Job
from evenmatch.uses.scale.pool import Pool, Runner
from evenmatch.uses.scale.shards import Shard

_NAME = "pairs.jsonl"  # of no file: it says how the bytes are read, and stands in messages


@dataclass(frozen=True)
class PairShards:
    """Pairs cut into shards of so many rows; their bytes are made when they are asked for."""

    pairs: Sequence[Pair]
    rows: int

    def shards(self) -> list[Shard]:
        """The plan, as of a file of lines."""
        found = []
        for number, first in enumerate(range(0, len(self.pairs), self.rows)):
            count, data = min(self.rows, len(self.pairs) - first), self._bytes(first)
            cut = Cut(first, count, (first, count), content_name(data))
            found.append(Shard(number, first, _NAME, cut))
        return found

    def load(self, shard: Shard) -> bytes:
        """The bytes of a shard."""
        return self._bytes(shard.first)

    def _bytes(self, first: int) -> bytes:
        rows = self.pairs[first : first + self.rows]
        return "\n".join(map(_line, rows)).encode()


def _line(pair: Pair) -> str:
    record = {"candidate": pair.candidate, "references": pair.references, "source": pair.source}
    return json.dumps(record)


class Held:
    """A runner whose workers stay after a job, for the next one if it is the same."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._open: tuple[Job, Pool] | None = None
        self._stack = ExitStack()

    @contextmanager
    def __call__(self, job: Job) -> Iterator[Pool]:
        """The pool of this job; those of another are ended."""
        if self._open is None or self._open[0] != job:
            self._end()
            self._open = job, self._stack.enter_context(self._runner(job))
        well = False
        try:
            yield self._open[1]
            well = True
        finally:
            if not well:  # workers are at shards that nobody waits for any more
                self._end()

    def _end(self) -> None:
        self._open = None
        self._stack.close()

    def __enter__(self) -> Held:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
