"""Maximum likelihood: a generator learns to write the phrases people gave.

Self-critical policy gradient: what is drawn counts as far as it beats what would be written.

What written phrases are worth: a reward for the present ones and one for the absent ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from evenmatch.data.documents import PHRASE_SEPARATOR
from evenmatch.metrics.keyphrases.keyphrase_metric import KeyphraseMetric
from evenmatch.metrics.keyphrases.phrase_similarity import ByMetric
from evenmatch.protocols import Metric
from evenmatch.scoring.metric import as_metric
from evenmatch.training.keyphrases.catseq import CatSeq
from evenmatch.training.keyphrases.catseq_run import (
    CatSeqCheckpointer,
    CatSeqHistory,
    CatSeqTrainingSettings,
    run_catseq_loop,
)
from evenmatch.training.keyphrases.decoding import MAX_OUTPUT_LENGTH, decode_batch, make_sampler
from evenmatch.training.keyphrases.sequences import (
    PAD_ID,
    SPLIT_ID,
    KeyphraseExample,
    Vocabulary,
    WordSequence,
    epoch_batches,
    make_catseq_batch,
    numpy_generator,
    parse_phrases,
)
from evenmatch.types import Array, Pair, Score, Scores

_LIKELIHOOD_BATCH = 32


def maximize_likelihood(
    model: CatSeq,
    vocabulary: Vocabulary,
    examples: Sequence[KeyphraseExample],
    others: Sequence[KeyphraseExample],
    *,
    course: CatSeqTrainingSettings,
    keeper: CatSeqCheckpointer,
    seed: int,
    enough: Callable[[], bool] = lambda: False,
) -> CatSeqHistory:
    """Train the model in place; looks are at the mean log-probability of a word of `others`."""
    schedule = BatchSchedule(examples, course.batch, seed)

    def step(number: int) -> tuple[Any, float]:
        batch = make_catseq_batch(schedule.examples_at(number), vocabulary)
        loss = likelihood_loss(model, batch, dropping=torch_generator(seed, number))
        return loss, float(loss.detach())

    return run_catseq_loop(
        model,
        course,
        keeper,
        steps=course.epochs * len(schedule),
        step=step,
        look=lambda: mean_log_likelihood(model, vocabulary, others),
        enough=enough,
    )


class BatchSchedule:
    """Which examples each step sees; every epoch has its own order, settled by the seed."""

    def __init__(self, examples: Sequence[KeyphraseExample], size: int, seed: int) -> None:
        self._examples, self._size, self._seed = examples, size, seed
        self._lengths = [len(each.words) for each in examples]
        self._now = (-1, epoch_batches(self._lengths, size, seed=seed, number=0))

    def __len__(self) -> int:
        return len(self._now[1])

    def examples_at(self, number: int) -> list[KeyphraseExample]:
        """The examples of a step."""
        which, place = divmod(number, len(self))
        if self._now[0] != which:
            self._now = (
                which,
                epoch_batches(self._lengths, self._size, seed=self._seed, number=which),
            )
        return [self._examples[i] for i in self._now[1][place]]


def likelihood_loss(model: CatSeq, batch: Any, *, dropping: Any = None) -> Any:
    """Minus the log-probability of the words to write, over their number."""
    import torch

    targets = torch.from_numpy(batch.targets)
    real = targets != PAD_ID
    found = model.log_likelihood(model.encode(batch), targets, dropping)
    return -(found * real).sum() / real.sum()


def mean_log_likelihood(
    model: CatSeq, vocabulary: Vocabulary, examples: Sequence[KeyphraseExample]
) -> float:
    """The mean log-probability of a word to write, nothing dropped."""
    import torch

    total, count = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(examples), _LIKELIHOOD_BATCH):
            batch = make_catseq_batch(examples[start : start + _LIKELIHOOD_BATCH], vocabulary)
            words = int((batch.targets != PAD_ID).sum())
            total -= float(likelihood_loss(model, batch)) * words
            count += words
    return total / count


def torch_generator(*numbers: int) -> Any:
    """A torch generator that some numbers settle."""
    import torch

    return torch.Generator().manual_seed(int(numpy_generator(*numbers).integers(2**62)))


_REWARD_BATCH = 64


def maximize_reward(
    model: CatSeq,
    vocabulary: Vocabulary,
    examples: Sequence[KeyphraseExample],
    others: Sequence[KeyphraseExample],
    *,
    metric: Metric,
    course: CatSeqTrainingSettings,
    keeper: CatSeqCheckpointer,
    seed: int,
    enough: Callable[[], bool] = lambda: False,
) -> CatSeqHistory:
    """Train the model in place for the reward that `metric` gives.

    What a step tells is the mean reward of what was drawn; looks are at the same reward of what the
    model writes for `others`. Nothing is dropped, so that the gradient is that of the very policy
    that was drawn from.
    """
    schedule = BatchSchedule(examples, course.batch, seed)

    def step(number: int) -> tuple[Any, float]:
        some, generator = schedule.examples_at(number), torch_generator(seed, number)
        return policy_loss(model, vocabulary, some, metric=metric, generator=generator)

    return run_catseq_loop(
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
    examples: Sequence[KeyphraseExample],
    *,
    metric: Metric,
    generator: Any,
    longest: int = MAX_OUTPUT_LENGTH,
) -> tuple[Any, float]:
    """The loss of words drawn for some documents, and the mean reward of what was drawn."""
    import torch

    batch = make_catseq_batch(examples, vocabulary)
    memory = model.encode(batch)
    usual = decode_batch(model, batch, vocabulary, memory=memory, longest=longest)
    tried = decode_batch(
        model, batch, vocabulary, choose=make_sampler(generator), memory=memory, longest=longest
    )
    found = group_rewards(metric, [*examples, *examples], [*usual.words, *tried.words])
    baseline, gained = found[: len(examples)], found[len(examples) :]
    worth = torch.from_numpy(compute_returns(gained - baseline, tried.tokens)).float()
    tokens = torch.from_numpy(tried.tokens)
    real = tokens != PAD_ID
    chances = model.log_likelihood(memory, tokens)
    return -(chances * worth * real).sum() / real.sum(), mean_total_reward(gained)


def mean_reward(
    model: CatSeq,
    vocabulary: Vocabulary,
    examples: Sequence[KeyphraseExample],
    metric: Metric,
    *,
    longest: int = MAX_OUTPUT_LENGTH,
) -> float:
    """The mean reward of what the model writes, present and absent phrases together."""
    words: list[WordSequence] = []
    for start in range(0, len(examples), _REWARD_BATCH):
        batch = make_catseq_batch(examples[start : start + _REWARD_BATCH], vocabulary)
        words += decode_batch(model, batch, vocabulary, longest=longest).words
    return mean_total_reward(group_rewards(metric, examples, words))


# As the authors reward: a phrase written twice is wrong, and nothing for nothing is half right.
_REWARD_OPTIONS = "duplicates='wrong', tokens='whitespace'"


REWARD_SPECS = {
    "f1": f"keyphrase_f1(k='G', {_REWARD_OPTIONS})",
    "fg": f"fg({_REWARD_OPTIONS}, both_empty=0.5)",
    "fb": f"fb({_REWARD_OPTIONS}, both_empty=0.5)",
}


def reward_metric(given: str | Metric) -> Metric:
    """The metric a reward is named by: f1, fg, fb, or any spec."""
    metric = as_metric(REWARD_SPECS.get(given, given) if isinstance(given, str) else given)
    if isinstance(metric, KeyphraseMetric) and isinstance(metric.similarity, ByMetric):
        # The same phrases come again and again in training, and comparing them takes a model.
        kept = ByMetric(MemoizedMetric(metric.similarity.metric))
        return dataclasses.replace(metric, similarity=kept)
    return metric


def group_rewards(
    metric: Metric, examples: Sequence[KeyphraseExample], written: Sequence[WordSequence]
) -> Array:
    """What the present and the absent phrases written for each document score: (documents, 2)."""
    pairs = []
    for example, words in zip(examples, written, strict=True):
        source = " ".join(example.words)
        for group, gold in zip(
            parse_phrases(words), (example.present, example.absent), strict=True
        ):
            pairs.append(Pair(_join_phrases(group), (_join_phrases(gold),), source))
    values = [score.value for score in metric(pairs).segments]
    return np.array(values).reshape(-1, 2)


def compute_returns(gains: Array, tokens: Array) -> Array:
    """What each word gains: rewards are paid where a group ends, to all words up to there.

    The present group ends at its mark, or at the last word where the mark was never written; the
    absent group at the last word. So words up to the mark gain both, and later ones the second.
    """
    steps = np.arange(tokens.shape[1])
    last = (tokens != PAD_ID).sum(1) - 1
    marked = tokens == SPLIT_ID
    split = np.where(marked.any(1), marked.argmax(1), last)
    paid = [steps <= end[:, None] for end in (split, last)]
    return gains[:, :1] * paid[0] + gains[:, 1:] * paid[1]


def mean_total_reward(found: Array) -> float:
    """The mean over documents of the rewards of both groups together."""
    return float(found.sum(1).mean())


@dataclass(frozen=True)
class MemoizedMetric:
    """A metric that remembers what it said of two texts.

    At `most` pairs it forgets them all, so that a long training stays within memory.
    """

    base: Metric
    max_pairs: int = 500_000
    cache: dict[tuple[str, str], Score] = field(default_factory=dict, compare=False, repr=False)
    higher_is_better: ClassVar[bool] = True

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores in order; only pairs not seen before are scored."""
        keys = [(pair.candidate, pair.references[0]) for pair in pairs]
        new = {k: p for k, p in zip(keys, pairs, strict=True) if k not in self.cache}
        if len(self.cache) + len(new) > self.max_pairs:
            self.cache.clear()
            new = dict(zip(keys, pairs, strict=True))
        if new:
            scored = self.base([*new.values()]).segments
            self.cache.update(zip(new, scored, strict=True))
        return Scores(tuple(self.cache[key] for key in keys), self.signature)

    @property
    def bounds(self) -> tuple[float, float]:
        """Those of the metric."""
        return self.base.bounds

    @property
    def signature(self) -> str:
        """That of the metric: what is remembered is what it said."""
        return self.base.signature


def _join_phrases(phrases: Sequence[WordSequence]) -> str:
    return f" {PHRASE_SEPARATOR} ".join(map(" ".join, phrases))
