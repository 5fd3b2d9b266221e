"""Workers as local processes, connected to the driver by pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import IO, Any

from evenmatch.distributed.messages import ShardTask, WorkerJob, WorkerPool, WorkerReply
from evenmatch.distributed.pool import WorkerDied, available_cores, open_pool, thread_environment
from evenmatch.errors import EvenmatchError, InputError


@dataclass(frozen=True)
class Processes:
    """Runner with local processes.

    `workers` is the number of processes, `threads` that of each process. A 0 is replaced so that
    workers × threads is about the number of cores.
    """

    workers: int = 0
    threads: int = 0

    def __call__(self, job: WorkerJob) -> AbstractContextManager[WorkerPool]:
        """Open the pool; it is closed at the end of the block."""
        threads = self.threads or max(1, available_cores() // (self.workers or available_cores()))
        workers = self.workers or max(1, available_cores() // threads)
        return open_pool(_ProcessBackend(job, threads), workers)


@dataclass(frozen=True, eq=False)
class _WorkerProcess:
    """A worker: its process, its pipe, and the file of its error output."""

    popen: subprocess.Popen[bytes]
    pipe: Connection[Any, Any]
    errors: IO[bytes]

    def receive(self) -> WorkerReply | EvenmatchError | WorkerDied:
        try:
            reply: WorkerReply | EvenmatchError = self.pipe.recv()
        except (EOFError, ConnectionError):
            return WorkerDied(self._exit_reason())
        return reply

    def _exit_reason(self) -> str:
        """Describe how the process ended, with the last line of its output if any."""
        code = self.popen.wait()
        self.errors.seek(0)
        lines = self.errors.read().decode("utf-8", "replace").strip().splitlines()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return f"the worker {how}" + (f" ({lines[-1].strip()})" if lines else "")


@dataclass(frozen=True)
class _ProcessBackend:
    job: WorkerJob
    threads: int

    def start(self) -> _WorkerProcess:
        if os.name != "posix":
            raise InputError("--on processes needs Linux or macOS; use --on ray here")
        ours, theirs = Pipe()
        errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        module = "evenmatch.distributed.worker_process"
        popen = subprocess.Popen(
            [sys.executable, "-m", module, str(theirs.fileno())],
            env={**os.environ, **thread_environment(self.threads)},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
        )
        theirs.close()
        with suppress(ConnectionError):  # the process died; the first `recv` reports it
            ours.send(self.job)
        return _WorkerProcess(popen, ours, errors)

    def send(self, worker: _WorkerProcess, task: ShardTask) -> None:
        with suppress(ConnectionError):  # the worker died idle; `receive` reports it
            worker.pipe.send(task)

    def receive(
        self, workers: Collection[_WorkerProcess]
    ) -> list[tuple[_WorkerProcess, WorkerReply | EvenmatchError | WorkerDied]]:
        readable = wait([worker.pipe for worker in workers])
        return [(worker, worker.receive()) for worker in workers if worker.pipe in readable]

    def stop(self, worker: _WorkerProcess) -> None:
        worker.popen.kill()
        worker.popen.wait()
        worker.pipe.close()
        worker.errors.close()
