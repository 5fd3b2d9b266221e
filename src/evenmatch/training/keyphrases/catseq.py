"""catSeq: a GRU encoder-decoder with attention and copying (Chan et al. 2019).

In `CatSeq.parts`, "reader" is the bidirectional encoder and "writer" the decoder. The reader runs
on word vectors that are trained with it, or on the frozen states of a pretrained encoder. The other
baselines of the literature are settings of the same model (`CatSeqShape`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenmatch.errors import InputError
from evenmatch.registry import check_settings
from evenmatch.registry.parts import check_at_least
from evenmatch.training.keyphrases.encoder_states import FrozenEncoder, open_encoder
from evenmatch.training.keyphrases.output_history import (
    HISTORY_COUNT,
    OutputHistory,
    start_history,
)
from evenmatch.training.keyphrases.sequences import (
    NEXT_ID,
    PAD_ID,
    SPLIT_ID,
    START_ID,
    UNKNOWN_ID,
    CatSeqBatch,
    KeyphraseExample,
    Vocabulary,
    WordSequence,
    mark_present_phrases,
)
from evenmatch.training.keyphrases.token_hints import HINT_COUNT, TokenHints

_EPSILON = 1e-8  # added to probabilities, so that logarithms stay finite
_TITLE_SHARE = 0.5  # of a word's own state beside the one merged with the title, as in Chen et al.


@dataclass(frozen=True, slots=True)
class CatSeqShape:
    """Sizes of word vectors, of each encoder direction (half the decoder's), and of attention.

    The default sizes are those of Chan et al. (2019). With `encoder`, the name of a pretrained
    model, the reader runs on the states of its first `layer` blocks, for its word pieces or,
    without `pieces`, for words. `salience` is the weight of a loss by which the reader learns to
    tell the tokens of present phrases; attention then prefers them. `tied` uses the word vectors
    for the output as well. `hints` shows the reader what a candidate ranker knows of each token
    (`TokenHints`), and `history` shows the decoder where in the document its output occurs
    (`OutputHistory`). Without `recurrent` the reader is a linear layer, and with `dot` attention
    compares by dot products: both are faster.

    The variants: `title_guided` matches the text with its title (catSeqTG, Chen et al. 2019);
    `coverage` shows attention what has been attended to and `review` attends to earlier decoder
    states (catSeqCorr, Chen et al. 2018); `target_encoder` is the size of a GRU over the output,
    trained to tell its document from others with weight `semantic_coverage`, and `orthogonality`
    the weight of a penalty on similar decoder states at separators (catSeqD, Yuan et al. 2020).
    """

    embedding: int = 100
    hidden: int = 150
    attention: int = 300
    dropout: float = 0.1
    encoder: str = ""
    layer: int = 4
    pieces: bool = True
    salience: float = 0.0
    tied: bool = False
    hints: bool = False
    history: bool = False
    recurrent: bool = True
    dot: bool = False
    title_guided: bool = False
    coverage: bool = False
    review: bool = False
    target_encoder: int = 0
    semantic_coverage: float = 0.0
    orthogonality: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self)
        check_at_least(1, embedding=self.embedding, hidden=self.hidden, attention=self.attention)
        check_at_least(
            0,
            salience=self.salience,
            target_encoder=self.target_encoder,
            semantic_coverage=self.semantic_coverage,
            orthogonality=self.orthogonality,
        )
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}")
        if self.coverage and self.dot:
            raise InputError("coverage needs additive attention; leave out dot")
        if self.semantic_coverage and not self.target_encoder:
            raise InputError("semantic_coverage needs a target_encoder; give its size, such as 64")


@dataclass(frozen=True, slots=True, eq=False)
class DecoderState:
    """What the decoder remembers between steps; parts that the model does not use are None."""

    hidden: Any  # (1, documents, 2 hidden)
    target: Any = None  # (1, documents, target_encoder)
    attended: Any = None  # (documents, words): the sum of all attention weights so far
    past: Any = None  # (documents, steps, 2 hidden): the initial state and all states so far
    history: OutputHistory | None = None

    def select(self, rows: Any) -> DecoderState:
        """Return the state of the documents with these indices, which may repeat."""
        first = (None if each is None else each[:, rows] for each in (self.hidden, self.target))
        second = (None if each is None else each[rows] for each in (self.attended, self.past))
        history = None if self.history is None else self.history.select(rows)
        return replace(DecoderState(*first, *second), history=history)


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Encoded documents: a hidden state and an attention key per word, and the word mask."""

    hidden_states: Any  # (documents, words, 2 hidden)
    keys: Any  # (documents, words, attention)
    mask: Any  # (documents, words)
    extended_ids: Any  # (documents, words)
    initial_state: DecoderState
    unknown_count: int  # the largest number of out-of-vocabulary words in a document
    salience: Any = None  # (documents, words): the log-odds of being in a present phrase, if learnt

    def select(self, rows: Any) -> Memory:
        """Return the documents with these indices, which may repeat."""
        by_document = (self.hidden_states, self.keys, self.mask, self.extended_ids)
        states, keys, mask, ids = (each[rows] for each in by_document)
        salience = None if self.salience is None else self.salience[rows]
        initial = self.initial_state.select(rows)
        return Memory(states, keys, mask, ids, initial, self.unknown_count, salience)


@dataclass(frozen=True, slots=True, eq=False)
class DecoderOutputs:
    """The decoder's outputs at each step of (documents, steps), and its state after the last."""

    logits: Any  # of words
    attention: Any  # (documents, steps, words)
    gate: Any  # the probability to generate a word and not to copy one
    hidden: Any  # (documents, steps, 2 hidden)
    target: Any  # (documents, steps, target_encoder), or None
    state: DecoderState


class CatSeq:
    """The model: its modules, encoding, likelihood of targets, and single decoding steps."""

    def __init__(
        self, shape: CatSeqShape, words: int, *, seed: int = 0, hints: TokenHints | None = None
    ) -> None:
        self.shape, self.words, self.hints = shape, words, hints
        width = self.encoder.width if self.encoder else shape.embedding
        self.parts = _build_modules(shape, words, width, seed)
        # Added to logits: these tokens are never generated, or decoding would not end.
        forbidden = self.parts["word"].bias.new_zeros(words)
        forbidden[[PAD_ID, START_ID]] = -math.inf
        self._forbidden = forbidden

    @property
    def encoder(self) -> FrozenEncoder | None:
        """The pretrained encoder under the reader, if there is one."""
        shape = self.shape
        return open_encoder(shape.encoder, shape.layer, shape.pieces) if shape.encoder else None

    def split(self, words: WordSequence) -> WordSequence:
        """Split words into the tokens that the model reads and writes."""
        return self.encoder.split(words) if self.encoder else words

    def initialize_vectors(self, vocabulary: Vocabulary) -> None:
        """Start from the encoder's input embeddings, where there is one with vectors as wide."""
        import torch

        if self.encoder and self.encoder.width == self.shape.embedding:
            found = self.encoder.input_vectors(vocabulary.words)
            weights = self.parts["vectors"].weight.data
            for index, vector in enumerate(found):
                if vector is not None:
                    weights[index] = torch.from_numpy(vector)

    def encode(self, batch: CatSeqBatch, dropout_generator: Any = None) -> Memory:
        """Encode documents; the result does not depend on the other documents of the batch.

        `dropout_generator` is the torch generator for dropout on encoder states; without it,
        dropout is off.
        """
        import torch

        inputs = self._source_vectors(batch, dropout_generator)
        mask = torch.arange(inputs.shape[1]) < batch.lengths[:, None]
        if self.shape.recurrent:
            states, last = self._read("reader", inputs, batch.lengths)
        else:
            states = torch.tanh(self.parts["reader"](inputs))
            mean = (states * mask[..., None]).sum(1) / batch.lengths[:, None]
            last = torch.tanh(self.parts["first"](mean))[None]
        if self.shape.title_guided:
            states, last = self._match_title(states, inputs, batch)
        size, (count, length, _) = self.shape.target_encoder, states.shape
        initial_state = DecoderState(
            last,
            states.new_zeros(1, count, size) if size else None,
            states.new_zeros(count, length) if self.shape.coverage else None,
            last.transpose(0, 1) if self.shape.review else None,
            start_history(batch.extended_ids, self.words) if self.shape.history else None,
        )
        return Memory(
            states,
            self.parts["key"](states),
            mask,
            batch.extended_ids,
            initial_state,
            max(map(len, batch.unknown_words)),
            self.parts["salient"](states)[..., 0] if self.shape.salience else None,
        )

    def log_likelihood(self, memory: Memory, targets: Any, dropout_generator: Any = None) -> Any:
        """Return the log-probability of each target word, given the words before it.

        `dropout_generator` is the torch generator for dropout; without it, dropout is off.
        """
        outputs = self.force_targets(memory, targets, dropout_generator)
        return self.target_log_probabilities(memory, targets, outputs)

    def force_targets(
        self, memory: Memory, targets: Any, dropout_generator: Any = None
    ) -> DecoderOutputs:
        """Return the decoder's outputs when it is given the target words."""
        import torch

        start = torch.full_like(targets[:, :1], START_ID)
        inputs = torch.cat([start, targets[:, :-1]], 1)
        return self._decode(memory, memory.initial_state, inputs, dropout_generator)

    def target_log_probabilities(
        self, memory: Memory, targets: Any, outputs: DecoderOutputs
    ) -> Any:
        """Return the log-probability of each target word under the decoder's outputs."""
        import torch

        inside = targets < self.words
        column = torch.where(inside, targets, UNKNOWN_ID)[..., None]
        chosen = outputs.logits.gather(-1, column)[..., 0] - outputs.logits.logsumexp(-1)
        copied = outputs.attention * (memory.extended_ids[:, None, :] == targets[..., None])
        gate = outputs.gate[..., 0]
        return torch.log(gate * chosen.exp() * inside + (1 - gate) * copied.sum(-1) + _EPSILON)

    def step(
        self, memory: Memory, state: DecoderState, tokens: Any
    ) -> tuple[Any, Any, DecoderState]:
        """Return the probabilities of the next word, the attention weights and the new state.

        Out-of-vocabulary words of the documents come after the vocabulary.
        """
        import torch

        outputs = self._decode(memory, state, tokens[:, None], None)
        each_step = (outputs.logits, outputs.attention, outputs.gate)
        logits, weights, gate = (each[:, 0] for each in each_step)
        generated = gate * logits.softmax(-1)
        unknown = generated.new_zeros(len(tokens), memory.unknown_count)
        extended = torch.cat([generated, unknown], dim=-1)
        return (
            extended.scatter_add(1, memory.extended_ids, (1 - gate) * weights),
            weights,
            outputs.state,
        )

    def _source_vectors(self, batch: CatSeqBatch, dropout_generator: Any) -> Any:
        """Return the reader's input: word vectors or encoder states, and hints."""
        import torch

        def pad(rows: Iterable[Any]) -> Any:
            each = [torch.from_numpy(row) for row in rows]
            return torch.nn.utils.rnn.pad_sequence(each, batch_first=True).float()

        encoder = self.encoder
        if encoder:
            vectors = pad(encoder([each.words for each in batch.examples]))
            vectors = self._drop(vectors, dropout_generator)
        else:
            vectors = self.parts["vectors"](batch.source_ids)
        if not self.hints:
            return vectors
        return torch.cat([vectors, pad(self.hints(each.words) for each in batch.examples)], -1)

    def _read(self, name: str, vectors: Any, lengths: Any) -> tuple[Any, Any]:
        """Return the states of a bidirectional GRU and its last ones, backward and forward."""
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

        packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        outputs, last = self.parts[name](packed)
        states, _ = pad_packed_sequence(outputs, batch_first=True)
        return states, torch.cat([last[1], last[0]], dim=-1)[None]

    def _match_title(self, states: Any, inputs: Any, batch: CatSeqBatch) -> tuple[Any, Any]:
        """Merge each word with what it attends to in the title."""
        import torch

        lengths = torch.tensor([max(1, each.title_length) for each in batch.examples])
        title, _ = self._read("title", inputs[:, : int(lengths.max())], lengths)
        mask = torch.arange(title.shape[1]) < lengths[:, None]
        scores = self.parts["match"](states) @ title.transpose(1, 2)
        weights = scores.masked_fill(~mask[:, None], -torch.inf).softmax(-1)
        merged = torch.cat([states, weights @ title], dim=-1)
        merged, last = self._read("merge", merged, batch.lengths)
        return _TITLE_SHARE * states + (1 - _TITLE_SHARE) * merged, last

    def _decode(
        self, memory: Memory, state: DecoderState, inputs: Any, dropout_generator: Any
    ) -> DecoderOutputs:
        """Return the outputs of all steps: at once, or step by step if they need the last one's."""
        import torch

        if inputs.shape[1] == 1 or not (self.shape.coverage or self.shape.review):
            return self._decode_steps(memory, state, inputs, dropout_generator)
        found: list[DecoderOutputs] = []
        for number in range(inputs.shape[1]):
            one = inputs[:, number : number + 1]
            found.append(self._decode_steps(memory, state, one, dropout_generator))
            state = found[-1].state
        outputs = (
            torch.cat([getattr(each, name) for each in found], dim=1)
            for name in ("logits", "attention", "gate", "hidden")
        )
        logits, attention, gate, hidden = outputs
        target = (
            torch.cat([each.target for each in found], 1) if self.shape.target_encoder else None
        )
        return DecoderOutputs(logits, attention, gate, hidden, target, state)

    def _decode_steps(
        self, memory: Memory, state: DecoderState, tokens: Any, dropout_generator: Any
    ) -> DecoderOutputs:
        import torch

        vectors = self.parts["vectors"](torch.where(tokens < self.words, tokens, UNKNOWN_ID))
        inputs, target, target_state, history = vectors, None, None, None
        if self.shape.target_encoder:
            target, target_state = self.parts["target"](vectors, state.target.contiguous())
            inputs = torch.cat([vectors, target.detach()], dim=-1)
        hidden, last = self.parts["writer"](inputs, state.hidden.contiguous())
        scores = self._compare(memory, hidden, state.attended)
        if memory.salience is not None:
            scores = scores + memory.salience[:, None]
        if state.history is not None:
            features, used, history = _follow(state.history, memory.extended_ids, tokens)
            scores = scores + (self.parts["follow"](hidden)[:, :, None] * features).sum(-1)
        weights = scores.masked_fill(~memory.mask[:, None], -torch.inf).softmax(-1)
        seen, past = [weights @ memory.hidden_states, hidden], state.past
        if past is not None:
            review = self.parts["review"](hidden) @ past.transpose(1, 2)
            seen.append((review / math.sqrt(hidden.shape[-1])).softmax(-1) @ past)
            past = torch.cat([past, hidden], dim=1)
        context = torch.cat(seen, dim=-1)
        mixed = self._drop(self.parts["mixed"](context), dropout_generator)
        word = self.parts["word"]
        logits = torch.nn.functional.linear(mixed, word.weight, word.bias + self._forbidden)
        gate = torch.sigmoid(self.parts["own"](torch.cat([context, vectors], dim=-1)))
        if state.history is not None:
            logits = logits + self.parts["repeat"].weight[0] * used
        attended = None if state.attended is None else state.attended + weights.sum(1)
        after = DecoderState(last, target_state, attended, past, history)
        return DecoderOutputs(logits, weights, gate, hidden, target, after)

    def _compare(self, memory: Memory, hidden: Any, attended: Any) -> Any:
        """Return how well each word matches each decoder state: (documents, steps, words)."""
        import torch

        queries = self.parts["query"](hidden)
        if self.shape.dot:
            return queries @ memory.keys.transpose(1, 2) / math.sqrt(self.shape.attention)
        compared = memory.keys[:, None] + queries[:, :, None]
        if attended is not None:
            compared = compared + self.parts["covered"](attended[:, None, :, None])
        return self.parts["likeness"](torch.tanh(compared))[..., 0]

    def _drop(self, values: Any, dropout_generator: Any) -> Any:
        import torch

        if dropout_generator is None or not self.shape.dropout:
            return values
        keep = 1 - self.shape.dropout
        kept = torch.empty_like(values).bernoulli_(keep, generator=dropout_generator)
        return values * kept / keep


def orthogonality_loss(hidden: Any, targets: Any) -> Any:
    """Return the norm of the products of different decoder states that generate separators.

    The mean over documents of ||H Hᵀ ⊙ (1 - I)||, with the states of a document in the rows of H
    (Yuan et al. 2020).
    """
    import torch

    separators = ((targets == NEXT_ID) | (targets == SPLIT_ID))[..., None]
    rows = hidden * separators
    products = rows @ rows.transpose(1, 2)
    others = products * (1 - torch.eye(products.shape[1]))
    return (others.square().sum((1, 2)) + _EPSILON).sqrt().mean()


def salience_loss(log_odds: Any, mask: Any, examples: Sequence[KeyphraseExample]) -> Any:
    """Return the mean cross-entropy of telling the tokens of present phrases from others."""
    import torch

    labels = torch.zeros_like(log_odds)
    for row, example in zip(labels, examples, strict=True):
        row[: len(example.words)] = torch.tensor(mark_present_phrases(example))
    losses = torch.nn.functional.binary_cross_entropy_with_logits(
        log_odds, labels, reduction="none"
    )
    return (losses * mask).sum() / mask.sum()


def semantic_coverage_loss(scores: Any) -> Any:
    """Return the cross-entropy of finding the document of each output among those of the batch.

    `scores` has the outputs in rows and the documents, in the same order, in columns.
    """
    import torch

    return torch.nn.functional.cross_entropy(scores, torch.arange(len(scores)))


def _follow(history: OutputHistory, source_ids: Any, tokens: Any) -> tuple[Any, Any, OutputHistory]:
    """Return the features of the history and the used words after each token, and the history."""
    import torch

    features, used = [], []
    for column in tokens.T:
        history = history.append(source_ids, column)
        features.append(history.features())
        used.append(history.used)
    return torch.stack(features, 1), torch.stack(used, 1), history


def _build_modules(shape: CatSeqShape, words: int, source: int, seed: int) -> Any:
    """Initialise the modules: torch's defaults, and small uniform word vectors.

    `source` is the size of the reader's input vectors.
    """
    import torch
    from torch import nn

    width, embedding, target = 2 * shape.hidden, shape.embedding, shape.target_encoder
    source += HINT_COUNT if shape.hints else 0
    seen = (3 if shape.review else 2) * width  # context, decoder state, review
    mixed = embedding if shape.tied else width

    def reader(size: int) -> nn.GRU:
        return nn.GRU(size, shape.hidden, bidirectional=True, batch_first=True)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        vectors = nn.Embedding(words, embedding, padding_idx=PAD_ID)
        nn.init.uniform_(vectors.weight, -0.1, 0.1)
        vectors.weight.data[PAD_ID] = 0.0
        parts = {
            "vectors": vectors,
            "reader": reader(source) if shape.recurrent else nn.Linear(source, width),
            "writer": nn.GRU(embedding + target, width, batch_first=True),
            "key": nn.Linear(width, shape.attention, bias=False),
            "query": nn.Linear(width, shape.attention),
            "mixed": nn.Linear(seen, mixed),
            "word": nn.Linear(mixed, words),
            "own": nn.Linear(seen + embedding, 1),
        }
        if shape.tied:
            parts["word"].weight = vectors.weight
        if not shape.recurrent:
            parts["first"] = nn.Linear(width, width)
        if not shape.dot:
            parts["likeness"] = nn.Linear(shape.attention, 1, bias=False)
        if shape.history:
            parts["follow"] = nn.Linear(width, HISTORY_COUNT)
            repeat = parts["repeat"] = nn.Linear(1, 1, bias=False)
            nn.init.constant_(repeat.weight, -1.0)
        if shape.salience:
            parts["salient"] = nn.Linear(width, 1)
        if shape.title_guided:
            parts |= {"title": reader(source), "merge": reader(2 * width)}
            parts["match"] = nn.Linear(width, width, bias=False)
        if shape.coverage:
            parts["covered"] = nn.Linear(1, shape.attention, bias=False)
        if shape.review:
            parts["review"] = nn.Linear(width, width, bias=False)
        if target:
            parts["target"] = nn.GRU(embedding, target, batch_first=True)
            parts["document"] = nn.Linear(width, target)
        return nn.ModuleDict(parts)
