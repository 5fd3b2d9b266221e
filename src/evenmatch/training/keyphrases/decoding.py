"""Writing keyphrases word by word: the likeliest each time, or one drawn by its probability.

Writing keyphrases by beam search: of several beginnings kept at a time, the best whole.

A trained generator of keyphrases in a folder: written, read again, and put to use.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from evenmatch.data.documents import Document
from evenmatch.data.scores import atomic_write
from evenmatch.errors import DataError, InputError
from evenmatch.training.keyphrases.catseq import CatSeq, CatSeqShape, Memory
from evenmatch.training.keyphrases.sequences import (
    END_ID,
    PAD_ID,
    START_ID,
    UNKNOWN_ID,
    CatSeqBatch,
    KeyphraseExample,
    Vocabulary,
    WordSequence,
    make_catseq_batch,
    make_keyphrase_example,
    parse_phrases,
)
from evenmatch.types import Array

TokenChooser: TypeAlias = Callable[[Any], Any]


MAX_OUTPUT_LENGTH = 60  # words and marks written for a document


@dataclass(frozen=True, slots=True, eq=False)
class DecodedPhrases:
    """What was written for each document: numbers up to the closing mark, and the words."""

    tokens: Array  # (documents, steps), padded
    words: tuple[WordSequence, ...]


def choose_greedy(probabilities: Any) -> Any:
    """The number of the likeliest word of each row."""
    return probabilities.argmax(-1)


def make_sampler(generator: Any) -> TokenChooser:
    """Words drawn by their probability, by a torch generator."""
    import torch

    return lambda probabilities: torch.multinomial(probabilities, 1, generator=generator)[:, 0]


def decode_batch(
    model: CatSeq,
    batch: CatSeqBatch,
    vocabulary: Vocabulary,
    *,
    choose: TokenChooser = choose_greedy,
    memory: Memory | None = None,
    longest: int = MAX_OUTPUT_LENGTH,
) -> DecodedPhrases:
    """Write for each document, one word after the other, as `choose` has it.

    An unknown word is replaced by the document's word that was looked at most. `memory` is the
    batch as read, where that has been done before.
    """
    import torch

    with torch.no_grad():
        memory = memory or model.encode(batch)
        state = memory.initial_state
        tokens = torch.full((len(batch.examples),), START_ID)
        done = tokens == END_ID
        written, looked = [], []
        for _ in range(longest):
            probabilities, weights, state = model.step(memory, state, tokens)
            tokens = torch.where(done, PAD_ID, choose(probabilities))
            written.append(tokens)
            looked.append(most_attended_position(weights, batch))
            done |= tokens == END_ID
            if bool(done.all()):
                break
    found, places = (torch.stack(each, 1).numpy() for each in (written, looked))
    return DecodedPhrases(found, tokens_to_words(found, places, batch, vocabulary))


def most_attended_position(weights: Any, batch: CatSeqBatch) -> Any:
    """The place of the word with the most attention; the closing mark is none."""
    import torch

    last = torch.from_numpy(batch.lengths)[:, None] - 1
    last = last.expand(len(weights), 1)  # one document may have several rows
    return weights.scatter(1, last, -1.0).argmax(-1)


def tokens_to_words(
    tokens: Array, looked: Array, batch: CatSeqBatch, vocabulary: Vocabulary
) -> tuple[WordSequence, ...]:
    """What the numbers stand for, unknown words replaced by those looked at."""
    found = []
    for row, example, strange in zip(
        range(len(tokens)), batch.examples, batch.unknown_words, strict=True
    ):
        words = []
        for number, place in zip(tokens[row].tolist(), looked[row].tolist(), strict=True):
            if number == PAD_ID:
                break
            known = number != UNKNOWN_ID or not example.words
            words.append(vocabulary.word(number, strange) if known else example.words[place])
        found.append(tuple(words))
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Beam:
    """The likeliest beginnings so far, each with its words and the places looked at."""

    tokens: list[list[int]]
    attended: list[list[int]]
    log_probabilities: Any  # logarithms
    state: Any


def beam_search(
    model: CatSeq,
    example: KeyphraseExample,
    vocabulary: Vocabulary,
    *,
    width: int,
    longest: int = MAX_OUTPUT_LENGTH,
    length_power: float = 1.0,
) -> WordSequence:
    """The best of what a search with so many beginnings at a time finds for one document.

    The best has the highest log-probability over its length to the power of `length_power`.
    """
    import torch

    batch = make_catseq_batch([example], vocabulary)
    ended: list[tuple[float, list[int], list[int]]] = []
    with torch.no_grad():
        memory = model.encode(batch)
        beam = _Beam([[START_ID]], [[]], torch.zeros(1), memory.initial_state)
        for _ in range(longest):
            beam = _expand_beam(model, memory, beam, batch, width)
            beam = _remove_finished(beam, ended, length_power)
            if not beam.tokens or len(ended) >= width:
                break
    if not ended:
        _remove_finished(beam, ended, length_power, every=True)
    _, tokens, looked = max(ended, key=lambda each: each[0])
    return tokens_to_words(np.array([tokens]), np.array([looked]), batch, vocabulary)[0]


def _expand_beam(
    model: CatSeq, memory: Memory, beam: _Beam, batch: CatSeqBatch, width: int
) -> _Beam:
    """The likeliest beginnings that are one word longer."""
    import torch

    last = torch.tensor([own[-1] for own in beam.tokens])
    rows = memory.select(torch.zeros(len(last), dtype=torch.long))
    probabilities, weights, state = model.step(rows, beam.state, last)
    chances = beam.log_probabilities[:, None] + probabilities.log()
    best = chances.flatten().topk(min(width, chances.numel()))
    finite = best.values > -torch.inf
    values, places = best.values[finite], best.indices[finite]
    parents, words = places // chances.shape[1], places % chances.shape[1]
    at = most_attended_position(weights, batch)
    pairs = list(zip(parents.tolist(), words.tolist(), strict=True))
    return _Beam(
        [[*beam.tokens[p], w] for p, w in pairs],
        [[*beam.attended[p], int(at[p])] for p, _ in pairs],
        values,
        state[:, parents],
    )


def _remove_finished(
    beam: _Beam,
    ended: list[tuple[float, list[int], list[int]]],
    length_power: float,
    *,
    every: bool = False,
) -> _Beam:
    """The beginnings that have not ended; those that have go to `ended` with their scores."""
    going = []
    for row, (tokens, looked) in enumerate(zip(beam.tokens, beam.attended, strict=True)):
        if every or tokens[-1] == END_ID:
            score = float(beam.log_probabilities[row]) / len(looked) ** length_power
            ended.append((score, tokens[1:], looked))
        else:
            going.append(row)
    return _Beam(
        [beam.tokens[row] for row in going],
        [beam.attended[row] for row in going],
        beam.log_probabilities[going],
        beam.state[:, going],
    )


WEIGHTS_FILE, CONFIG_FILE = "weights.safetensors", "generator.json"


_BATCH_SIZE = 64


@dataclass(frozen=True, eq=False)
class KeyphraseGenerator:
    """A model and the words it knows; of a document it reads `longest` words."""

    model: CatSeq
    vocabulary: Vocabulary
    longest: int = 400

    def __call__(
        self, documents: Sequence[Document], *, beam: int = 1, steps: int = MAX_OUTPUT_LENGTH
    ) -> list[tuple[str, ...]]:
        """The keyphrases written for each document, present ones first, none twice.

        `beam` is how many beginnings a search keeps; with 1 the likeliest word is taken each time.
        A document without words gets no phrases.
        """
        if beam < 1 or steps < 1:
            raise InputError(f"beam and steps must be at least 1, got {beam} and {steps}")
        examples = [make_keyphrase_example(document, self.longest) for document in documents]
        full = {i: each for i, each in enumerate(examples) if each.words}
        found = self._generate([*full.values()], beam, steps)
        phrases = dict(zip(full, map(_unique_phrases, found), strict=True))
        return [phrases.get(i, ()) for i in range(len(examples))]

    def _generate(
        self, examples: Sequence[KeyphraseExample], beam: int, steps: int
    ) -> list[WordSequence]:
        if beam > 1:
            return [
                beam_search(self.model, each, self.vocabulary, width=beam, longest=steps)
                for each in examples
            ]
        # Documents of like length side by side: what is written does not depend on neighbours.
        order = sorted(range(len(examples)), key=lambda i: len(examples[i].words))
        found: dict[int, WordSequence] = {}
        for start in range(0, len(order), _BATCH_SIZE):
            some = order[start : start + _BATCH_SIZE]
            batch = make_catseq_batch([examples[i] for i in some], self.vocabulary)
            written = decode_batch(self.model, batch, self.vocabulary, longest=steps)
            found.update(zip(some, written.words, strict=True))
        return [found[i] for i in range(len(examples))]

    def save(self, folder: Path) -> None:
        """Write weights and words into a folder; the file of words comes last and completes it."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        weights = {k: v.contiguous() for k, v in self.model.parts.state_dict().items()}
        with atomic_write(str(folder / WEIGHTS_FILE)) as place:
            save_file(weights, place)
        facts = {
            "shape": dataclasses.asdict(self.model.shape),
            "longest": self.longest,
            "words": self.vocabulary.words,
        }
        with atomic_write(str(folder / CONFIG_FILE)) as place:
            Path(place).write_text(json.dumps(facts), "utf-8")


def _unique_phrases(words: Iterable[str]) -> tuple[str, ...]:
    present, absent = parse_phrases(words)
    return tuple(dict.fromkeys(map(" ".join, (*present, *absent))))


def load_generator(folder: str | PathLike[str]) -> KeyphraseGenerator:
    """The generator in a folder that training wrote."""
    place = Path(folder).expanduser()
    if not is_generator(place):
        raise DataError(
            f"there is no keyphrase generator in {place}; "
            f"train one with: evenmatch catseq train CONFIG.toml -o {place}"
        )
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        facts = json.loads((place / CONFIG_FILE).read_text("utf-8"))
        vocabulary = Vocabulary(tuple(facts["words"]))
        model = CatSeq(CatSeqShape(**facts["shape"]), len(vocabulary))
        model.parts.load_state_dict(load_file(place / WEIGHTS_FILE))
        return KeyphraseGenerator(model, vocabulary, int(facts["longest"]))
    except (ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise DataError(f"cannot read {place} ({type(error).__name__}); train it again") from None


def is_generator(folder: Path) -> bool:
    """Whether training has completed a generator there."""
    return (folder / CONFIG_FILE).is_file() and (folder / WEIGHTS_FILE).is_file()
