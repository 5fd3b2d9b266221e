"""The driver of a large run: hands out shards, keeps what comes back, tries again what fails."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from evenmatch.errors import DataError, EvenmatchError
from evenmatch.uses.scale.job import Done, Failed, Ready, Task
from evenmatch.uses.scale.pool import Pool
from evenmatch.uses.scale.search import Search
from evenmatch.uses.scale.shards import Shard


@dataclass(frozen=True, slots=True)
class Failure:
    """A shard that was given up: where it lies, the row at fault if it was found, and why."""

    shard: Shard
    reason: str
    row: int | None = None

    def __str__(self) -> str:
        """One line for a person."""
        at = "" if self.row is None else f", at {self.shard.range_of(self.row, self.row + 1)}"
        return f"{self.shard.words} failed{at}: {self.reason}"


@dataclass
class Driver:
    """One run: which shards are to do, what was tried, what was given up."""

    pool: Pool
    load: Callable[[Shard], bytes]
    keep: Callable[[Shard, Done], None]
    check: Callable[[Ready], None]
    retries: int
    max_failures: int | None

    def __call__(self, shards: Iterable[Shard]) -> list[Failure]:
        """Score these shards; gives those that were given up, the others being kept."""
        self._todo = deque(shards)
        self._under_way: dict[int, Shard] = {}
        self._tries: Counter[int] = Counter()
        self._searches: dict[int, Search] = {}
        self._failures: list[Failure] = []
        self._feed()
        while self._todo or self._under_way or self._searches:
            finished: list[tuple[Shard, Done]] = []
            for reply in self.pool.replies():
                if isinstance(reply, Ready):
                    self.check(reply)
                elif (done := self._took(reply)) is not None:
                    finished.append(done)
            # Workers first, then the disk: nobody waits while a file is synced.
            self._feed()
            for shard, result in finished:
                self.keep(shard, result)
        return self._failures

    def _feed(self) -> None:
        for number, search in list(self._searches.items()):
            if self.pool.idle() and number not in self._under_way:
                self._give(search.shard, search.only)
        while self._todo and self.pool.idle():
            self._give(self._todo.popleft())

    def _give(self, shard: Shard, only: tuple[int, int] | None = None) -> None:
        try:
            data = self.load(shard)
        except (EvenmatchError, OSError) as error:
            self._give_up(Failure(shard, " ".join(str(error).split())))
            return
        self._under_way[shard.number] = shard
        task = Task(shard.number, shard.first, shard.file, shard.cut, data, only)
        self.pool.give(task)

    def _took(self, reply: Done | Failed) -> tuple[Shard, Done] | None:
        shard = self._under_way.pop(reply.number)
        search = self._searches.get(reply.number)
        if search is not None:
            self._narrow(search, reply)
        elif isinstance(reply, Done):
            return shard, reply
        else:
            self._failed(shard, reply)
        return None

    def _failed(self, shard: Shard, reply: Failed) -> None:
        self._tries[shard.number] += 1
        if reply.again and self._tries[shard.number] <= self.retries:
            self._todo.append(shard)
        elif reply.row is not None:
            self._give_up(Failure(shard, reply.reason, reply.row))
        else:
            self._searches[shard.number] = Search(shard, reply.reason, 0, shard.rows)

    def _narrow(self, search: Search, reply: Done | Failed) -> None:
        found = search.narrowed(reply)
        if found.over:
            del self._searches[search.shard.number]
            self._give_up(Failure(search.shard, found.reason, found.row))
        else:
            self._searches[search.shard.number] = found

    def _give_up(self, failure: Failure) -> None:
        self._searches.pop(failure.shard.number, None)
        self._failures.append(failure)
        if self.max_failures is not None and len(self._failures) > self.max_failures:
            count = len(self._failures)
            what = "shard has" if count == 1 else "shards have"
            raise DataError(
                f"{count} {what} failed, more than --max-failures {self.max_failures}; "
                f"the last: {failure}"
            )
