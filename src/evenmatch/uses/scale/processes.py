"""Workers as processes of this machine."""

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

from evenmatch.errors import EvenmatchError, InputError
from evenmatch.uses.scale.job import Failed, Job, Ready, Reply, Task
from evenmatch.uses.scale.pool import Pool, Starts, cores, thread_environment

_GONE = (EOFError, ConnectionError)


@dataclass(frozen=True)
class Processes:
    """So many processes of so many threads each; 0 workers is one for each core's threads."""

    workers: int = 0
    threads: int = 0

    @contextmanager
    def __call__(self, job: Job) -> Iterator[Pool]:
        """The pool, for as long as the block runs."""
        threads = self.threads or max(1, cores() // (self.workers or cores()))
        workers = self.workers or max(1, cores() // threads)
        pool = _ProcessPool(job, workers, threads)
        try:
            yield pool
        finally:
            pool.close()


@dataclass(eq=False)
class _Process:
    """One worker: its process, its pipe, what it is at, and where its errors go."""

    popen: subprocess.Popen[bytes]
    pipe: Connection[Any, Any]
    errors: IO[bytes]
    ready: bool = False
    task: Task | None = None

    def last_words(self) -> str:
        """How it ended, and the last line it wrote, if any."""
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
    job: Job
    workers: int
    threads: int
    starts: Starts = field(default_factory=Starts)
    processes: list[_Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._fill()

    def idle(self) -> int:
        return len(self._idle())

    def _idle(self) -> list[_Process]:
        return [p for p in self.processes if p.ready and p.task is None]

    def give(self, task: Task) -> None:
        process = self._idle()[0]
        process.task = task
        with suppress(ConnectionError):  # it died idle: the next reading says so of the task
            process.pipe.send(task)

    def replies(self) -> list[Reply]:
        """What has been said since; waits until something has."""
        told = wait([p.pipe for p in self.processes])
        found = [self._hear(p) for p in list(self.processes) if p.pipe in told]
        self._fill()
        return [reply for reply in found if reply is not None]

    def _hear(self, process: _Process) -> Reply | None:
        try:
            said: Reply | EvenmatchError = process.pipe.recv()
        except _GONE:
            return self._bury(process)
        if isinstance(said, EvenmatchError):
            raise said
        if isinstance(said, Ready):
            process.ready = True
            self.starts.went_well()
        else:
            process.task = None
        return said

    def _bury(self, process: _Process) -> Reply | None:
        why, task = process.last_words(), process.task
        process.close()
        self.processes.remove(process)
        if not process.ready:
            self.starts.died(why)
        return Failed(task.number, why) if task is not None else None

    def _fill(self) -> None:
        while len(self.processes) < self.workers:
            self.processes.append(_started(self.job, self.threads))

    def close(self) -> None:
        for process in self.processes:
            process.close()


def _started(job: Job, threads: int) -> _Process:
    if os.name != "posix":
        raise InputError("--on processes needs Linux or macOS; use --on ray here")
    ours, theirs = Pipe()
    errors = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the process lives
    environment = {**os.environ, **thread_environment(threads)}
    command = [sys.executable, "-m", "evenmatch.uses.scale.process", str(theirs.fileno())]
    popen = subprocess.Popen(
        command,
        env=environment,
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=errors,
        stderr=errors,
    )
    theirs.close()
    process = _Process(popen, ours, errors)
    with suppress(ConnectionError):  # it is found dead at the first reading
        ours.send(job)
    return process
