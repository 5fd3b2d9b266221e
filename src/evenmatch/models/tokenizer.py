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
from evenmatch.models.checkpoints import Checkpoint, loading_error, read_config
from evenmatch.models.loading import load_bert_tokenizer, quiet_transformers
from evenmatch.types import NO_FLAGS, Array

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
class TokenizedText:
    """One text as its model's pieces."""

    token_ids: Array
    spans: Array
    special_tokens: Mapping[int, str]
    flags: frozenset[str] = NO_FLAGS


@dataclass(frozen=True, eq=False)
class ModelTokenizer:
    """A loaded tokenizer; `limit` is how many pieces its model takes, marks included."""

    backend: Any
    max_tokens: int
    opening_tokens: tuple[str, ...]
    closing_tokens: tuple[str, ...]
    unknown_id: int | None
    padding: tuple[int, str] | None = None  # id and name of the padding token, where there is one

    @property
    def max_text_tokens(self) -> int:
        """How many pieces of text fit between the marks."""
        return self.max_tokens - len(self.opening_tokens) - len(self.closing_tokens)

    def special_token_positions(self, length: int) -> dict[int, str]:
        """Where the opening and closing tokens stand in a sequence of that length."""
        last = length - len(self.closing_tokens)
        return dict(enumerate(self.opening_tokens)) | dict(enumerate(self.closing_tokens, last))

    def __call__(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Cut each text whole: nothing is padded, nothing truncated."""
        clean = [replace_surrogates(text) for text in texts]
        encodings = self.backend.encode_batch([text.strip() for text in clean])
        return [
            self._make_tokenized(e, len(t) - len(t.lstrip()))
            for e, t in zip(encodings, clean, strict=True)
        ]

    def token_ids(self, texts: Sequence[str]) -> list[Array]:
        """The ids of each text's pieces alone, in half the time."""
        clean = [replace_surrogates(text).strip() for text in texts]
        return [np.array(e.ids, dtype=np.int64) for e in self.backend.encode_batch_fast(clean)]

    def _make_tokenized(self, encoding: Any, shift: int) -> TokenizedText:
        keys = np.array(encoding.ids, dtype=np.int64)
        spans = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
        first, last = len(self.opening_tokens), len(keys) - len(self.closing_tokens)
        if shift:
            spans[first:last] += shift
        inner = keys[first:last]
        unknown = (
            inner.size > 0
            and self.unknown_id is not None
            and bool((inner == self.unknown_id).all())
        )
        return TokenizedText(
            keys,
            spans,
            self.special_token_positions(len(keys)),
            frozenset({"unknown_only"}) if unknown else NO_FLAGS,
        )


@lru_cache(maxsize=4)
def load_model_tokenizer(checkpoint: Checkpoint, trust_remote_code: bool) -> ModelTokenizer:
    """The tokenizer of a model folder, its own padding and truncation turned off."""
    plain = load_bert_tokenizer(checkpoint)
    if plain is not None:
        return _make_tokenizer(_disable_padding(plain[0]), token_limit(checkpoint), *plain[1:])
    loaded = load_transformers_tokenizer(checkpoint, trust_remote_code)
    return wrap_tokenizer(loaded, token_limit(checkpoint, int(loaded.model_max_length)))


@lru_cache(maxsize=4)
def load_transformers_tokenizer(checkpoint: Checkpoint, trust_remote_code: bool) -> Any:
    """The tokenizer of a model folder as transformers gives it."""
    with quiet_transformers():
        from transformers import AutoTokenizer

        try:
            return AutoTokenizer.from_pretrained(
                str(checkpoint.folder), trust_remote_code=trust_remote_code
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise loading_error(checkpoint, error) from None


def replace_surrogates(text: str) -> str:
    """A text that tokenizers take: half characters, which no encoding knows, are replaced."""
    return _SURROGATES.sub("\ufffd", text)


def unpadded_backend(loaded: Any) -> Any:
    """A copy of the tokenizer inside, which gives character offsets, pads and cuts nothing."""
    if getattr(loaded, "backend_tokenizer", None) is None:
        raise InputError(f"{type(loaded).__name__} is no fast tokenizer; save a tokenizer.json")
    return _disable_padding(copy.deepcopy(loaded.backend_tokenizer))


def _disable_padding(backend: Any) -> Any:
    backend.no_padding()
    backend.no_truncation()
    return backend


def wrap_tokenizer(loaded: Any, limit: int) -> ModelTokenizer:
    """A transformers tokenizer in our terms; a copy, so that its owner's stays as it was."""
    backend = unpadded_backend(loaded)
    # Byte-level tokenizers see a word at the start of a text as another word than inside it, unless
    # a space stands before it; bert_score puts one there too.
    if type(backend.pre_tokenizer).__name__ == "ByteLevel":
        backend.pre_tokenizer.add_prefix_space = True
    return _make_tokenizer(backend, limit, loaded.unk_token, loaded.pad_token)


def _make_tokenizer(
    backend: Any, limit: int, unknown: str | None, padding: str | None
) -> ModelTokenizer:
    """A tokenizer that pads and cuts nothing, with what it puts around a text."""
    sample = backend.encode("a")
    inner = [i for i, special in enumerate(sample.special_tokens_mask) if not special]
    first, last = (inner[0], inner[-1] + 1) if inner else (len(sample.ids), len(sample.ids))
    opening, closing = tuple(sample.tokens[:first]), tuple(sample.tokens[last:])
    filler = None if padding is None else backend.token_to_id(str(padding))
    return ModelTokenizer(
        backend,
        limit,
        opening,
        closing,
        None if unknown is None else backend.token_to_id(str(unknown)),
        None if filler is None else (filler, str(padding)),
    )


def token_limit(checkpoint: Checkpoint, by_tokenizer: int = NO_LIMIT) -> int:
    """How many pieces the model truly takes: its position table, where it has one."""
    config = read_config(checkpoint.folder)
    kind = config.get("model_type")
    table = config.get("max_position_embeddings", config.get("n_positions"))
    if isinstance(table, int) and table > 0 and kind not in _RELATIVE_POSITIONS:
        padding = config.get("pad_token_id", 1)
        taken = padding + 1 if kind in _OFFSET_POSITIONS and isinstance(padding, int) else 0
        return table - taken
    return by_tokenizer if by_tokenizer < NO_LIMIT else 512
