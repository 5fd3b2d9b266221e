"""What written phrases are worth: a reward for the present ones and one for the absent ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from evenmatch.data.documents import SEPARATOR
from evenmatch.scoring.keyphrase import KeyphraseMetric
from evenmatch.scoring.keyphrase_by_metric import ByMetric
from evenmatch.scoring.together import as_metric
from evenmatch.types import Array, Metric, Pair, Score, Scores
from evenmatch.uses.train.catseq_vocabulary import PAD_ID, SPLIT_ID
from evenmatch.uses.train.catseq_words import Example, Words, groups_of

# As the authors reward: a phrase written twice is wrong, and nothing for nothing is half right.
_REWARDING = "duplicates='wrong', tokens='whitespace'"
REWARDS = {
    "f1": f"keyphrase_f1(k='G', {_REWARDING})",
    "fg": f"fg({_REWARDING}, both_empty=0.5)",
    "fb": f"fb({_REWARDING}, both_empty=0.5)",
}


def reward_metric(given: str | Metric) -> Metric:
    """The metric a reward is named by: f1, fg, fb, or any spec."""
    metric = as_metric(REWARDS.get(given, given) if isinstance(given, str) else given)
    if isinstance(metric, KeyphraseMetric) and isinstance(metric.similarity, ByMetric):
        # The same phrases come again and again in training, and comparing them takes a model.
        kept = ByMetric(Remembered(metric.similarity.metric))
        return dataclasses.replace(metric, similarity=kept)
    return metric


def rewards(metric: Metric, examples: Sequence[Example], written: Sequence[Words]) -> Array:
    """What the present and the absent phrases written for each document score: (documents, 2)."""
    pairs = []
    for example, words in zip(examples, written, strict=True):
        source = " ".join(example.words)
        for group, gold in zip(groups_of(words), (example.present, example.absent), strict=True):
            pairs.append(Pair(_joined(group), (_joined(gold),), source))
    values = [score.value for score in metric(pairs).segments]
    return np.array(values).reshape(-1, 2)


def returns(gains: Array, tokens: Array) -> Array:
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


def total(found: Array) -> float:
    """The mean over documents of the rewards of both groups together."""
    return float(found.sum(1).mean())


@dataclass(frozen=True)
class Remembered:
    """A metric that remembers what it said of two texts.

    At `most` pairs it forgets them all, so that a long training stays within memory.
    """

    base: Metric
    most: int = 500_000
    seen: dict[tuple[str, str], Score] = field(default_factory=dict, compare=False, repr=False)
    higher_is_better: ClassVar[bool] = True

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores in order; only pairs not seen before are scored."""
        keys = [(pair.candidate, pair.references[0]) for pair in pairs]
        new = {k: p for k, p in zip(keys, pairs, strict=True) if k not in self.seen}
        if len(self.seen) + len(new) > self.most:
            self.seen.clear()
            new = dict(zip(keys, pairs, strict=True))
        if new:
            scored = self.base([*new.values()]).segments
            self.seen.update(zip(new, scored, strict=True))
        return Scores(tuple(self.seen[key] for key in keys), self.signature)

    @property
    def bounds(self) -> tuple[float, float]:
        """Those of the metric."""
        return self.base.bounds

    @property
    def signature(self) -> str:
        """That of the metric: what is remembered is what it said."""
        return self.base.signature


def _joined(phrases: Sequence[Words]) -> str:
    return f" {SEPARATOR} ".join(map(" ".join, phrases))
