"""Word pieces and frozen hidden states of a pretrained encoder, for catSeq's reader.

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
from evenmatch.models.backbone import OpenBackbone, PretrainedBackbone, load_input_embeddings
from evenmatch.models.checkpoints import count_layers, read_config
from evenmatch.registry import CallContext
from evenmatch.training.keyphrases.sequences import (
    CONTINUATION,
    DIGIT_TOKEN,
    WordSequence,
    join_pieces,
)
from evenmatch.types import Array, Cache, Run

_DIGIT_PIECE = "0"  # what the encoder reads for a number
_CHUNK = 256  # documents encoded together


@dataclass(frozen=True, eq=False)
class FrozenEncoder:
    """The first `layer` blocks of a pretrained encoder: its word pieces and their states.

    Continued pieces of a word begin with `##`. States are kept in half precision.
    """

    context: CallContext
    backbone: OpenBackbone
    layer: int
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
        """Split words into the encoder's pieces; a number stays one piece."""
        text = self._normalize(" ".join(map(_encoder_word, words)))
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
        """Compute the states of these pieces and keep them for later calls."""
        new = [each for each in dict.fromkeys(sequences) if each not in self.kept]
        for start in range(0, len(new), _CHUNK):
            some = new[start : start + _CHUNK]
            self.kept.update(zip(some, self._encode(some), strict=True))

    def __call__(self, sequences: Sequence[WordSequence]) -> list[Array]:
        """Return the states of each sequence: one for each piece and for the closing token."""
        new = [each for each in dict.fromkeys(sequences) if each not in self.kept]
        found = dict(zip(new, self._encode(new), strict=True)) if new else {}
        return [self.kept[each] if each in self.kept else found[each] for each in sequences]

    def input_vectors(self, pieces: Sequence[str]) -> list[Array | None]:
        """Return the encoder's input embedding of each piece, None for those it does not know."""
        table = load_input_embeddings(self.backbone.checkpoint)
        to_id = self.backbone.tokenizer.backend.token_to_id
        names = (_DIGIT_PIECE if each == DIGIT_TOKEN else each for each in pieces)
        ids = (to_id(name) for name in names)
        return [None if index is None else table[index] for index in ids]

    def _encode(self, sequences: Sequence[WordSequence]) -> list[Array]:
        texts = [" ".join(map(_encoder_word, join_pieces(each))) for each in sequences]
        self.context.start_chunk()  # forget the states of the last texts
        found = self.backbone.hidden_states(texts)
        return [np.asarray(each.layers[self.layer][1:], np.float16) for each in found]

    def _normalize(self, text: str) -> str:
        normalizer = self.backbone.tokenizer.backend.normalizer
        return " ".join((normalizer.normalize_str(text) if normalizer else text).split())


@lru_cache(maxsize=1)
def open_encoder(model: str, layer: int) -> FrozenEncoder:
    """Open an encoder; generators with the same one share the states that are kept."""
    context = CallContext(Run(cache=Cache()))
    backbone = PretrainedBackbone(model).open(context)
    layers = count_layers(backbone.checkpoint)
    if not 0 <= layer <= layers:
        raise InputError(f"layer must be from 0 to {layers} for {model}, got {layer}")
    backbone.add_layers(layer)
    return FrozenEncoder(context, backbone, layer)


def _encoder_word(word: str) -> str:
    return _DIGIT_PIECE if word == DIGIT_TOKEN else word
