"""Workers as local processes, connected to the driver by pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import IO, Any

from evenmatch.distributed.messages import (
    ShardFailed,
    ShardTask,
    StartupMonitor,
    WorkerJob,
    WorkerPool,
    WorkerReady,
    WorkerReply,
    available_cores,
    thread_environment,
)
from evenmatch.errors import EvenmatchError, InputError

_DISCONNECTED = (EOFError, ConnectionError)


@dataclass(frozen=True)
class Processes:
    """Runner with local processes.

    `workers` is the number of processes, `threads` that of each process. A 0 is replaced so that
    workers × threads is about the number of cores.
    """

    workers: int = 0
    threads: int = 0

    @contextmanager
    def __call__(self, job: WorkerJob) -> Iterator[WorkerPool]:
        """Open the pool; it is closed at the end of the block."""
        threads = self.threads or max(1, available_cores() // (self.workers or available_cores()))
        workers = self.workers or max(1, available_cores() // threads)
        pool = _ProcessPool(job, workers, threads)
        try:
            yield pool
        finally:
            pool.close()


@dataclass(eq=False)
class _WorkerProcess:
    """A worker: its process, its pipe, its current task, and the file of its error output."""

    popen: subprocess.Popen[bytes]
    pipe: Connection[Any, Any]
    errors: IO[bytes]
    ready: bool = False
    task: ShardTask | None = None

    def exit_reason(self) -> str:
        """Describe how the process ended, with the last line of its output if any."""
        code = self.popen.wait()
        self.errors.seek(0)
        lines = self.errors.read().decode("utf-8", "replace").strip().splitlines()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return f"the worker {how}" + (f" ({lines[-1].strip()})" if lines else "")

    def close(self) -> None:
        self.popen.kill()
        self.popen.wait()
        self.pipe.close()
        self.errors.close()


@dataclass
class _ProcessPool:
    job: WorkerJob
    workers: int
    threads: int
    startup: StartupMonitor = field(default_factory=StartupMonitor)
    processes: list[_WorkerProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._start_missing()

    def idle_count(self) -> int:
        return len(self._idle_workers())

    def _idle_workers(self) -> list[_WorkerProcess]:
        return [p for p in self.processes if p.ready and p.task is None]

    def submit(self, task: ShardTask) -> None:
        process = self._idle_workers()[0]
        process.task = task
        with suppress(ConnectionError):  # the worker died idle; `replies` reports the failed task
            process.pipe.send(task)

    def replies(self) -> list[WorkerReply]:
        """Wait for replies and return them; replace workers that died."""
        readable = wait([p.pipe for p in self.processes])
        found = [self._receive(p) for p in list(self.processes) if p.pipe in readable]
        self._start_missing()
        return [reply for reply in found if reply is not None]

    def _receive(self, process: _WorkerProcess) -> WorkerReply | None:
        try:
            reply: WorkerReply | EvenmatchError = process.pipe.recv()
        except _DISCONNECTED:
            return self._remove_dead(process)
        if isinstance(reply, EvenmatchError):
            raise reply
        if isinstance(reply, WorkerReady):
            process.ready = True
            self.startup.record_success()
        else:
            process.task = None
        return reply

    def _remove_dead(self, process: _WorkerProcess) -> WorkerReply | None:
        why, task = process.exit_reason(), process.task
        process.close()
        self.processes.remove(process)
        if not process.ready:
            self.startup.record_failure(why)
        return ShardFailed(task.number, why) if task is not None else None

    def _start_missing(self) -> None:
        while len(self.processes) < self.workers:
            self.processes.append(_start_process(self.job, self.threads))

    def close(self) -> None:
        for process in self.processes:
            process.close()


def _start_process(job: WorkerJob, threads: int) -> _WorkerProcess:
    if os.name != "posix":
        raise InputError("--on processes needs Linux or macOS; use --on ray here")
    ours, theirs = Pipe()
    errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
    environment = {**os.environ, **thread_environment(threads)}
    command = [sys.executable, "-m", "evenmatch.distributed.worker_process", str(theirs.fileno())]
    popen = subprocess.Popen(
        command,
        env=environment,
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=errors,
        stderr=errors,
    )
    theirs.close()
    process = _WorkerProcess(popen, ours, errors)
    with suppress(ConnectionError):  # the process died; the first `recv` reports it
        ours.send(job)
    return process
