"""What TensorBoard shows of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from evenmatch.errors import MissingExtraError
from evenmatch.uses.train.tune_course import History, Watch


@contextmanager
def logging_to(folder: Path) -> Iterator[Watch]:
    """A watcher that writes each step and look into event files.

    A run that goes on says first from which step, so that what an interrupted one had written
    beyond it is not shown twice.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError(
            "the logs of a run need tensorboard; install it with: pip install 'evenmatch[tune]'"
        ) from None
    writers: list[SummaryWriter] = []

    def log(history: History) -> None:
        number = len(history.told)
        if not writers:
            _wait_for_a_name_of_its_own(folder)
            writers.append(SummaryWriter(str(folder), purge_step=number))
        for name, value in asdict(history.told[-1]).items():
            writers[0].add_scalar(f"train/{name}", value, number)
        if history.looks and history.looks[-1][0] == number:
            writers[0].add_scalar("valid/bleu", history.looks[-1][1], number)

    try:
        yield log
    finally:
        for writer in writers:
            writer.close()


def _wait_for_a_name_of_its_own(folder: Path) -> None:
    """Wait while a new event file would not sort behind those there are.

    TensorBoard reads event files by name, and a name tells the second it was begun in: a run that
    goes on within the second it was stopped in might be read before what it goes on from.
    """
    begun = [int(each.name.split(".")[3]) for each in folder.glob("events.out.tfevents.*")]
    now = time.time()
    if int(now) in begun:
        time.sleep(int(now) + 1 - now)
