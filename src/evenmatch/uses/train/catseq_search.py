"""Writing keyphrases by beam search: of several beginnings kept at a time, the best whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.uses.train.catseq_batch import Batch, batch_of
from evenmatch.uses.train.catseq_decoding import LONGEST, most_looked_at, written_words
from evenmatch.uses.train.catseq_model import CatSeq, Memory
from evenmatch.uses.train.catseq_vocabulary import END_ID, START_ID, Vocabulary
from evenmatch.uses.train.catseq_words import Example, Words


@dataclass(frozen=True, slots=True, eq=False)
class _Beam:
    """The likeliest beginnings so far, each with its words and the places looked at."""

    tokens: list[list[int]]
    looked: list[list[int]]
    chances: Any  # logarithms
    state: Any


def search(
    model: CatSeq,
    example: Example,
    vocabulary: Vocabulary,
    *,
    width: int,
    longest: int = LONGEST,
    length_power: float = 1.0,
) -> Words:
    """The best of what a search with so many beginnings at a time finds for one document.

    The best has the highest log-probability over its length to the power of `length_power`.
    """
    import torch

    batch = batch_of([example], vocabulary)
    ended: list[tuple[float, list[int], list[int]]] = []
    with torch.no_grad():
        memory = model.read(batch)
        beam = _Beam([[START_ID]], [[]], torch.zeros(1), memory.first)
        for _ in range(longest):
            beam = _widened(model, memory, beam, batch, width)
            beam = _without_ended(beam, ended, length_power)
            if not beam.tokens or len(ended) >= width:
                break
    if not ended:
        _without_ended(beam, ended, length_power, every=True)
    _, tokens, looked = max(ended, key=lambda each: each[0])
    return written_words(np.array([tokens]), np.array([looked]), batch, vocabulary)[0]


def _widened(model: CatSeq, memory: Memory, beam: _Beam, batch: Batch, width: int) -> _Beam:
    """The likeliest beginnings that are one word longer."""
    import torch

    last = torch.tensor([own[-1] for own in beam.tokens])
    rows = memory.at(torch.zeros(len(last), dtype=torch.long))
    probabilities, weights, state = model.step(rows, beam.state, last)
    chances = beam.chances[:, None] + probabilities.log()
    best = chances.flatten().topk(min(width, chances.numel()))
    finite = best.values > -torch.inf
    values, places = best.values[finite], best.indices[finite]
    parents, words = places // chances.shape[1], places % chances.shape[1]
    at = most_looked_at(weights, batch)
    pairs = list(zip(parents.tolist(), words.tolist(), strict=True))
    return _Beam(
        [[*beam.tokens[p], w] for p, w in pairs],
        [[*beam.looked[p], int(at[p])] for p, _ in pairs],
        values,
        state[:, parents],
    )


def _without_ended(
    beam: _Beam,
    ended: list[tuple[float, list[int], list[int]]],
    length_power: float,
    *,
    every: bool = False,
) -> _Beam:
    """The beginnings that have not ended; those that have go to `ended` with their scores."""
    going = []
    for row, (tokens, looked) in enumerate(zip(beam.tokens, beam.looked, strict=True)):
        if every or tokens[-1] == END_ID:
            score = float(beam.chances[row]) / len(looked) ** length_power
            ended.append((score, tokens[1:], looked))
        else:
            going.append(row)
    return _Beam(
        [beam.tokens[row] for row in going],
        [beam.looked[row] for row in going],
        beam.chances[going],
        beam.state[:, going],
    )
