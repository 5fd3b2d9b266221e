"""Examples side by side as tensors, padded to one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.types import Array
from evenmatch.uses.train.catseq_vocabulary import PAD_ID, Vocabulary
from evenmatch.uses.train.catseq_words import END, Example
from evenmatch.uses.train.lesson import Lesson, batches


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Documents with their closing marks, and what to write.

    `known` has `<unk>` where `copied` has a document's own number for a strange word.
    """

    examples: tuple[Example, ...]
    strange: tuple[tuple[str, ...], ...]
    known: Array  # (documents, words)
    copied: Array
    lengths: Array  # closing mark included
    targets: Array  # (documents, steps)


def batch_of(examples: Sequence[Example], vocabulary: Vocabulary) -> Batch:
    """Examples as one batch."""
    sources = [(*each.words, END) for each in examples]
    strange = tuple(map(vocabulary.strange, sources))
    copied = [vocabulary.extended(words, own) for words, own in zip(sources, strange, strict=True)]
    targets = [
        vocabulary.extended(each.target, own) for each, own in zip(examples, strange, strict=True)
    ]
    return Batch(
        tuple(examples),
        strange,
        padded([vocabulary.known(words) for words in sources]),
        padded(copied),
        np.array([len(words) for words in sources]),
        padded(targets),
    )


def padded(rows: Sequence[Sequence[int]]) -> Array:
    """Rows of numbers, made as long as the longest."""
    found = np.full((len(rows), max(map(len, rows))), PAD_ID, dtype=np.int64)
    for place, row in enumerate(rows):
        found[place, : len(row)] = row
    return found


def epoch(lengths: Sequence[int], size: int, *, seed: int, number: int) -> list[Array]:
    """The batches of one pass over examples, the same whenever it is asked for."""
    own = random_of(seed, number).integers(2**31)
    return list(batches(lengths, Lesson(batch=size, seed=int(own))))


def random_of(*numbers: int) -> np.random.Generator:
    """Random numbers that some numbers settle: no state has to be kept to go on with them."""
    return np.random.default_rng(np.random.SeedSequence(numbers))
