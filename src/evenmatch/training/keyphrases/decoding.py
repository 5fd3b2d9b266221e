"""Generate keyphrases: `KeyphraseGenerator`, and greedy, sampled and beam-search decoding."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

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
    Vocabulary,
    WordSequence,
    doubles_word,
    make_catseq_batch,
    make_keyphrase_example,
    parse_phrases,
)
from evenmatch.training.keyphrases.token_hints import parse_token_hints

WEIGHTS_FILE, CONFIG_FILE = "weights.safetensors", "generator.json"
MAX_OUTPUT_LENGTH = 60  # words and special tokens generated for a document
_BATCH_SIZE = 64


@dataclass(frozen=True, eq=False)
class KeyphraseGenerator:
    """A model and its vocabulary; it reads the first `longest` words of a document."""

    model: CatSeq
    vocabulary: Vocabulary
    longest: int = 400

    def __call__(
        self,
        documents: Sequence[Document],
        *,
        beam: int = 1,
        steps: int = MAX_OUTPUT_LENGTH,
        doubled: bool = False,
    ) -> list[tuple[str, ...]]:
        """Generate distinct keyphrases for each document, present ones first.

        `beam` is the width of the beam search; 1 is greedy decoding. `steps` limits the output. A
        phrase in which a word follows itself is left out unless `doubled`. A document without words
        gets no phrases.
        """
        check_at_least(1, beam=beam, steps=steps)
        examples = [
            make_keyphrase_example(document, self.longest, self.model.split)
            for document in documents
        ]
        nonempty = [i for i, each in enumerate(examples) if each.words]
        # Batches of similar length save padding; the output does not depend on the batch.
        order = sorted(nonempty, key=lambda i: len(examples[i].words))
        size = 1 if beam > 1 else _BATCH_SIZE
        outputs: dict[int, WordSequence] = {}
        for rows in (order[start : start + size] for start in range(0, len(order), size)):
            batch = make_catseq_batch([examples[i] for i in rows], self.vocabulary)
            if beam > 1:
                outputs[rows[0]] = beam_search(self.model, batch, width=beam, longest=steps)
            else:
                decoded = decode_batch(self.model, batch, longest=steps)
                outputs.update(zip(rows, decoded.words, strict=True))
        phrases = (chain(*parse_phrases(outputs.get(i, ()))) for i in range(len(examples)))
        kept = ((p for p in each if doubled or not doubles_word(p)) for each in phrases)
        return [tuple(dict.fromkeys(map(" ".join, each))) for each in kept]

    def save(self, folder: Path) -> None:
        """Write weights and vocabulary to a folder; the vocabulary, written last, completes it."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        # Cloned, since a file cannot hold the shared weights of tied vectors.
        weights = {
            k: v.detach().clone().contiguous() for k, v in self.model.parts.state_dict().items()
        }
        with atomic_write(str(folder / WEIGHTS_FILE)) as place:
            save_file(weights, place)
        facts = {
            "shape": dataclasses.asdict(self.model.shape),
            "longest": self.longest,
            "words": self.vocabulary.words,
            "hints": self.model.hints.to_dict() if self.model.hints else None,
        }
        with atomic_write(str(folder / CONFIG_FILE)) as place:
            Path(place).write_text(json.dumps(facts), "utf-8")


def load_generator(folder: str | PathLike[str]) -> KeyphraseGenerator:
    """Load a generator from the folder of a training run."""
    place = Path(folder).expanduser()
    if not is_generator(place):
        inside = sorted(each for each in place.glob("*/") if is_generator(each))
        hint = (
            f"name one inside it: {', '.join(map(str, inside))}"
            if inside
            else f"train one with: evenmatch catseq train CONFIG.toml -o {place}"
        )
        raise DataError(f"{place} holds no keyphrase generator; {hint}")
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        facts = json.loads((place / CONFIG_FILE).read_text("utf-8"))
        vocabulary = Vocabulary(tuple(facts["words"]))
        hints = parse_token_hints(json.dumps(facts["hints"])) if facts["hints"] else None
        model = CatSeq(CatSeqShape(**facts["shape"]), len(vocabulary), hints=hints)
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

    tokens: Any  # (documents, steps), padded
    words: tuple[WordSequence, ...]


def decode_batch(
    model: CatSeq,
    batch: CatSeqBatch,
    *,
    generator: Any = None,
    memory: Memory | None = None,
    longest: int = MAX_OUTPUT_LENGTH,
) -> DecodedPhrases:
    """Generate the output of each document word by word: greedily, or sampled.

    `generator` is the torch generator to sample with. An unknown word is replaced by the document's
    word with the most attention. `memory` is the encoded batch, if it has been encoded before.
    """
    import torch

    count = len(batch.examples)
    tokens = torch.full((count, longest), PAD_ID)
    attended = torch.zeros((count, longest), dtype=torch.long)
    with torch.no_grad():
        memory = memory or model.encode(batch)
        rows, lengths = torch.arange(count), batch.lengths  # the documents that are decoded
        state, last = memory.initial_state, torch.full((count,), START_ID)
        going_on = last != END_ID
        for number in range(longest):
            probabilities, weights, state = model.step(memory, state, last)
            if generator is None:
                chosen = probabilities.argmax(-1)
            else:
                chosen = torch.multinomial(probabilities, 1, generator=generator)[:, 0]
            last = torch.where(going_on, chosen, PAD_ID)
            tokens[rows, number] = last
            attended[rows, number] = most_attended_position(weights, lengths)
            going_on &= last != END_ID
            left = int(going_on.sum())
            if not left:
                break
            if 2 * left <= len(rows):  # a few long outputs should not cost as much as all
                some = going_on.nonzero()[:, 0]
                memory, state = memory.select(some), state.select(some)
                rows, lengths, last, going_on = (e[some] for e in (rows, lengths, last, going_on))
    tokens, attended = tokens[:, : number + 1], attended[:, : number + 1]
    return DecodedPhrases(tokens, tokens_to_words(tokens, attended, batch))


def beam_search(
    model: CatSeq,
    batch: CatSeqBatch,
    *,
    width: int,
    longest: int = MAX_OUTPUT_LENGTH,
    length_power: float = 1.0,
) -> WordSequence:
    """Return the best output that a beam search of this width finds for a batch of one document.

    The best output has the highest log-probability / length ** `length_power`.
    """
    import torch

    ended: list[tuple[float, Any, Any]] = []  # score, tokens and attended positions of outputs
    with torch.no_grad():
        memory = model.encode(batch)
        # The prefixes so far, (prefixes, words), with their log-probabilities and decoder states.
        tokens, attended = torch.full((1, 1), START_ID), torch.zeros((1, 0), dtype=torch.long)
        totals, state = torch.zeros(1), memory.initial_state
        for length in range(1, longest + 1):
            rows = memory.select(torch.zeros(len(tokens), dtype=torch.long))
            probabilities, weights, state = model.step(rows, state, tokens[:, -1])
            longer = totals[:, None] + probabilities.log()
            best = longer.flatten().topk(min(width, longer.numel()))
            possible = best.values > -torch.inf
            totals, indices = best.values[possible], best.indices[possible]
            parents, words = indices // longer.shape[1], indices % longer.shape[1]
            positions = most_attended_position(weights, batch.lengths)[parents]
            tokens = torch.cat([tokens[parents], words[:, None]], 1)
            attended = torch.cat([attended[parents], positions[:, None]], 1)
            scores = [total / length**length_power for total in totals.tolist()]
            outputs = list(zip(scores, tokens, attended, strict=True))
            going_on = words != END_ID
            ended += [each for each, on in zip(outputs, going_on, strict=True) if not on]
            tokens, attended, totals = tokens[going_on], attended[going_on], totals[going_on]
            state = state.select(parents[going_on])
            if not len(tokens) or len(ended) >= width:
                break
    _, written, positions = max(ended or outputs, key=lambda each: each[0])
    return tokens_to_words(written[None, 1:], positions[None], batch)[0]


def most_attended_position(weights: Any, lengths: Any) -> Any:
    """Return the position of the word with the most attention, the closing token excluded."""
    # one document may have several rows
    last = (lengths[:, None] - 1).expand(len(weights), 1)
    return weights.scatter(1, last, -1.0).argmax(-1)


def tokens_to_words(tokens: Any, attended: Any, batch: CatSeqBatch) -> tuple[WordSequence, ...]:
    """Convert token ids to words; unknown words become the document's most attended words."""
    found = []
    every = (tokens.tolist(), attended.tolist(), batch.examples, batch.unknown_words)
    for ids, positions, example, unknown in zip(*every, strict=True):
        words = []
        for token, position in zip(ids, positions, strict=True):
            if token == PAD_ID:
                break
            known = token != UNKNOWN_ID or not example.words
            word = batch.vocabulary.word(token, unknown) if known else example.words[position]
            words.append(word)
        found.append(tuple(words))
    return tuple(found)
