"""A worker process: `python -m evenmatch.distributed.worker_process FD`.

FD is the file descriptor of an inherited pipe, through which the job and tasks arrive.
"""

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
    """Receive a job, then score the tasks that arrive until the pipe is closed."""
    try:
        worker = Worker(pipe.recv())
    except EvenmatchError as error:
        pipe.send(error)
        return
    pipe.send(worker.ready)
    while True:
        pipe.send(worker(pipe.recv()))


def exit_with_parent(parent: int) -> None:
    """End this process soon after its parent ends, because nobody reads its results then."""
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)


def main() -> None:
    """Serve the pipe with the file descriptor given on the command line."""
    # An interrupt is sent to the whole process group; only the driver handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=exit_with_parent, args=(os.getppid(),), daemon=True).start()
    with Connection(int(sys.argv[1])) as pipe:
        try:
            serve_pipe(pipe)
        except (EOFError, ConnectionError):
            return  # the driver has ended


if __name__ == "__main__":
    main()
