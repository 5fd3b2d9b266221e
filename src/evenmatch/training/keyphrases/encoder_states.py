"""Tokens and frozen hidden states of a pretrained encoder, for catSeq's reader.

The lower blocks of the encoder are never trained. Their output for a document is the same in every
epoch and stage, so it is computed once and kept: in memory while a model is trained, and in the
vector cache on disk (EVENMATCH_CACHE).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from evenmatch.errors import InputError
from evenmatch.models.backbone import (
    HiddenStates,
    OpenBackbone,
    PretrainedBackbone,
    load_input_embeddings,
)
from evenmatch.models.checkpoints import count_layers, read_config
from evenmatch.registry import CallContext
from evenmatch.training.keyphrases.sequences import (
    CONTINUATION,
    DIGIT_TOKEN,
    SPECIAL_TOKENS,
    WordSequence,
    join_pieces,
)
from evenmatch.types import Array, Cache, Run

_DIGIT_PIECE = "0"  # what the encoder reads for a number
_CHUNK = 256  # documents encoded together


@dataclass(frozen=True, eq=False)
class FrozenEncoder:
    """The first `layer` blocks of a pretrained encoder: the tokens of texts, and their states.

    Tokens are its word pieces, where continued pieces of a word begin with `##`, or words, whose
    state is the mean over their pieces. States are kept in half precision.
    """

    context: CallContext
    backbone: OpenBackbone
    layer: int
    pieces: bool
    kept: dict[WordSequence, Array] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A hash of the checkpoint."""
        return str(self.backbone.checkpoint.digest)

    @property
    def width(self) -> int:
        """The size of a state."""
        return int(read_config(self.backbone.checkpoint.folder)["hidden_size"])

    @property
    def max_pieces(self) -> int:
        """The number of pieces that fit into the encoder, besides its special tokens."""
        return self.backbone.tokenizer.max_text_tokens

    def split(self, words: WordSequence) -> WordSequence:
        """Split words into tokens, in the encoder's spelling; a number stays one token."""
        text = self._normalize(" ".join(map(_encoder_word, words)))
        if not self.pieces:
            return tuple(DIGIT_TOKEN if word == _DIGIT_PIECE else word for word in text.split())
        found = self.backbone.tokenizer([text])[0]
        pieces = []
        for place, (start, end) in enumerate(found.spans.tolist()):
            if place in found.special_tokens:
                continue
            first = start == 0 or text[start - 1] == " "
            last = end == len(text) or text[end] == " "
            piece = text[start:end]
            if first and last and piece == _DIGIT_PIECE:
                piece = DIGIT_TOKEN
            pieces.append(piece if first else CONTINUATION + piece)
        return tuple(pieces)

    def keep(self, sequences: Iterable[WordSequence]) -> None:
        """Compute the states of these tokens and keep them for later calls."""
        new = [each for each in dict.fromkeys(sequences) if each not in self.kept]
        for start in range(0, len(new), _CHUNK):
            some = new[start : start + _CHUNK]
            self.kept.update(zip(some, self._encode(some), strict=True))

    def __call__(self, sequences: Sequence[WordSequence]) -> list[Array]:
        """Return the states of each sequence: one for each token and for the closing one."""
        new = [each for each in dict.fromkeys(sequences) if each not in self.kept]
        found = dict(zip(new, self._encode(new), strict=True)) if new else {}
        return [self.kept[each] if each in self.kept else found[each] for each in sequences]

    def input_vectors(self, tokens: Sequence[str]) -> list[Array | None]:
        """Return the encoder's input embedding of each token, None for special tokens.

        That of a word is the mean over its pieces.
        """
        table = load_input_embeddings(self.backbone.checkpoint)
        to_id = self.backbone.tokenizer.backend.token_to_id
        unknown = self.backbone.tokenizer.unknown_id
        found: list[Array | None] = []
        for token in map(_encoder_word, tokens):
            ids = [to_id(token)]
            if ids == [None]:
                ids = [i for i in self._piece_ids(token) if i != unknown]
            special = not ids or token in SPECIAL_TOKENS
            found.append(None if special else table[ids].mean(0))
        return found

    def _encode(self, sequences: Sequence[WordSequence]) -> list[Array]:
        texts = [" ".join(map(_encoder_word, join_pieces(each))) for each in sequences]
        self.context.start_chunk()  # forget the states of the last texts
        states = [(each, each.layers[self.layer]) for each in self.backbone.hidden_states(texts)]
        if self.pieces:
            return [np.asarray(each[1:], np.float16) for _, each in states]
        counts = (len(each) for each in sequences)
        means = (_word_means(each, found) for each, found in states)
        # A text may have more pieces than the encoder reads; the words after that have no state.
        padded = (
            np.pad(found, ((0, count + 1 - len(found)), (0, 0)))
            for found, count in zip(means, counts, strict=True)
        )
        return [np.asarray(each, np.float16) for each in padded]

    def _piece_ids(self, token: str) -> list[int]:
        found = self.backbone.tokenizer([token])[0]
        ids = found.token_ids.tolist()
        return [i for place, i in enumerate(ids) if place not in found.special_tokens]

    def _normalize(self, text: str) -> str:
        normalizer = self.backbone.tokenizer.backend.normalizer
        return " ".join((normalizer.normalize_str(text) if normalizer else text).split())


@lru_cache(maxsize=1)
def open_encoder(model: str, layer: int, pieces: bool = True) -> FrozenEncoder:
    """Open an encoder; generators with the same one share the states that are kept."""
    context = CallContext(Run(cache=Cache()))
    backbone = PretrainedBackbone(model).open(context)
    layers = count_layers(backbone.checkpoint)
    if not 0 <= layer <= layers:
        raise InputError(f"layer must be from 0 to {layers} for {model}, got {layer}")
    backbone.add_layers(layer)
    return FrozenEncoder(context, backbone, layer, pieces)


def _word_means(tokens: HiddenStates, states: Array) -> Array:
    """Return the mean state of each word of a text, and that of the closing token."""
    starts = tokens.spans[1:-1, 0]
    first = np.array([at == 0 or tokens.text[at - 1] == " " for at in starts.tolist()], bool)
    places = np.flatnonzero(first)
    if not len(places):
        return states[-1:]
    sums = np.add.reduceat(states[1:-1], places, axis=0)
    counts = np.diff(np.append(places, len(starts)))
    return np.concatenate([sums / counts[:, None], states[-1:]])


def _encoder_word(word: str) -> str:
    return _DIGIT_PIECE if word == DIGIT_TOKEN else word
