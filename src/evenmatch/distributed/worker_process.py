"""python -m evenmatch.distributed.worker_process PIPE: one worker, fed through a pipe it was born with."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from evenmatch.distributed.worker import Worker
from evenmatch.errors import EvenmatchError

_POLL_SECONDS = 0.5


def serve_pipe(pipe: Connection[Any, Any]) -> None:
    """Score what comes through the pipe until it closes."""
    try:
        worker = Worker(pipe.recv())
    except EvenmatchError as error:
        pipe.send(error)
        return
    pipe.send(worker.ready)
    while True:
        pipe.send(worker(pipe.recv()))


def exit_with_parent(parent: int) -> None:
    """End this process soon after its parent: what it would still find out, nobody reads."""
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)


def main() -> None:
    """Serve the pipe whose number was given."""
    # An interrupt goes to the whole group of processes; the driver alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=exit_with_parent, args=(os.getppid(),), daemon=True).start()
    with Connection(int(sys.argv[1])) as pipe:
        try:
            serve_pipe(pipe)
        except (EOFError, ConnectionError):
            return  # the driver has gone


if __name__ == "__main__":
    main()
