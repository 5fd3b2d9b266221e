"""Workers as local processes, connected to the driver by pipes.

A worker process is `python -m evenmatch.distributed.processes FD`, where FD is the file descriptor
of an inherited pipe, through which the job and tasks arrive.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import IO, Any

from evenmatch.distributed.pool import (
    BackendMessage,
    ShardTask,
    WorkerDied,
    WorkerJob,
    WorkerPool,
    available_cores,
    open_pool,
    thread_environment,
)
from evenmatch.distributed.worker import Worker
from evenmatch.errors import EvenmatchError, InputError

_POLL_SECONDS = 0.5


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

    def receive(self) -> BackendMessage:
        """Receive a reply, or how the process ended and the last line of its output if any."""
        try:
            reply: BackendMessage = self.pipe.recv()
        except (EOFError, ConnectionError):
            code = self.popen.wait()
            how = (
                f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
            )
            self.errors.seek(0)
            lines = self.errors.read().decode("utf-8", "replace").strip().splitlines()
            return WorkerDied(f"the worker {how}" + (f" ({lines[-1].strip()})" if lines else ""))
        return reply


@dataclass(frozen=True)
class _ProcessBackend:
    job: WorkerJob
    threads: int

    def start(self) -> _WorkerProcess:
        if os.name != "posix":
            raise InputError("--on processes needs Linux or macOS; use --on ray here")
        ours, theirs = Pipe()
        errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        module = "evenmatch.distributed.processes"
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
    ) -> list[tuple[_WorkerProcess, BackendMessage]]:
        readable = wait([worker.pipe for worker in workers])
        return [(worker, worker.receive()) for worker in workers if worker.pipe in readable]

    def stop(self, worker: _WorkerProcess) -> None:
        worker.popen.kill()
        worker.popen.wait()
        worker.pipe.close()
        worker.errors.close()


def main() -> None:
    """Serve the pipe with the file descriptor given on the command line."""
    # An interrupt is sent to the whole process group; only the driver handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    with Connection(int(sys.argv[1])) as pipe, suppress(EOFError, ConnectionError):
        try:
            worker = Worker(pipe.recv())
        except EvenmatchError as error:
            pipe.send(error)
            return
        pipe.send(worker.ready)
        while True:  # until the driver closes the pipe
            pipe.send(worker(pipe.recv()))


def _exit_with_parent(parent: int) -> None:
    """End this process soon after its parent ends, because nobody reads its results then."""
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
