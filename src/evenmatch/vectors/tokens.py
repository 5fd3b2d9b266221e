"""A model's own tokenizer: texts into piece ids with character offsets, in bulk."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.types import NO_FLAGS, Array
from evenmatch.vectors.bert_files import load_bert_tokenizer
from evenmatch.vectors.checkpoints import Checkpoint, read_config, unreadable
from evenmatch.vectors.quiet import quiet_transformers

_SURROGATES = re.compile("[\ud800-\udfff]")
NO_LIMIT = 1_000_000  # tokenizers write absurd numbers where they know of no limit
# These number positions from behind their padding id, so their tables have that much less room.
_OFFSET_POSITIONS = frozenset(
    {
        "roberta",
        "xlm-roberta",
        "xlm-roberta-xl",
        "camembert",
        "longformer",
        "mpnet",
        "data2vec-text",
    }
)
_RELATIVE_POSITIONS = frozenset({"t5", "mt5", "umt5", "longt5"})


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """One text as its model's pieces."""

    keys: Array
    spans: Array
    marks: Mapping[int, str]
    flags: frozenset[str] = NO_FLAGS


@dataclass(frozen=True, eq=False)
class Tokens:
    """A loaded tokenizer; `limit` is how many pieces its model takes, marks included."""

    backend: Any
    limit: int
    opening: tuple[str, ...]
    closing: tuple[str, ...]
    unknown: int | None
    padding: tuple[int, str] | None = None  # id and name of the padding token, where there is one

    @property
    def width(self) -> int:
        """How many pieces of text fit between the marks."""
        return self.limit - len(self.opening) - len(self.closing)

    def marks(self, length: int) -> dict[int, str]:
        """Where the opening and closing tokens stand in a sequence of that length."""
        last = length - len(self.closing)
        return dict(enumerate(self.opening)) | dict(enumerate(self.closing, last))

    def __call__(self, texts: Sequence[str]) -> list[Cut]:
        """Cut each text whole: nothing is padded, nothing truncated."""
        clean = [without_surrogates(text) for text in texts]
        encodings = self.backend.encode_batch([text.strip() for text in clean])
        return [
            self._cut(e, len(t) - len(t.lstrip())) for e, t in zip(encodings, clean, strict=True)
        ]

    def keys(self, texts: Sequence[str]) -> list[Array]:
        """The ids of each text's pieces alone, in half the time."""
        clean = [without_surrogates(text).strip() for text in texts]
        return [np.array(e.ids, dtype=np.int64) for e in self.backend.encode_batch_fast(clean)]

    def _cut(self, encoding: Any, shift: int) -> Cut:
        keys = np.array(encoding.ids, dtype=np.int64)
        spans = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
        first, last = len(self.opening), len(keys) - len(self.closing)
        if shift:
            spans[first:last] += shift
        inner = keys[first:last]
        unknown = (
            inner.size > 0 and self.unknown is not None and bool((inner == self.unknown).all())
        )
        return Cut(
            keys, spans, self.marks(len(keys)), frozenset({"unknown_only"}) if unknown else NO_FLAGS
        )


@lru_cache(maxsize=4)
def load_tokens(checkpoint: Checkpoint, trust_remote_code: bool) -> Tokens:
    """The tokenizer of a model folder, its own padding and truncation turned off."""
    plain = load_bert_tokenizer(checkpoint)
    if plain is not None:
        return _described(_whole(plain[0]), limit(checkpoint), *plain[1:])
    loaded = load_tokenizer(checkpoint, trust_remote_code)
    return wrap(loaded, limit(checkpoint, int(loaded.model_max_length)))


@lru_cache(maxsize=4)
def load_tokenizer(checkpoint: Checkpoint, trust_remote_code: bool) -> Any:
    """The tokenizer of a model folder as transformers gives it."""
    with quiet_transformers():
        from transformers import AutoTokenizer

        try:
            return AutoTokenizer.from_pretrained(
                str(checkpoint.folder), trust_remote_code=trust_remote_code
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise unreadable(checkpoint, error) from None


def without_surrogates(text: str) -> str:
    """A text that tokenizers take: half characters, which no encoding knows, are replaced."""
    return _SURROGATES.sub("\ufffd", text)


def whole_backend(loaded: Any) -> Any:
    """A copy of the tokenizer inside, which gives character offsets, pads and cuts nothing."""
    if getattr(loaded, "backend_tokenizer", None) is None:
        raise InputError(f"{type(loaded).__name__} is no fast tokenizer; save a tokenizer.json")
    return _whole(copy.deepcopy(loaded.backend_tokenizer))


def _whole(backend: Any) -> Any:
    backend.no_padding()
    backend.no_truncation()
    return backend


def wrap(loaded: Any, limit: int) -> Tokens:
    """A transformers tokenizer in our terms; a copy, so that its owner's stays as it was."""
    backend = whole_backend(loaded)
    # Byte-level tokenizers see a word at the start of a text as another word than inside it, unless
    # a space stands before it; bert_score puts one there too.
    if type(backend.pre_tokenizer).__name__ == "ByteLevel":
        backend.pre_tokenizer.add_prefix_space = True
    return _described(backend, limit, loaded.unk_token, loaded.pad_token)


def _described(backend: Any, limit: int, unknown: str | None, padding: str | None) -> Tokens:
    """A tokenizer that pads and cuts nothing, with what it puts around a text."""
    sample = backend.encode("a")
    inner = [i for i, special in enumerate(sample.special_tokens_mask) if not special]
    first, last = (inner[0], inner[-1] + 1) if inner else (len(sample.ids), len(sample.ids))
    opening, closing = tuple(sample.tokens[:first]), tuple(sample.tokens[last:])
    filler = None if padding is None else backend.token_to_id(str(padding))
    return Tokens(
        backend,
        limit,
        opening,
        closing,
        None if unknown is None else backend.token_to_id(str(unknown)),
        None if filler is None else (filler, str(padding)),
    )


def limit(checkpoint: Checkpoint, by_tokenizer: int = NO_LIMIT) -> int:
    """How many pieces the model truly takes: its position table, where it has one."""
    config = read_config(checkpoint.folder)
    kind = config.get("model_type")
    table = config.get("max_position_embeddings", config.get("n_positions"))
    if isinstance(table, int) and table > 0 and kind not in _RELATIVE_POSITIONS:
        padding = config.get("pad_token_id", 1)
        taken = padding + 1 if kind in _OFFSET_POSITIONS and isinstance(padding, int) else 0
        return table - taken
    return by_tokenizer if by_tokenizer < NO_LIMIT else 512
