"""What TensorBoard shows of a run."""

from __future__ import annotations

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
