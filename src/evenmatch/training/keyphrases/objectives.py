"""The objectives of catSeq: maximum likelihood and self-critical policy gradient.

The policy gradient weighs sampled words by how far their reward exceeds that of the greedy output.
Present and absent phrases get separate rewards, as in Chan et al. (2019).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from evenmatch.metrics.keyphrases.keyphrase_metric import KeyphraseMetric
from evenmatch.metrics.keyphrases.phrase_similarity import ByMetric
from evenmatch.protocols import Metric
from evenmatch.scoring.metric import as_metric
from evenmatch.training.keyphrases.catseq import CatSeq
from evenmatch.training.keyphrases.decoding import KeyphraseGenerator, decode_batch
from evenmatch.training.keyphrases.sequences import (
    PAD_ID,
    SPLIT_ID,
    CatSeqBatch,
    KeyphraseExample,
    WordSequence,
    make_catseq_batch,
    parse_phrases,
)
from evenmatch.types import Array, Pair, Score, Scores
from evenmatch.units.keyphrases import PHRASE_SEPARATOR

_LIKELIHOOD_BATCH = 32
_REWARD_BATCH = 64

# As in the authors' rewards, a repeated phrase is wrong, and two empty lists score one half.
_REWARD_OPTIONS = "duplicates='wrong', tokens='whitespace'"

REWARD_SPECS = {
    "f1": f"keyphrase_f1(k='G', {_REWARD_OPTIONS})",
    "fg": f"fg({_REWARD_OPTIONS}, both_empty=0.5)",
    "fb": f"fb({_REWARD_OPTIONS}, both_empty=0.5)",
}


@dataclass(frozen=True, eq=False)
class Objective:
    """What a stage of training optimises.

    `loss` maps the examples of a step and a torch generator to the loss to minimise and the number
    to record; `evaluate` returns the quality on validation documents.
    """

    loss: Callable[[Sequence[KeyphraseExample], Any], tuple[Any, float]]
    evaluate: Callable[[], float]


def likelihood_objective(
    generator: KeyphraseGenerator, validation: Sequence[KeyphraseExample]
) -> Objective:
    """Maximise the likelihood of gold phrases; evaluate the mean log-probability per word."""
    import torch

    model, vocabulary = generator.model, generator.vocabulary

    def loss(examples: Sequence[KeyphraseExample], draw: Any) -> tuple[Any, float]:
        batch = make_catseq_batch(examples, vocabulary)
        value = likelihood_loss(model, batch, dropout_generator=draw)
        return value, float(value.detach())

    def evaluate() -> float:
        total, count = 0.0, 0
        with torch.no_grad():
            for start in range(0, len(validation), _LIKELIHOOD_BATCH):
                some = validation[start : start + _LIKELIHOOD_BATCH]
                batch = make_catseq_batch(some, vocabulary)
                words = int((batch.targets != PAD_ID).sum())
                total -= float(likelihood_loss(model, batch)) * words
                count += words
        return total / count

    return Objective(loss, evaluate)


def likelihood_loss(model: CatSeq, batch: CatSeqBatch, *, dropout_generator: Any = None) -> Any:
    """Return the mean negative log-probability of the target words."""
    real = batch.targets != PAD_ID
    log_probabilities = model.log_likelihood(model.encode(batch), batch.targets, dropout_generator)
    return -(log_probabilities * real).sum() / real.sum()


def reward_objective(
    generator: KeyphraseGenerator, validation: Sequence[KeyphraseExample], metric: Metric
) -> Objective:
    """Maximise the reward that `metric` gives to sampled outputs; evaluate that of greedy ones.

    The loss is self-critical; the mean reward of the sampled outputs, present plus absent phrases,
    is recorded. There is no dropout, so that the gradient is that of the policy that was sampled
    from.
    """
    import torch

    model, vocabulary = generator.model, generator.vocabulary

    def loss(examples: Sequence[KeyphraseExample], draw: Any) -> tuple[Any, float]:
        batch = make_catseq_batch(examples, vocabulary)
        memory = model.encode(batch)
        greedy = decode_batch(model, batch, memory=memory)
        sampled = decode_batch(model, batch, memory=memory, generator=draw)
        rewards = group_rewards(metric, [*examples, *examples], [*greedy.words, *sampled.words])
        baseline, reward = rewards[: len(examples)], rewards[len(examples) :]
        returns = compute_returns(reward - baseline, sampled.tokens.numpy())
        real = sampled.tokens != PAD_ID
        log_probabilities = model.log_likelihood(memory, sampled.tokens)
        gained = log_probabilities * torch.from_numpy(returns).float()
        value = -(gained * real).sum() / real.sum()
        return value, float(reward.sum(1).mean())

    def evaluate() -> float:
        words: list[WordSequence] = []
        for start in range(0, len(validation), _REWARD_BATCH):
            batch = make_catseq_batch(validation[start : start + _REWARD_BATCH], vocabulary)
            words += decode_batch(model, batch).words
        return float(group_rewards(metric, validation, words).sum(1).mean())

    return Objective(loss, evaluate)


def reward_metric(given: str | Metric) -> Metric:
    """Return the metric of a reward: f1, fg, fb, or any spec."""
    metric = as_metric(REWARD_SPECS.get(given, given) if isinstance(given, str) else given)
    if isinstance(metric, KeyphraseMetric) and isinstance(metric.similarity, ByMetric):
        # The same phrases recur in training, and comparing them needs a forward pass.
        kept = ByMetric(MemoizedMetric(metric.similarity.metric))
        return dataclasses.replace(metric, similarity=kept)
    return metric


def group_rewards(
    metric: Metric, examples: Sequence[KeyphraseExample], outputs: Sequence[WordSequence]
) -> Array:
    """Return the rewards of the present and absent phrases of each output: (documents, 2)."""
    pairs = []
    for example, words in zip(examples, outputs, strict=True):
        source = " ".join(example.words)
        for group, gold in zip(
            parse_phrases(words), (example.present, example.absent), strict=True
        ):
            pairs.append(Pair(_join_phrases(group), (_join_phrases(gold),), source))
    values = [score.value for score in metric(pairs).segments]
    return np.array(values).reshape(-1, 2)


def compute_returns(gains: Array, tokens: Array) -> Array:
    """Return the return of each word: the sum of the rewards of groups that end at or after it.

    The present group ends at the separator token, or at the last word if there is none; the absent
    group at the last word. So words up to the separator get both rewards, later ones the second.
    """
    steps = np.arange(tokens.shape[1])
    last = (tokens != PAD_ID).sum(1) - 1
    is_split = tokens == SPLIT_ID
    split = np.where(is_split.any(1), is_split.argmax(1), last)
    present, absent = (steps <= end[:, None] for end in (split, last))
    return gains[:, :1] * present + gains[:, 1:] * absent


@dataclass(frozen=True)
class MemoizedMetric:
    """A metric that caches the scores of pairs of texts.

    The cache is cleared at `max_pairs` pairs, to bound its memory.
    """

    base: Metric
    max_pairs: int = 500_000
    cache: dict[tuple[str, str], Score] = field(default_factory=dict, compare=False, repr=False)
    higher_is_better: ClassVar[bool] = True

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Return the scores in order; only pairs that are not cached are scored."""
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
        """The bounds of the base metric."""
        return self.base.bounds

    @property
    def signature(self) -> str:
        """The signature of the base metric, whose scores the cache holds."""
        return self.base.signature


def torch_generator(*numbers: int) -> Any:
    """Return a torch generator seeded by these numbers."""
    import torch

    return torch.Generator().manual_seed(int(np.random.default_rng(numbers).integers(2**62)))


def _join_phrases(phrases: Sequence[WordSequence]) -> str:
    return f" {PHRASE_SEPARATOR} ".join(map(" ".join, phrases))
