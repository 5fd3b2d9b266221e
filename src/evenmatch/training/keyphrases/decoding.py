"""Generate keyphrases: `KeyphraseGenerator`, and greedy, sampled and beam-search decoding."""

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
from evenmatch.errors import DataError
from evenmatch.registry.parts import check_at_least
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

WEIGHTS_FILE, CONFIG_FILE = "weights.safetensors", "generator.json"
MAX_OUTPUT_LENGTH = 60  # words and special tokens generated for a document
_BATCH_SIZE = 64
TokenChooser: TypeAlias = Callable[[Any], Any]  # from probabilities to one token id per row


@dataclass(frozen=True, eq=False)
class KeyphraseGenerator:
    """A model and its vocabulary; it reads the first `longest` words of a document."""

    model: CatSeq
    vocabulary: Vocabulary
    longest: int = 400

    def __call__(
        self, documents: Sequence[Document], *, beam: int = 1, steps: int = MAX_OUTPUT_LENGTH
    ) -> list[tuple[str, ...]]:
        """Generate distinct keyphrases for each document, present ones first.

        `beam` is the width of the beam search; 1 is greedy decoding. `steps` limits the output. A
        document without words gets no phrases.
        """
        check_at_least(1, beam=beam, steps=steps)
        examples = [make_keyphrase_example(document, self.longest) for document in documents]
        nonempty = {i: each for i, each in enumerate(examples) if each.words}
        found = self._generate([*nonempty.values()], beam, steps)
        phrases = dict(zip(nonempty, map(_unique_phrases, found), strict=True))
        return [phrases.get(i, ()) for i in range(len(examples))]

    def _generate(
        self, examples: Sequence[KeyphraseExample], beam: int, steps: int
    ) -> list[WordSequence]:
        if beam > 1:
            return [
                beam_search(self.model, each, self.vocabulary, width=beam, longest=steps)
                for each in examples
            ]
        # Batches of similar length save padding; the output does not depend on the batch.
        order = sorted(range(len(examples)), key=lambda i: len(examples[i].words))
        found: dict[int, WordSequence] = {}
        for start in range(0, len(order), _BATCH_SIZE):
            rows = order[start : start + _BATCH_SIZE]
            batch = make_catseq_batch([examples[i] for i in rows], self.vocabulary)
            decoded = decode_batch(self.model, batch, self.vocabulary, longest=steps)
            found.update(zip(rows, decoded.words, strict=True))
        return [found[i] for i in range(len(examples))]

    def save(self, folder: Path) -> None:
        """Write weights and vocabulary to a folder; the vocabulary, written last, completes it."""
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


def load_generator(folder: str | PathLike[str]) -> KeyphraseGenerator:
    """Load a generator from the folder of a training run."""
    place = Path(folder).expanduser()
    if not is_generator(place):
        raise DataError(
            f"{place} holds no keyphrase generator; "
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
    """Return whether the folder holds a complete generator."""
    return (folder / CONFIG_FILE).is_file() and (folder / WEIGHTS_FILE).is_file()


@dataclass(frozen=True, slots=True, eq=False)
class DecodedPhrases:
    """The output for each document: token ids up to the closing token, and the words."""

    tokens: Array  # (documents, steps), padded
    words: tuple[WordSequence, ...]


def choose_greedy(probabilities: Any) -> Any:
    """Return the id of the most probable token of each row."""
    return probabilities.argmax(-1)


def make_sampler(generator: Any) -> TokenChooser:
    """Return a function that samples a token of each row with a torch generator."""
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
    """Generate the output of each document word by word, each chosen by `choose`.

    An unknown word is replaced by the document's word with the most attention. `memory` is the
    encoded batch, if it has been encoded before.
    """
    import torch

    with torch.no_grad():
        memory = memory or model.encode(batch)
        state = memory.initial_state
        tokens = torch.full((len(batch.examples),), START_ID)
        done = tokens == END_ID
        generated, attended = [], []
        for _ in range(longest):
            probabilities, weights, state = model.step(memory, state, tokens)
            tokens = torch.where(done, PAD_ID, choose(probabilities))
            generated.append(tokens)
            attended.append(most_attended_position(weights, batch))
            done |= tokens == END_ID
            if bool(done.all()):
                break
    ids, positions = (torch.stack(each, 1).numpy() for each in (generated, attended))
    return DecodedPhrases(ids, tokens_to_words(ids, positions, batch, vocabulary))


def beam_search(
    model: CatSeq,
    example: KeyphraseExample,
    vocabulary: Vocabulary,
    *,
    width: int,
    longest: int = MAX_OUTPUT_LENGTH,
    length_power: float = 1.0,
) -> WordSequence:
    """Return the best output that a beam search of this width finds for one document.

    The best output has the highest log-probability / length ** `length_power`.
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
    _, tokens, attended = max(ended, key=lambda each: each[0])
    return tokens_to_words(np.array([tokens]), np.array([attended]), batch, vocabulary)[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Beam:
    """The most probable prefixes so far, each with its tokens and most attended positions."""

    tokens: list[list[int]]
    attended: list[list[int]]
    log_probabilities: Any
    state: Any


def _expand_beam(
    model: CatSeq, memory: Memory, beam: _Beam, batch: CatSeqBatch, width: int
) -> _Beam:
    """Return the most probable prefixes that are one word longer."""
    import torch

    last = torch.tensor([tokens[-1] for tokens in beam.tokens])
    rows = memory.select(torch.zeros(len(last), dtype=torch.long))
    probabilities, weights, state = model.step(rows, beam.state, last)
    totals = beam.log_probabilities[:, None] + probabilities.log()
    best = totals.flatten().topk(min(width, totals.numel()))
    finite = best.values > -torch.inf
    values, indices = best.values[finite], best.indices[finite]
    parents, words = indices // totals.shape[1], indices % totals.shape[1]
    attended = most_attended_position(weights, batch)
    pairs = list(zip(parents.tolist(), words.tolist(), strict=True))
    return _Beam(
        [[*beam.tokens[p], w] for p, w in pairs],
        [[*beam.attended[p], int(attended[p])] for p, _ in pairs],
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
    """Move finished prefixes (or all, with `every`) to `ended` with their scores."""
    active = []
    for row, (tokens, attended) in enumerate(zip(beam.tokens, beam.attended, strict=True)):
        if every or tokens[-1] == END_ID:
            score = float(beam.log_probabilities[row]) / len(attended) ** length_power
            ended.append((score, tokens[1:], attended))
        else:
            active.append(row)
    return _Beam(
        [beam.tokens[row] for row in active],
        [beam.attended[row] for row in active],
        beam.log_probabilities[active],
        beam.state[:, active],
    )


def most_attended_position(weights: Any, batch: CatSeqBatch) -> Any:
    """Return the position of the word with the most attention, the closing token excluded."""
    import torch

    last = torch.from_numpy(batch.lengths)[:, None] - 1
    last = last.expand(len(weights), 1)  # one document may have several rows
    return weights.scatter(1, last, -1.0).argmax(-1)


def tokens_to_words(
    tokens: Array, attended: Array, batch: CatSeqBatch, vocabulary: Vocabulary
) -> tuple[WordSequence, ...]:
    """Convert token ids to words; unknown words become the document's most attended words."""
    found = []
    for row, example, unknown in zip(
        range(len(tokens)), batch.examples, batch.unknown_words, strict=True
    ):
        words = []
        for token, position in zip(tokens[row].tolist(), attended[row].tolist(), strict=True):
            if token == PAD_ID:
                break
            known = token != UNKNOWN_ID or not example.words
            words.append(vocabulary.word(token, unknown) if known else example.words[position])
        found.append(tuple(words))
    return tuple(found)


def _unique_phrases(words: Iterable[str]) -> tuple[str, ...]:
    present, absent = parse_phrases(words)
    return tuple(dict.fromkeys(map(" ".join, (*present, *absent))))
