"""catSeq: a GRU encoder-decoder with attention and copying (Chan et al. 2019).

In `CatSeq.parts`, "reader" is the bidirectional encoder and "writer" the decoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenmatch.errors import InputError
from evenmatch.registry.parts import check_at_least
from evenmatch.training.keyphrases.sequences import PAD_ID, START_ID, UNKNOWN_ID, CatSeqBatch

_EPSILON = 1e-8  # added to probabilities, so that logarithms stay finite


@dataclass(frozen=True, slots=True)
class CatSeqShape:
    """Sizes of word vectors, of each encoder direction (half the decoder's), and of attention.

    The defaults are those of Chan et al. (2019).
    """

    embedding: int = 100
    hidden: int = 150
    attention: int = 300
    dropout: float = 0.1

    def __post_init__(self) -> None:
        check_at_least(1, embedding=self.embedding, hidden=self.hidden, attention=self.attention)
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}")


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Encoded documents: a hidden state and an attention key per word, and the word mask."""

    hidden_states: Any  # (documents, words, 2 hidden)
    keys: Any  # (documents, words, attention)
    mask: Any  # (documents, words)
    extended_ids: Any  # (documents, words)
    initial_state: Any  # (1, documents, 2 hidden), of the decoder
    unknown_count: int  # the largest number of out-of-vocabulary words in a document

    def select(self, rows: Any) -> Memory:
        """Return the documents with these indices, which may repeat."""
        by_document = (self.hidden_states, self.keys, self.mask, self.extended_ids)
        states, keys, mask, ids = (each[rows] for each in by_document)
        return Memory(states, keys, mask, ids, self.initial_state[:, rows], self.unknown_count)


class CatSeq:
    """The model: its modules, encoding, likelihood of targets, and single decoding steps."""

    def __init__(self, shape: CatSeqShape, words: int, *, seed: int = 0) -> None:
        self.shape, self.words = shape, words
        self.parts = _build_modules(shape, words, seed)

    def encode(self, batch: CatSeqBatch) -> Memory:
        """Encode documents; the result does not depend on the other documents of the batch."""
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

        vectors = self.parts["vectors"](batch.source_ids)
        packed = pack_padded_sequence(
            vectors, batch.lengths, batch_first=True, enforce_sorted=False
        )
        outputs, last = self.parts["reader"](packed)
        states, _ = pad_packed_sequence(outputs, batch_first=True)
        return Memory(
            states,
            self.parts["key"](states),
            torch.arange(vectors.shape[1]) < batch.lengths[:, None],
            batch.extended_ids,
            torch.cat([last[1], last[0]], dim=-1)[None],
            max(map(len, batch.unknown_words)),
        )

    def log_likelihood(self, memory: Memory, targets: Any, dropout_generator: Any = None) -> Any:
        """Return the log-probability of each target word, given the words before it.

        `dropout_generator` is the torch generator for dropout; without it, dropout is off.
        """
        import torch

        start = torch.full_like(targets[:, :1], START_ID)
        logits, attention, gate, _ = self._decode(
            memory, memory.initial_state, torch.cat([start, targets[:, :-1]], 1), dropout_generator
        )
        inside = targets < self.words
        column = torch.where(inside, targets, UNKNOWN_ID)[..., None]
        chosen = logits.gather(-1, column)[..., 0] - logits.logsumexp(-1)
        copied = attention * (memory.extended_ids[:, None, :] == targets[..., None])
        gate = gate[..., 0]
        return torch.log(gate * chosen.exp() * inside + (1 - gate) * copied.sum(-1) + _EPSILON)

    def step(self, memory: Memory, state: Any, tokens: Any) -> tuple[Any, Any, Any]:
        """Return the probabilities of the next word, the attention weights and the new state.

        Out-of-vocabulary words of the documents come after the vocabulary.
        """
        import torch

        outputs = self._decode(memory, state, tokens[:, None], None)
        logits, weights, gate = (each[:, 0] for each in outputs[:3])
        generated = gate * logits.softmax(-1)
        unknown = generated.new_zeros(len(tokens), memory.unknown_count)
        extended = torch.cat([generated, unknown], dim=-1)
        return (
            extended.scatter_add(1, memory.extended_ids, (1 - gate) * weights),
            weights,
            outputs[3],
        )

    def _decode(
        self, memory: Memory, state: Any, inputs: Any, dropout_generator: Any
    ) -> tuple[Any, Any, Any, Any]:
        """Return word logits, attention weights and generation gate of each step, and the state.

        The gate is the probability to generate a word and not to copy one.
        """
        import torch

        vectors = self.parts["vectors"](torch.where(inputs < self.words, inputs, UNKNOWN_ID))
        hidden, state = self.parts["writer"](vectors, state.contiguous())
        query = self.parts["query"](hidden)
        scores = self.parts["likeness"](torch.tanh(memory.keys[:, None] + query[:, :, None]))
        weights = scores[..., 0].masked_fill(~memory.mask[:, None], -torch.inf).softmax(-1)
        context = torch.cat([weights @ memory.hidden_states, hidden], dim=-1)
        mixed = self.parts["mixed"](context)
        if dropout_generator is not None and self.shape.dropout:
            keep = 1 - self.shape.dropout
            kept = torch.empty_like(mixed).bernoulli_(keep, generator=dropout_generator)
            mixed = mixed * kept / keep
        logits = self.parts["word"](mixed)
        logits[..., [PAD_ID, START_ID]] = -torch.inf  # never generated: decoding would not end
        gate = torch.sigmoid(self.parts["own"](torch.cat([context, vectors], dim=-1)))
        return logits, weights, gate, state


def _build_modules(shape: CatSeqShape, words: int, seed: int) -> Any:
    """Initialise the modules: torch's defaults, and small uniform word vectors."""
    import torch
    from torch import nn

    width = 2 * shape.hidden
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
                "writer": nn.GRU(shape.embedding, width, batch_first=True),
                "key": nn.Linear(width, shape.attention, bias=False),
                "query": nn.Linear(width, shape.attention),
                "likeness": nn.Linear(shape.attention, 1, bias=False),
                "mixed": nn.Linear(2 * width, width),
                "word": nn.Linear(width, words),
                "own": nn.Linear(2 * width + shape.embedding, 1),
            }
        )
