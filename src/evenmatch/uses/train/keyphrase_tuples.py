"""Pairs of phrases with the score FG gives them: what the scorer of phrases learns from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.data.documents import Document
from evenmatch.errors import InputError
from evenmatch.scoring.keyphrase import KeyphraseMetric
from evenmatch.scoring.keyphrase_by_metric import texts_of
from evenmatch.scoring.keyphrase_lists import chosen, cut
from evenmatch.types import Array
from evenmatch.vectors.bare import Bare

# Of the pairs without a common word one per predicted phrase is kept, at half the weight: they are
# nine in ten, and the released code does the same.
_WRONG_WEIGHT = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Tuples:
    """Predicted phrases, gold phrases, how alike FG finds them, and how much each pair counts."""

    phrases: tuple[tuple[str, str], ...]
    scores: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.phrases)

    def at(self, numbers: Sequence[int]) -> Tuples:
        """Some of them."""
        at = np.asarray(numbers, dtype=np.intp)
        return Tuples(tuple(self.phrases[i] for i in at), self.scores[at], self.weights[at])

    def some(self, most: int, *, seed: int = 0) -> Tuples:
        """At most so many of them, at random."""
        if len(self) <= most:
            return self
        return self.at(np.random.default_rng(seed).permutation(len(self))[:most].tolist())


def tuples_of(documents: Sequence[Document], *, seed: int = 0) -> Tuples:
    """Every different pair of a predicted and a gold phrase of one document that share a word.

    And for each predicted phrase one gold phrase, at random, that shares none with it.
    """
    draw = np.random.default_rng(seed)
    found: dict[tuple[str, str], float] = {}
    for document in documents:
        for prediction in document.predictions:
            found.update(_scored(document, prediction, draw))
    if not found:
        raise InputError("there is no predicted phrase beside a gold one to learn from")
    scores = np.array([*found.values()])
    return Tuples(tuple(found), scores, np.where(scores > 0, 1.0, _WRONG_WEIGHT))


def _scored(
    document: Document, prediction: str, draw: np.random.Generator
) -> Iterator[tuple[tuple[str, str], float]]:
    metric = KeyphraseMetric()
    lists = chosen(cut(document.pair(prediction), metric.cleaning), "all", metric.cleaning, 0)
    x, y = Bare()([lists.candidate.units, lists.references[0].units])
    similarity = metric.similarity(x, y)
    rows, cols = texts_of(x.units), texts_of(y.units)
    for p, alike in zip(rows, similarity, strict=True):
        yield from (((p, cols[j]), float(alike[j])) for j in np.flatnonzero(alike))
        if (wrong := np.flatnonzero(alike == 0)).size:
            yield (p, cols[int(draw.choice(wrong))]), 0.0


def set_documents_apart(
    documents: Sequence[Document], share: float, seed: int
) -> tuple[list[Document], list[Document]]:
    """Documents to learn from, and others to judge by."""
    count = round(share * len(documents))
    if not 0 < count < len(documents):
        raise InputError(
            f"a share of {share} of {len(documents)} documents leaves none to learn from or to "
            "judge by; give more documents, or a share such as 0.1"
        )
    apart = set(np.random.default_rng(seed).permutation(len(documents))[:count].tolist())
    return (
        [each for i, each in enumerate(documents) if i not in apart],
        [each for i, each in enumerate(documents) if i in apart],
    )


def unseen(tuples: Tuples, seen: Tuples) -> Tuples:
    """The pairs of phrases that are not among those seen."""
    known = set(seen.phrases)
    return tuples.at([i for i, pair in enumerate(tuples.phrases) if pair not in known])
