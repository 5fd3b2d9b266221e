"""The objectives of catSeq: maximum likelihood and self-critical policy gradient.

The policy gradient weighs sampled words by how far their reward exceeds that of the greedy output.
Present and absent phrases get separate rewards, as in Chan et al. (2019).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from evenmatch.metrics.keyphrases.keyphrase_metric import KeyphraseMetric
from evenmatch.metrics.keyphrases.phrase_similarity import ByMetric
from evenmatch.protocols import Metric
from evenmatch.scoring.metric import as_metric
from evenmatch.training.keyphrases.catseq import (
    CatSeq,
    Memory,
    orthogonality_loss,
    salience_loss,
    semantic_coverage_loss,
)
from evenmatch.training.keyphrases.decoding import KeyphraseGenerator, decode_batch
from evenmatch.training.keyphrases.sequences import (
    PAD_ID,
    SPLIT_ID,
    CatSeqBatch,
    KeyphraseExample,
    WordSequence,
    join_pieces,
    make_catseq_batch,
    parse_phrases,
)
from evenmatch.types import Array, Pair, Score, Scores
from evenmatch.units.keyphrases import PHRASE_SEPARATOR

_LIKELIHOOD_BATCH = 32
_REWARD_BATCH = 64
_GROUP_SIZE = 8  # sampled outputs whose likelihood is computed together

# As in the authors' rewards, a repeated phrase is wrong, and two empty lists score one half.
_REWARD_OPTIONS = "duplicates='wrong', tokens='whitespace'"

REWARD_SPECS = {
    "f1": f"keyphrase_f1(k='G', {_REWARD_OPTIONS})",
    "fg": f"fg({_REWARD_OPTIONS}, both_empty=0.5)",
    "fb": f"fb({_REWARD_OPTIONS}, both_empty=0.5)",
}


@dataclass(frozen=True, slots=True)
class CatSeqStep:
    """What is recorded of a step: its loss or mean reward, and the outputs that it trained on.

    `entropy` is the mean negative log-probability of their tokens: of gold phrases, or of sampled
    ones, for which it estimates the entropy of the policy. `length` is their mean number of tokens.
    """

    value: float
    entropy: float
    length: float


@dataclass(frozen=True, eq=False)
class Objective:
    """What a stage of training optimises.

    `loss` maps the examples of a step and a torch generator to the loss to minimise and what to
    record; `evaluate` returns the quality on validation documents; `length` is the length by which
    examples are put together in batches.
    """

    loss: Callable[[Sequence[KeyphraseExample], Any], tuple[Any, CatSeqStep]]
    evaluate: Callable[[], float]
    length: Callable[[KeyphraseExample], int]


def likelihood_objective(
    generator: KeyphraseGenerator, validation: Sequence[KeyphraseExample]
) -> Objective:
    """Maximise the likelihood of gold phrases; evaluate the mean log-probability per word."""
    import torch

    model, vocabulary = generator.model, generator.vocabulary

    def loss(examples: Sequence[KeyphraseExample], draw: Any) -> tuple[Any, CatSeqStep]:
        batch = make_catseq_batch(examples, vocabulary)
        value, log_probabilities = training_loss(model, batch, draw)
        return value, _record_step(float(value.detach()), log_probabilities, batch.targets)

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

    # A step takes time by the longest document, and more by the longest target.
    return Objective(loss, evaluate, lambda each: len(each.words) + 4 * len(each.target))


def likelihood_loss(model: CatSeq, batch: CatSeqBatch, *, dropout_generator: Any = None) -> Any:
    """Return the mean negative log-probability of the target words."""
    memory = model.encode(batch, dropout_generator)
    log_probabilities = model.log_likelihood(memory, batch.targets, dropout_generator)
    return -_mean_over_words(log_probabilities, batch.targets)


def training_loss(model: CatSeq, batch: CatSeqBatch, dropout_generator: Any) -> tuple[Any, Any]:
    """Return the likelihood loss plus the other losses of the model, and the log-probabilities."""
    shape, targets = model.shape, batch.targets
    memory = model.encode(batch, dropout_generator)
    outputs = model.force_targets(memory, targets, dropout_generator)
    log_probabilities = model.target_log_probabilities(memory, targets, outputs)
    value = -_mean_over_words(log_probabilities, targets)
    if shape.salience:
        salience = salience_loss(memory.salience, memory.mask, batch.examples)
        value = value + shape.salience * salience
    if shape.orthogonality:
        value = value + shape.orthogonality * orthogonality_loss(outputs.hidden, targets)
    if shape.semantic_coverage:
        last = (targets != PAD_ID).sum(1) - 1
        written = outputs.target[range(len(targets)), last]
        documents = model.parts["document"](memory.initial_state.hidden[0])
        scores = written @ documents.T
        value = value + shape.semantic_coverage * semantic_coverage_loss(scores)
    return value, log_probabilities


def _record_step(value: float, log_probabilities: Any, tokens: Any) -> CatSeqStep:
    entropy = -float(_mean_over_words(log_probabilities.detach(), tokens))
    return CatSeqStep(value, entropy, float((tokens != PAD_ID).sum(1).float().mean()))


def _mean_over_words(values: Any, targets: Any) -> Any:
    real = targets != PAD_ID
    return (values * real).sum() / real.sum()


def reward_objective(
    generator: KeyphraseGenerator,
    validation: Sequence[KeyphraseExample],
    metric: Metric,
    *,
    train_reader: bool = True,
) -> Objective:
    """Maximise the reward that `metric` gives to sampled outputs; evaluate that of greedy ones.

    The loss is self-critical; the mean reward of the sampled outputs, present plus absent phrases,
    is recorded. There is no dropout, so that the gradient is that of the policy that was sampled
    from.
    """
    import torch

    model, vocabulary = generator.model, generator.vocabulary

    def loss(examples: Sequence[KeyphraseExample], draw: Any) -> tuple[Any, CatSeqStep]:
        batch = make_catseq_batch(examples, vocabulary)
        with torch.set_grad_enabled(train_reader):
            memory = model.encode(batch)
        greedy = decode_batch(model, batch, memory=memory)
        sampled = decode_batch(model, batch, memory=memory, generator=draw)
        rewards = group_rewards(metric, [*examples, *examples], [*greedy.words, *sampled.words])
        baseline, reward = rewards[: len(examples)], rewards[len(examples) :]
        returns = compute_returns(reward - baseline, sampled.tokens.numpy())
        log_probabilities = _log_likelihood_in_groups(model, memory, sampled.tokens)
        gained = log_probabilities * torch.from_numpy(returns).float()
        value = -_mean_over_words(gained, sampled.tokens)
        mean = float(reward.sum(1).mean())
        return value, _record_step(mean, log_probabilities, sampled.tokens)

    def evaluate() -> float:
        words: list[WordSequence] = []
        for start in range(0, len(validation), _REWARD_BATCH):
            batch = make_catseq_batch(validation[start : start + _REWARD_BATCH], vocabulary)
            words += decode_batch(model, batch).words
        return float(group_rewards(metric, validation, words).sum(1).mean())

    return Objective(loss, evaluate, lambda example: len(example.words))


def _log_likelihood_in_groups(model: CatSeq, memory: Memory, tokens: Any) -> Any:
    """Return the log-likelihood of outputs in groups of similar length, to save padding."""
    import torch

    lengths = (tokens != PAD_ID).sum(1)
    order = lengths.argsort(stable=True)
    found = torch.zeros(tokens.shape)
    for rows in order.split(_GROUP_SIZE):
        steps = int(lengths[rows[-1]])
        found[rows, :steps] = model.log_likelihood(memory.select(rows), tokens[rows, :steps])
    return found


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
        source = " ".join(join_pieces(example.words))
        gold_groups = [map(join_pieces, each) for each in (example.present, example.absent)]
        for group, gold in zip(parse_phrases(words), gold_groups, strict=True):
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


def _join_phrases(phrases: Iterable[WordSequence]) -> str:
    return f" {PHRASE_SEPARATOR} ".join(map(" ".join, phrases))
