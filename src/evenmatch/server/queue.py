"""Requests that arrive together are answered together, by one thread that does all the work.

While a batch runs, the next one gathers; so the busier the server, the larger its batches, and the
closer its speed to that of one call with all the texts.

What requests ask for; several that ask for the same are carried out in one go.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

from evenmatch.errors import EvenmatchError
from evenmatch.models.loading import trim_memory
from evenmatch.protocols import Metric
from evenmatch.scoring.aligned import align_texts
from evenmatch.scoring.metric import score_metrics
from evenmatch.server.allow_list import can_batch
from evenmatch.server.prometheus import ServerMetrics
from evenmatch.server.security import Limits, RequestError
from evenmatch.training.rewards.rewards import RewardValues, score_leaf_terms
from evenmatch.training.rewards.terms import MetricTerm
from evenmatch.types import Pair, Run, Scores
from evenmatch.viewer.page import AlignmentData, alignment_data_with_trees

GATHER_SECONDS = 0.002  # seconds: clients that were answered together come back together


MEMORY_TRIM_SECONDS = (
    1.0  # seconds between two times that memory is given back, which takes some milliseconds
)


MAX_BATCH_PAIRS = (
    512  # of one batch: enough to fill the model's, few enough not to keep others waiting
)


@dataclass(frozen=True, eq=False)
class QueuedRequest:
    """A request that waits for its answer."""

    operation: Operation
    pairs: Sequence[Pair]
    future: asyncio.Future[Any]


class RequestBatcher:
    """The queue of one server; started and stopped with it."""

    def __init__(self, limits: Limits, figures: ServerMetrics) -> None:
        self._limits, self._server_metrics = limits, figures
        self._queue: deque[QueuedRequest] = deque()
        self._wake = asyncio.Event()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="evenmatch")
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    def start(self) -> None:
        """Begin to work; called inside the server's event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Finish what was accepted, then end."""
        self._closing = True
        self._wake.set()
        if self._task:
            await self._task
        self._worker.shutdown()

    async def submit(self, work: Operation, pairs: Sequence[Pair]) -> Any:
        """The answer, or a refusal where too many wait or the time is over."""
        waiting = self.queued_pairs
        if waiting and waiting + len(pairs) > self._limits.max_queued_pairs:
            raise RequestError(
                429, f"{waiting} pairs are waiting already; try again in a second", Retry_After="1"
            )
        job = QueuedRequest(work, pairs, asyncio.get_running_loop().create_future())
        self._queue.append(job)
        self._wake.set()
        try:
            return await asyncio.wait_for(job.future, self._limits.timeout)
        except TimeoutError:
            seconds = f"{self._limits.timeout:g} seconds"
            raise RequestError(504, f"no answer within {seconds}; send fewer texts") from None

    @property
    def queued_pairs(self) -> int:
        """The number of pairs that wait."""
        return sum(len(job.pairs) for job in self._queue)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        tidied = loop.time()
        while True:
            await self._wake.wait()
            if not self._closing:
                await asyncio.sleep(GATHER_SECONDS)
            jobs = self._next_batch()
            for work in dict.fromkeys(job.operation for job in jobs):
                alike = [job for job in jobs if job.operation == work]
                done = loop.run_in_executor(self._worker, _run_batch, work, alike)
                await asyncio.wait([done])
                # An error nobody foresaw ends these requests and not the server.
                fault = done.exception()
                self._resolve(alike, [fault] * len(alike) if fault else done.result())
            if loop.time() - tidied > MEMORY_TRIM_SECONDS:
                await loop.run_in_executor(self._worker, trim_memory)
                tidied = loop.time()
            if not self._queue:
                if self._closing:
                    return
                self._wake.clear()

    def _next_batch(self) -> list[QueuedRequest]:
        """The jobs that waited longest, as many as fit one batch; those given up are dropped."""
        jobs: list[QueuedRequest] = []
        size = 0
        while self._queue and (not jobs or size + len(self._queue[0].pairs) <= MAX_BATCH_PAIRS):
            job = self._queue.popleft()
            if not job.future.done():
                jobs.append(job)
                size += len(job.pairs)
        return jobs

    def _resolve(self, jobs: Sequence[QueuedRequest], answers: Sequence[Any]) -> None:
        self._server_metrics.count_batch(len(jobs), sum(len(job.pairs) for job in jobs))
        for job, answer in zip(jobs, answers, strict=True):
            if job.future.done():
                continue  # its time was over
            if isinstance(answer, BaseException):
                job.future.set_exception(answer)
            else:
                job.future.set_result(answer)


def _run_batch(work: Operation, jobs: Sequence[QueuedRequest]) -> Sequence[Any]:
    """An answer or an error for each job; what one request does wrong is not its neighbours'."""
    try:
        return work([job.pairs for job in jobs])
    except EvenmatchError as error:
        if len(jobs) == 1:
            return [RequestError(422, " ".join(str(error).split()))]
    return [answer for job in jobs for answer in _run_batch(work, [job])]


Pairs = Sequence[Pair]


T = TypeVar("T")


class Operation(Protocol):
    """Answers requests, one answer each, in order; equal works may be joined."""

    def __call__(self, requests: Sequence[Pairs], /) -> Sequence[Any]: ...


@dataclass(frozen=True)
class ScoreOperation:
    """The scores of several metrics over the same texts."""

    metrics: tuple[Metric, ...]
    run: Run

    def __call__(self, requests: Sequence[Pairs]) -> list[list[Scores]]:
        shared = [metric for metric in self.metrics if can_batch(metric)]
        every = [pair for pairs in requests for pair in pairs]
        found = dict(zip(shared, score_metrics(shared, every, self.run), strict=True))
        parts = {
            metric: [
                Scores(own, scores.signature)
                for own in _split_by_request(scores.segments, requests)
            ]
            for metric, scores in found.items()
        }
        return [
            [
                parts[metric][at]
                if metric in parts
                else score_metrics([metric], pairs, self.run)[0]
                for metric in self.metrics
            ]
            for at, pairs in enumerate(requests)
        ]


@dataclass(frozen=True)
class RewardOperation:
    """The rewards of one metric."""

    metric: Metric
    run: Run

    def __call__(self, requests: Sequence[Pairs]) -> list[RewardValues]:
        if not can_batch(self.metric):
            return [self._compute_rewards(pairs) for pairs in requests]
        every = self._compute_rewards([pair for pairs in requests for pair in pairs])
        values, start = _split_by_request(every.values, requests), 0
        found = []
        for own in values:
            odd = (row - start for row in every.odd if start <= row < start + len(own))
            found.append(RewardValues(own, tuple(odd)))
            start += len(own)
        return found

    def _compute_rewards(self, pairs: Pairs) -> RewardValues:
        judged = MetricTerm(self.metric, self.run)
        return score_leaf_terms([judged], pairs)[judged]


@dataclass(frozen=True)
class AlignOperation:
    """One alignment to look at per request."""

    name: str
    metric: Metric

    def __call__(self, requests: Sequence[Pairs]) -> list[AlignmentData]:
        return [self._align_pair(pairs[0].candidate, pairs[0].references[0]) for pairs in requests]

    def _align_pair(self, candidate: str, reference: str) -> AlignmentData:
        aligned = align_texts(candidate, reference, self.metric)
        return alignment_data_with_trees(aligned, self.metric, candidate, reference, name=self.name)


def _split_by_request(values: Sequence[T], requests: Sequence[Pairs]) -> Iterator[tuple[T, ...]]:
    """The values in portions, one for each request."""
    left = iter(values)
    for pairs in requests:
        yield tuple(islice(left, len(pairs)))
