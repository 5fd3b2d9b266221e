from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

import evenmatch as em
from evenmatch.server.prometheus import ServerMetrics
from evenmatch.server.queue import RequestBatcher
from evenmatch.server.security import Limits, RequestError
from evenmatch.types import Pair

A = [Pair("a", ("a",))]
B = [Pair("b", ("b",)), Pair("c", ("c",))]
BAD = [Pair("bad", ("x",))]


@dataclass(frozen=True)
class Counting:
    """Answers with the number of requests it was given at once."""

    sizes: list[int] = field(default_factory=list, compare=False)
    name: str = "counting"

    def __call__(
        self, requests: Sequence[Sequence[Pair]], is_abandoned: Callable[[], bool]
    ) -> list[Any]:
        self.sizes.append(len(requests))
        if any(pair.candidate == "bad" for pairs in requests for pair in pairs):
            raise em.InputError("a bad text")
        return [[pair.candidate for pair in pairs] for pairs in requests]


def together(work: Counting, *asked: Sequence[Pair], limits: Limits = Limits()) -> list[Any]:
    async def run() -> list[Any]:
        batcher = RequestBatcher(limits, ServerMetrics())
        batcher.start()
        waiting: list[Awaitable[Any]] = [batcher.submit(work, pairs) for pairs in asked]
        found = await asyncio.gather(*waiting, return_exceptions=True)
        await batcher.stop()
        return found

    return asyncio.run(run())


def test_requests_that_arrive_together_are_answered_together_and_in_order() -> None:
    work = Counting()
    assert together(work, A, B, A) == [["a"], ["b", "c"], ["a"]]
    assert work.sizes == [3]


def test_one_bad_request_does_not_spoil_its_neighbours() -> None:
    found = together(Counting(), A, BAD, B)
    assert (found[0], found[2]) == (["a"], ["b", "c"])
    assert isinstance(found[1], RequestError)
    assert (found[1].status, found[1].detail) == (422, "a bad text")


def test_a_full_queue_is_refused() -> None:
    found = together(Counting(), B, B, B, limits=Limits(max_queued_pairs=4))
    assert found[:2] == [["b", "c"], ["b", "c"]]
    assert isinstance(found[2], RequestError)
    assert found[2].status == 429
    assert found[2].headers == {"Retry-After": "1"}
    assert "4 pairs are already queued" in found[2].detail


def test_what_was_accepted_is_finished_at_the_end() -> None:
    async def run() -> Any:
        batcher = RequestBatcher(Limits(), ServerMetrics())
        batcher.start()
        asked = asyncio.create_task(batcher.submit(Counting(), B))
        await asyncio.sleep(0)
        await batcher.stop()
        return await asked

    assert asyncio.run(run()) == ["b", "c"]


@pytest.mark.parametrize("count", [1, 600])
def test_a_batch_has_a_bound_but_takes_any_single_request(count: int) -> None:
    work = Counting()
    found = together(work, A * count, A * count)
    assert [len(one) for one in found] == [count, count]
    assert work.sizes == ([2] if count == 1 else [1, 1])
