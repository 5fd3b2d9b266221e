"""Batching of requests: equal operations are processed together by one worker thread.

While a batch runs, requests for the next one accumulate. The higher the load, the larger the
batches, and the closer the speed to that of one call with all texts. `RequestBatcher` is the queue;
the operations (score, reward, align) follow below.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from evenmatch.data.scores import score_to_record
from evenmatch.errors import EvenmatchError
from evenmatch.models.loading import trim_memory
from evenmatch.protocols import Metric
from evenmatch.scoring.aligned import align_texts
from evenmatch.scoring.engine import sign_reference_count, texts_of_pair
from evenmatch.scoring.metric import score_metrics
from evenmatch.server.allow_list import can_batch
from evenmatch.server.prometheus import ServerMetrics
from evenmatch.server.security import CostCheck, Limits, RequestError, check_response_size
from evenmatch.training.rewards import MetricTerm, Reward, RewardValues
from evenmatch.types import Pair, Run, Scores
from evenmatch.vectors.weighting import without_saving_idf
from evenmatch.viewer.page import alignment_data_with_trees

# Time to wait for more requests: clients answered together send their next requests together.
GATHER_SECONDS = 0.002

# Time between two calls that return memory to the system; each takes some milliseconds.
MEMORY_TRIM_SECONDS = 1.0

# Enough to fill the batches of a model, few enough not to delay other requests.
MAX_BATCH_PAIRS = 512
MAX_BATCH_CHARACTERS = 200_000

# Tables of several pairs are held at a time, so many times as large as the largest allowed one.
_TABLES_AT_A_TIME = 16

Pairs = Sequence[Pair]
T = TypeVar("T")

# Returns a result for each request, in order; requests with equal operations share one call. The
# second argument tells whether all of these requests have been given up.
Operation: TypeAlias = Callable[[Sequence[Pairs], Callable[[], bool]], Sequence[Any]]


class RequestBatcher:
    """The request queue of a server; started and stopped with it."""

    def __init__(self, limits: Limits, server_metrics: ServerMetrics) -> None:
        self._limits, self._server_metrics = limits, server_metrics
        self._queue: deque[QueuedRequest] = deque()
        self._wake = asyncio.Event()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="evenmatch")
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        server_metrics.waiting_pairs.set_function(lambda: self.queued_pairs)

    def start(self) -> None:
        """Start processing; to be called in the server's event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Process all queued requests, then stop."""
        self._closing = True
        self._wake.set()
        if self._task:
            await self._task
        self._worker.shutdown()

    async def submit(self, operation: Operation, pairs: Sequence[Pair]) -> Any:
        """Queue a request and wait for its result.

        Raises `RequestError` if the queue is full (429) or the timeout is exceeded (504).
        """
        queued = self.queued_pairs
        if queued and queued + len(pairs) > self._limits.max_queued_pairs:
            raise RequestError(
                429, f"{queued} pairs are already queued; try again in a second", Retry_After="1"
            )
        request = QueuedRequest(operation, pairs, asyncio.get_running_loop().create_future())
        self._queue.append(request)
        self._wake.set()
        try:
            return await asyncio.wait_for(request.future, self._limits.timeout)
        except TimeoutError:
            seconds = f"{self._limits.timeout:g} seconds"
            raise RequestError(504, f"no response within {seconds}; send fewer texts") from None

    @property
    def queued_pairs(self) -> int:
        """Number of pairs in the queue."""
        return sum(len(request.pairs) for request in self._queue)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        last_trim = loop.time()
        while True:
            await self._wake.wait()
            if not self._closing:
                await asyncio.sleep(GATHER_SECONDS)
            batch = self._next_batch()
            for operation in dict.fromkeys(request.operation for request in batch):
                equal = [request for request in batch if request.operation == operation]
                done = loop.run_in_executor(self._worker, _run_batch, operation, equal)
                await asyncio.wait([done])
                # An unexpected error fails these requests, but does not stop the server.
                error = done.exception()
                self._resolve(equal, [error] * len(equal) if error else done.result())
            if loop.time() - last_trim > MEMORY_TRIM_SECONDS:
                await loop.run_in_executor(self._worker, trim_memory)
                last_trim = loop.time()
            if not self._queue:
                if self._closing:
                    return
                self._wake.clear()

    def _next_batch(self) -> list[QueuedRequest]:
        """Take the oldest requests that fit into one batch; drop those that timed out."""
        batch: list[QueuedRequest] = []
        size = 0
        characters = 0
        while self._queue:
            request = self._queue[0]
            size += len(request.pairs)
            characters += request.characters
            if batch and (size > MAX_BATCH_PAIRS or characters > MAX_BATCH_CHARACTERS):
                break
            self._queue.popleft()
            if not request.future.done():
                batch.append(request)
        return batch

    def _resolve(self, requests: Sequence[QueuedRequest], results: Sequence[Any]) -> None:
        self._server_metrics.count_batch(len(requests), sum(len(each.pairs) for each in requests))
        for request, result in zip(requests, results, strict=True):
            if request.future.done():
                continue  # it timed out
            if isinstance(result, BaseException):
                request.future.set_exception(result)
            else:
                request.future.set_result(result)


@dataclass(frozen=True, eq=False)
class QueuedRequest:
    """A request in the queue, and the future of its result."""

    operation: Operation
    pairs: Sequence[Pair]
    future: asyncio.Future[Any]

    @property
    def characters(self) -> int:
        """The length of all texts."""
        return sum(len(text) for pair in self.pairs for text in texts_of_pair(pair))


@dataclass(frozen=True)
class ScoreOperation:
    """Score texts with several metrics."""

    metrics: tuple[Metric, ...]
    run: Run
    limits: Limits

    def __call__(
        self, requests: Sequence[Pairs], is_abandoned: Callable[[], bool]
    ) -> list[list[Scores]]:
        run = _checked_run(self.run, self.limits, is_abandoned)
        shared = [metric for metric in self.metrics if can_batch(metric)]
        all_pairs = [pair for pairs in requests for pair in pairs]
        found: dict[Metric, list[Scores]] = {}
        for metric, scores in zip(shared, score_metrics(shared, all_pairs, run), strict=True):
            split = _split_by_request(scores.segments, requests)
            found[metric] = [
                Scores(segments, sign_reference_count(scores.signature, pairs))
                for segments, pairs in zip(split, requests, strict=True)
            ]
        for metric in self.metrics:
            if metric not in found:
                found[metric] = [score_metrics([metric], p, run)[0] for p in requests]
        return [[found[metric][at] for metric in self.metrics] for at in range(len(requests))]


@dataclass(frozen=True)
class RewardOperation:
    """Compute rewards with one metric."""

    metric: Metric
    run: Run
    limits: Limits

    def __call__(
        self, requests: Sequence[Pairs], is_abandoned: Callable[[], bool]
    ) -> list[RewardValues]:
        run = _checked_run(self.run, self.limits, is_abandoned)
        reward = Reward(MetricTerm(self.metric, run))
        if not can_batch(self.metric):
            return [reward.evaluate(pairs) for pairs in requests]
        rewards = reward.evaluate([pair for pairs in requests for pair in pairs])
        found, start = [], 0
        for values in _split_by_request(rewards.values, requests):
            odd = (row - start for row in rewards.odd if start <= row < start + len(values))
            found.append(RewardValues(values, tuple(odd)))
            start += len(values)
        return found


@dataclass(frozen=True)
class AlignOperation:
    """Align the pair of each request, with the data that the viewer shows, as JSON.

    It is encoded here, in the worker's thread, so that other requests are answered meanwhile.
    """

    name: str
    metric: Metric
    limits: Limits

    def __call__(
        self, requests: Sequence[Pairs], is_abandoned: Callable[[], bool]
    ) -> list[bytes | RequestError]:
        cells = self.limits.max_aligned_cells
        run = Run(check_cost=CostCheck(cells, cells, is_abandoned))
        return [self._align_pair(pair, run) for (pair,) in requests]

    def _align_pair(self, pair: Pair, run: Run) -> bytes | RequestError:
        candidate, reference = texts_of_pair(pair)
        try:
            aligned = align_texts(candidate, reference, self.metric, run)
            data = alignment_data_with_trees(
                aligned, self.metric, candidate, reference, name=self.name
            )
            document = vars(data) | {"score": score_to_record(data.score)}
            return check_response_size(json.dumps(document).encode(), self.limits)
        except RequestError as error:
            return error


def _checked_run(run: Run, limits: Limits, is_abandoned: Callable[[], bool]) -> Run:
    check = CostCheck(limits.max_cells, limits.max_cells * _TABLES_AT_A_TIME, is_abandoned)
    return replace(run, check_cost=check)


def _run_batch(operation: Operation, requests: Sequence[QueuedRequest]) -> Sequence[Any]:
    """Return a result or an error for each request.

    If the batch fails, each request is run alone, so that an invalid one does not affect others.
    Work on requests that were all given up is cancelled before its next piece.
    """

    def is_abandoned() -> bool:
        return all(request.future.done() for request in requests)

    try:
        with without_saving_idf():  # requests write nothing to disk
            return operation([request.pairs for request in requests], is_abandoned)
    except (EvenmatchError, RequestError) as error:
        if len(requests) == 1:
            known = isinstance(error, RequestError)
            return [error if known else RequestError(422, " ".join(str(error).split()))]
    return [result for request in requests for result in _run_batch(operation, [request])]


def _split_by_request(values: Sequence[T], requests: Sequence[Pairs]) -> Iterator[tuple[T, ...]]:
    """Split the values of a batch by request."""
    remaining = iter(values)
    for pairs in requests:
        yield tuple(islice(remaining, len(pairs)))
