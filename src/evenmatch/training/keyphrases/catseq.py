"""catSeq: a GRU that reads a document both ways, and one that writes, attends and copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenmatch.errors import InputError
from evenmatch.training.keyphrases.sequences import PAD_ID, START_ID, UNKNOWN_ID, CatSeqBatch

_EPSILON = 1e-8  # no probability is less, so that its logarithm stays finite


@dataclass(frozen=True, slots=True)
class CatSeqShape:
    """Sizes of the word vectors, of each reader (the writer has both), of the attention.

    The usual ones are those of Chan et al. (2019).
    """

    embedding: int = 100
    hidden: int = 150
    attention: int = 300
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if min(self.embedding, self.hidden, self.attention) < 1:
            raise InputError(f"a generator's sizes must be at least 1, got {self}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}")


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Documents as read: a state per word, what attention compares, and where words are real."""

    hidden_states: Any  # (documents, words, 2 hidden)
    keys: Any  # (documents, words, attention)
    mask: Any  # (documents, words)
    extended_ids: Any  # (documents, words)
    initial_state: Any  # (1, documents, 2 hidden), the writer's first state
    unknown_count: int  # the most strange words that a document has

    def select(self, rows: Any) -> Memory:
        """Some of the documents, or some of them several times."""
        return Memory(
            self.hidden_states[rows],
            self.keys[rows],
            self.mask[rows],
            self.extended_ids[rows],
            self.initial_state[:, rows],
            self.unknown_count,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _DecoderOutput:
    """What the writer has at each step: scores of words, where it looks, how far it writes."""

    logits: Any  # (documents, steps, vocabulary)
    attention: Any  # (documents, steps, words)
    generation_gate: Any  # (documents, steps, 1), the share of words of its own


class CatSeq:
    """The generator's weights, and what it does with them."""

    def __init__(self, shape: CatSeqShape, words: int, *, seed: int = 0) -> None:
        self.shape, self.words = shape, words
        self.parts = _build_modules(shape, words, seed)

    def encode(self, batch: CatSeqBatch) -> Memory:
        """Read documents; one does not depend on those beside it."""
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

        known, copied = torch.from_numpy(batch.source_ids), torch.from_numpy(batch.extended_ids)
        lengths = torch.from_numpy(batch.lengths)
        packed = pack_padded_sequence(
            self.parts["vectors"](known), lengths, batch_first=True, enforce_sorted=False
        )
        found, last = self.parts["reader"](packed)
        states, _ = pad_packed_sequence(found, batch_first=True)
        return Memory(
            states,
            self.parts["key"](states),
            torch.arange(known.shape[1]) < lengths[:, None],
            copied,
            torch.cat([last[1], last[0]], dim=-1)[None],
            max(map(len, batch.unknown_words)),
        )

    def log_likelihood(self, memory: Memory, targets: Any, dropping: Any = None) -> Any:
        """The logarithm of the probability of each word to write, given those before it.

        `dropping` is a torch generator to drop by; without it nothing is dropped.
        """
        import torch

        start = torch.full_like(targets[:, :1], START_ID)
        looks, _ = self._decode(
            memory, memory.initial_state, torch.cat([start, targets[:, :-1]], 1), dropping
        )
        inside = targets < self.words
        column = torch.where(inside, targets, UNKNOWN_ID)[..., None]
        chosen = looks.logits.gather(-1, column)[..., 0] - looks.logits.logsumexp(-1)
        copied = looks.attention * (memory.extended_ids[:, None, :] == targets[..., None])
        own = looks.generation_gate[..., 0]
        return torch.log(own * chosen.exp() * inside + (1 - own) * copied.sum(-1) + _EPSILON)

    def step(self, memory: Memory, state: Any, tokens: Any) -> tuple[Any, Any, Any]:
        """The probabilities of the next word, where the writer looks, and its new state.

        Words that are strange here come after the vocabulary.
        """
        import torch

        looks, state = self._decode(memory, state, tokens[:, None], None)
        weights, own = looks.attention[:, 0], looks.generation_gate[:, 0]
        written = own * looks.logits[:, 0].softmax(-1)
        room = written.new_zeros(len(tokens), memory.unknown_count)
        both = torch.cat([written, room], dim=-1)
        return both.scatter_add(1, memory.extended_ids, (1 - own) * weights), weights, state

    def _decode(
        self, memory: Memory, state: Any, inputs: Any, dropping: Any
    ) -> tuple[_DecoderOutput, Any]:
        import torch

        vectors = self.parts["vectors"](torch.where(inputs < self.words, inputs, UNKNOWN_ID))
        written, state = self.parts["writer"](vectors, state.contiguous())
        query = self.parts["query"](written)
        alike = self.parts["likeness"](torch.tanh(memory.keys[:, None] + query[:, :, None]))[..., 0]
        weights = alike.masked_fill(~memory.mask[:, None], -torch.inf).softmax(-1)
        seen = torch.cat([weights @ memory.hidden_states, written], dim=-1)
        mixed = self._dropout(self.parts["mixed"](seen), dropping)
        logits = self.parts["word"](mixed)
        logits[..., [PAD_ID, START_ID]] = -torch.inf  # no word: who writes one would never end
        own = torch.sigmoid(self.parts["own"](torch.cat([seen, vectors], dim=-1)))
        return _DecoderOutput(logits, weights, own), state

    def _dropout(self, values: Any, dropping: Any) -> Any:
        if dropping is None or not self.shape.dropout:
            return values
        import torch

        keep = 1 - self.shape.dropout
        return values * torch.empty_like(values).bernoulli_(keep, generator=dropping) / keep


def _build_modules(shape: CatSeqShape, words: int, seed: int) -> Any:
    """The weights at first: torch's usual ones, and small ones for words."""
    import torch
    from torch import nn

    wide = 2 * shape.hidden
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        vectors = nn.Embedding(words, shape.embedding, padding_idx=PAD_ID)
        nn.init.uniform_(vectors.weight, -0.1, 0.1)
        vectors.weight.data[PAD_ID] = 0.0
        return nn.ModuleDict(
            {
                "vectors": vectors,
                "reader": nn.GRU(
                    shape.embedding, shape.hidden, bidirectional=True, batch_first=True
                ),
                "writer": nn.GRU(shape.embedding, wide, batch_first=True),
                "key": nn.Linear(wide, shape.attention, bias=False),
                "query": nn.Linear(wide, shape.attention),
                "likeness": nn.Linear(shape.attention, 1, bias=False),
                "mixed": nn.Linear(2 * wide, wide),
                "word": nn.Linear(wide, words),
                "own": nn.Linear(2 * wide + shape.embedding, 1),
            }
        )
