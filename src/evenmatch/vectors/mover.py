"""mover: pieces as MoverScore sees them, weighed on either side by how rare they are there."""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.types import Array, Embedded, Units, Weighting
from evenmatch.vectors import layers, tables
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.layers import Layer
from evenmatch.vectors.mover_side import MoverSide
from evenmatch.vectors.packing import portions
from evenmatch.vectors.pretrained import Long, Pretrained
from evenmatch.vectors.tokens import load_tokens
from evenmatch.vectors.weighting import Idf, Uniform


@register("encoder", "mover")
@dataclass(frozen=True)
class Mover:
    """Runs of a model's pieces; those that only continue a word and punctuation are left out.

    `model` and `layer` are as for `transformer`. `layers` is how many layers are read, from `layer`
    down: of several, the least, mean and greatest of each number are put side by side, every
    layer's vectors being brought to length 1 before. `n_gram` is how many pieces in a row make a
    unit. `candidates` and `references` weigh the pieces of either side, and where they weigh all of
    a text's pieces at 0, these count the same. `stop_words` are left out too. `long` says what
    happens to a text the model cannot take whole. Units that are not the model's own pieces are
    pooled by their mean.
    """

    model: str = "minilm"
    layer: Layer = "last"
    layers: int = 1
    n_gram: int = 1
    candidates: Weighting = Uniform()
    references: Weighting = Uniform()
    stop_words: tuple[str, ...] = ()
    long: Long = "truncate"
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        check_settings(self)
        if self.layers < 1 or self.n_gram < 1:
            raise InputError(
                f"layers and n_gram must be at least 1, got {self.layers} and {self.n_gram}"
            )

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Encode each text as a reference."""
        return self.sides()[1](batch)

    @property
    def body(self) -> Pretrained:
        """The model as such, shared with every encoder that looks at it."""
        return Pretrained(self.model, self.long, self.trust_remote_code)

    def sides(self) -> tuple[MoverSide, MoverSide]:
        """What looks at candidates, and what looks at references."""
        checkpoint = self.body.checkpoint()
        top = layers.resolve(self.layer, checkpoint)
        if self.layers > top + 1:
            raise InputError(
                f"{checkpoint.spoken} has {top + 1} layers from layer {top} down, "
                f"embeddings included, got layers={self.layers}"
            )
        read = tuple(range(top - self.layers + 1, top + 1))
        dropped = _dropped(checkpoint, self.trust_remote_code, self.stop_words)
        left, right = (
            MoverSide(self.body, read, self.n_gram, weighting, self.stop_words, dropped)
            for weighting in (self.candidates, self.references)
        )
        return left, right

    @property
    def uncounted(self) -> bool:
        """Whether an idf table has still to be counted."""
        return Idf() in (self.candidates, self.references)

    def counted_sides(self, candidates: Iterable[str], references: Iterable[str]) -> Mover:
        """The same encoder with each side's idf counted from its own texts."""
        return dataclasses.replace(
            self,
            candidates=self._counted(self.candidates, candidates),
            references=self._counted(self.references, references),
        )

    def _counted(self, weighting: Weighting, texts: Iterable[str]) -> Weighting:
        if weighting != Idf():
            return weighting
        keys = (key for some in portions(texts) for key in self.body.keys(some))
        return Idf(tables.store(tables.count(keys)))

    def pinned(self) -> Mover:
        """The layer as a number, and a folder as its content hash."""
        checkpoint = self.body.checkpoint()
        top = layers.resolve(self.layer, checkpoint)
        return dataclasses.replace(self, model=checkpoint.name, layer=top)

    def sources(self) -> tuple[str, ...]:
        """The model by content."""
        return (f"model {self.body.checkpoint().label}",)


@lru_cache(maxsize=4)
def _dropped(checkpoint: Checkpoint, trust_remote_code: bool, stop_words: tuple[str, ...]) -> Array:
    """For each piece of the vocabulary whether it is left out."""
    vocabulary = load_tokens(checkpoint, trust_remote_code).backend.get_vocab()
    left_out = {*stop_words, *string.punctuation}
    dropped = np.zeros(max(vocabulary.values()) + 1, dtype=bool)
    for piece, key in vocabulary.items():
        dropped[key] = "##" in piece or piece in left_out
    return dropped
