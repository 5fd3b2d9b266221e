"""Self-critical policy gradient: what is drawn counts as far as it beats what would be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evenmatch.types import Metric
from evenmatch.uses.train.catseq_batch import batch_of
from evenmatch.uses.train.catseq_course import Course, History, Keeper, take
from evenmatch.uses.train.catseq_decoding import LONGEST, drawn, write
from evenmatch.uses.train.catseq_likelihood import Schedule, generator_of
from evenmatch.uses.train.catseq_model import CatSeq
from evenmatch.uses.train.catseq_reward import returns, rewards, total
from evenmatch.uses.train.catseq_vocabulary import PAD_ID, Vocabulary
from evenmatch.uses.train.catseq_words import Example, Words

_JUDGED_AT_A_TIME = 64


def learn_reward(
    model: CatSeq,
    vocabulary: Vocabulary,
    examples: Sequence[Example],
    others: Sequence[Example],
    *,
    metric: Metric,
    course: Course,
    keeper: Keeper,
    seed: int,
    enough: Callable[[], bool] = lambda: False,
) -> History:
    """Train the model in place for the reward that `metric` gives.

    What a step tells is the mean reward of what was drawn; looks are at the same reward of what the
    model writes for `others`. Nothing is dropped, so that the gradient is that of the very policy
    that was drawn from.
    """
    schedule = Schedule(examples, course.batch, seed)

    def step(number: int) -> tuple[Any, float]:
        some, generator = schedule.chosen(number), generator_of(seed, number)
        return policy_loss(model, vocabulary, some, metric=metric, generator=generator)

    return take(
        model,
        course,
        keeper,
        steps=course.epochs * len(schedule),
        step=step,
        look=lambda: mean_reward(model, vocabulary, others, metric),
        enough=enough,
    )


def policy_loss(
    model: CatSeq,
    vocabulary: Vocabulary,
    examples: Sequence[Example],
    *,
    metric: Metric,
    generator: Any,
    longest: int = LONGEST,
) -> tuple[Any, float]:
    """The loss of words drawn for some documents, and the mean reward of what was drawn."""
    import torch

    batch = batch_of(examples, vocabulary)
    memory = model.read(batch)
    usual = write(model, batch, vocabulary, memory=memory, longest=longest)
    tried = write(model, batch, vocabulary, choose=drawn(generator), memory=memory, longest=longest)
    found = rewards(metric, [*examples, *examples], [*usual.words, *tried.words])
    baseline, gained = found[: len(examples)], found[len(examples) :]
    worth = torch.from_numpy(returns(gained - baseline, tried.tokens)).float()
    tokens = torch.from_numpy(tried.tokens)
    real = tokens != PAD_ID
    chances = model.likelihood(memory, tokens)
    return -(chances * worth * real).sum() / real.sum(), total(gained)


def mean_reward(
    model: CatSeq,
    vocabulary: Vocabulary,
    examples: Sequence[Example],
    metric: Metric,
    *,
    longest: int = LONGEST,
) -> float:
    """The mean reward of what the model writes, present and absent phrases together."""
    words: list[Words] = []
    for start in range(0, len(examples), _JUDGED_AT_A_TIME):
        batch = batch_of(examples[start : start + _JUDGED_AT_A_TIME], vocabulary)
        words += write(model, batch, vocabulary, longest=longest).words
    return total(rewards(metric, examples, words))
