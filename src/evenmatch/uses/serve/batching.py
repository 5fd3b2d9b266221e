"""Requests that arrive together are answered together, by one thread that does all the work.

While a batch runs, the next one gathers; so the busier the server, the larger its batches, and the
closer its speed to that of one call with all the texts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from evenmatch.errors import EvenmatchError
from evenmatch.types import Pair
from evenmatch.uses.serve.figures import Figures
from evenmatch.uses.serve.limits import Limits, RefusedError
from evenmatch.uses.serve.work import Work
from evenmatch.vectors.memory import give_back_memory

GATHER = 0.002  # seconds: clients that were answered together come back together
TIDY = 1.0  # seconds between two times that memory is given back, which takes some milliseconds
MOST_PAIRS = 512  # of one batch: enough to fill the model's, few enough not to keep others waiting


@dataclass(frozen=True, eq=False)
class Job:
    """A request that waits for its answer."""

    work: Work
    pairs: Sequence[Pair]
    answer: asyncio.Future[Any]


class Batcher:
    """The queue of one server; started and stopped with it."""

    def __init__(self, limits: Limits, figures: Figures) -> None:
        self._limits, self._figures = limits, figures
        self._waiting: deque[Job] = deque()
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

    async def ask(self, work: Work, pairs: Sequence[Pair]) -> Any:
        """The answer, or a refusal where too many wait or the time is over."""
        waiting = self.waiting
        if waiting and waiting + len(pairs) > self._limits.most_waiting:
            raise RefusedError(
                429, f"{waiting} pairs are waiting already; try again in a second", Retry_After="1"
            )
        job = Job(work, pairs, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._wake.set()
        try:
            return await asyncio.wait_for(job.answer, self._limits.timeout)
        except TimeoutError:
            seconds = f"{self._limits.timeout:g} seconds"
            raise RefusedError(504, f"no answer within {seconds}; send fewer texts") from None

    @property
    def waiting(self) -> int:
        """The number of pairs that wait."""
        return sum(len(job.pairs) for job in self._waiting)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        tidied = loop.time()
        while True:
            await self._wake.wait()
            if not self._closing:
                await asyncio.sleep(GATHER)
            jobs = self._taken()
            for work in dict.fromkeys(job.work for job in jobs):
                alike = [job for job in jobs if job.work == work]
                done = loop.run_in_executor(self._worker, _answers, work, alike)
                await asyncio.wait([done])
                # An error nobody foresaw ends these requests and not the server.
                fault = done.exception()
                self._hand_out(alike, [fault] * len(alike) if fault else done.result())
            if loop.time() - tidied > TIDY:
                await loop.run_in_executor(self._worker, give_back_memory)
                tidied = loop.time()
            if not self._waiting:
                if self._closing:
                    return
                self._wake.clear()

    def _taken(self) -> list[Job]:
        """The jobs that waited longest, as many as fit one batch; those given up are dropped."""
        jobs: list[Job] = []
        size = 0
        while self._waiting and (not jobs or size + len(self._waiting[0].pairs) <= MOST_PAIRS):
            job = self._waiting.popleft()
            if not job.answer.done():
                jobs.append(job)
                size += len(job.pairs)
        return jobs

    def _hand_out(self, jobs: Sequence[Job], answers: Sequence[Any]) -> None:
        self._figures.count_batch(len(jobs), sum(len(job.pairs) for job in jobs))
        for job, answer in zip(jobs, answers, strict=True):
            if job.answer.done():
                continue  # its time was over
            if isinstance(answer, BaseException):
                job.answer.set_exception(answer)
            else:
                job.answer.set_result(answer)


def _answers(work: Work, jobs: Sequence[Job]) -> Sequence[Any]:
    """An answer or an error for each job; what one request does wrong is not its neighbours'."""
    try:
        return work([job.pairs for job in jobs])
    except EvenmatchError as error:
        if len(jobs) == 1:
            return [RefusedError(422, " ".join(str(error).split()))]
    return [answer for job in jobs for answer in _answers(work, [job])]
