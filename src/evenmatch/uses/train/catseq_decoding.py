"""Writing keyphrases word by word: the likeliest each time, or one drawn by its probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from evenmatch.types import Array
from evenmatch.uses.train.catseq_batch import Batch
from evenmatch.uses.train.catseq_model import CatSeq, Memory
from evenmatch.uses.train.catseq_vocabulary import (
    END_ID,
    PAD_ID,
    START_ID,
    UNKNOWN_ID,
    Vocabulary,
)
from evenmatch.uses.train.catseq_words import Words

Choose: TypeAlias = Callable[[Any], Any]

LONGEST = 60  # words and marks written for a document


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What was written for each document: numbers up to the closing mark, and the words."""

    tokens: Array  # (documents, steps), padded
    words: tuple[Words, ...]


def likeliest(probabilities: Any) -> Any:
    """The number of the likeliest word of each row."""
    return probabilities.argmax(-1)


def drawn(generator: Any) -> Choose:
    """Words drawn by their probability, by a torch generator."""
    import torch

    return lambda probabilities: torch.multinomial(probabilities, 1, generator=generator)[:, 0]


def write(
    model: CatSeq,
    batch: Batch,
    vocabulary: Vocabulary,
    *,
    choose: Choose = likeliest,
    memory: Memory | None = None,
    longest: int = LONGEST,
) -> Written:
    """Write for each document, one word after the other, as `choose` has it.

    An unknown word is replaced by the document's word that was looked at most. `memory` is the
    batch as read, where that has been done before.
    """
    import torch

    with torch.no_grad():
        memory = memory or model.read(batch)
        state = memory.first
        tokens = torch.full((len(batch.examples),), START_ID)
        done = tokens == END_ID
        written, looked = [], []
        for _ in range(longest):
            probabilities, weights, state = model.step(memory, state, tokens)
            tokens = torch.where(done, PAD_ID, choose(probabilities))
            written.append(tokens)
            looked.append(most_looked_at(weights, batch))
            done |= tokens == END_ID
            if bool(done.all()):
                break
    found, places = (torch.stack(each, 1).numpy() for each in (written, looked))
    return Written(found, written_words(found, places, batch, vocabulary))


def most_looked_at(weights: Any, batch: Batch) -> Any:
    """The place of the word with the most attention; the closing mark is none."""
    import torch

    last = torch.from_numpy(batch.lengths)[:, None] - 1
    last = last.expand(len(weights), 1)  # one document may have several rows
    return weights.scatter(1, last, -1.0).argmax(-1)


def written_words(
    tokens: Array, looked: Array, batch: Batch, vocabulary: Vocabulary
) -> tuple[Words, ...]:
    """What the numbers stand for, unknown words replaced by those looked at."""
    found = []
    for row, example, strange in zip(
        range(len(tokens)), batch.examples, batch.strange, strict=True
    ):
        words = []
        for number, place in zip(tokens[row].tolist(), looked[row].tolist(), strict=True):
            if number == PAD_ID:
                break
            known = number != UNKNOWN_ID or not example.words
            words.append(vocabulary.word(number, strange) if known else example.words[place])
        found.append(tuple(words))
    return tuple(found)
