"""python -m evenmatch.uses.scale.process PIPE: one worker, fed through a pipe it was born with."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from evenmatch.errors import EvenmatchError
from evenmatch.uses.scale.worker import Worker

_SECONDS_BETWEEN_LOOKS = 0.5


def serve(pipe: Connection[Any, Any]) -> None:
    """Score what comes through the pipe until it closes."""
    try:
        worker = Worker(pipe.recv())
    except EvenmatchError as error:
        pipe.send(error)
        return
    pipe.send(worker.ready)
    while True:
        pipe.send(worker(pipe.recv()))


def die_with(parent: int) -> None:
    """End this process soon after its parent: what it would still find out, nobody reads."""
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(1)


def main() -> None:
    """Serve the pipe whose number was given."""
    # An interrupt goes to the whole group of processes; the driver alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=die_with, args=(os.getppid(),), daemon=True).start()
    with Connection(int(sys.argv[1])) as pipe:
        try:
            serve(pipe)
        except (EOFError, ConnectionError):
            return  # the driver has gone


if __name__ == "__main__":
    main()
