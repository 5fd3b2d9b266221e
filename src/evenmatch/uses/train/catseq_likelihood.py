"""Maximum likelihood: a generator learns to write the phrases people gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evenmatch.uses.train.catseq_batch import batch_of, epoch, random_of
from evenmatch.uses.train.catseq_course import Course, History, Keeper, take
from evenmatch.uses.train.catseq_model import CatSeq
from evenmatch.uses.train.catseq_vocabulary import PAD_ID, Vocabulary
from evenmatch.uses.train.catseq_words import Example

_JUDGED_AT_A_TIME = 32


def learn_likelihood(
    model: CatSeq,
    vocabulary: Vocabulary,
    examples: Sequence[Example],
    others: Sequence[Example],
    *,
    course: Course,
    keeper: Keeper,
    seed: int,
    enough: Callable[[], bool] = lambda: False,
) -> History:
    """Train the model in place; looks are at the mean log-probability of a word of `others`."""
    schedule = Schedule(examples, course.batch, seed)

    def step(number: int) -> tuple[Any, float]:
        batch = batch_of(schedule.chosen(number), vocabulary)
        loss = loss_of(model, batch, dropping=generator_of(seed, number))
        return loss, float(loss.detach())

    return take(
        model,
        course,
        keeper,
        steps=course.epochs * len(schedule),
        step=step,
        look=lambda: mean_likelihood(model, vocabulary, others),
        enough=enough,
    )


class Schedule:
    """Which examples each step sees; every epoch has its own order, settled by the seed."""

    def __init__(self, examples: Sequence[Example], size: int, seed: int) -> None:
        self._examples, self._size, self._seed = examples, size, seed
        self._lengths = [len(each.words) for each in examples]
        self._now = (-1, epoch(self._lengths, size, seed=seed, number=0))

    def __len__(self) -> int:
        return len(self._now[1])

    def chosen(self, number: int) -> list[Example]:
        """The examples of a step."""
        which, place = divmod(number, len(self))
        if self._now[0] != which:
            self._now = which, epoch(self._lengths, self._size, seed=self._seed, number=which)
        return [self._examples[i] for i in self._now[1][place]]


def loss_of(model: CatSeq, batch: Any, *, dropping: Any = None) -> Any:
    """Minus the log-probability of the words to write, over their number."""
    import torch

    targets = torch.from_numpy(batch.targets)
    real = targets != PAD_ID
    found = model.likelihood(model.read(batch), targets, dropping)
    return -(found * real).sum() / real.sum()


def mean_likelihood(model: CatSeq, vocabulary: Vocabulary, examples: Sequence[Example]) -> float:
    """The mean log-probability of a word to write, nothing dropped."""
    import torch

    total, count = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(examples), _JUDGED_AT_A_TIME):
            batch = batch_of(examples[start : start + _JUDGED_AT_A_TIME], vocabulary)
            words = int((batch.targets != PAD_ID).sum())
            total -= float(loss_of(model, batch)) * words
            count += words
    return total / count


def generator_of(*numbers: int) -> Any:
    """A torch generator that some numbers settle."""
    import torch

    return torch.Generator().manual_seed(int(random_of(*numbers).integers(2**62)))
