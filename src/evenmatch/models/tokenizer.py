"""A model's own tokenizer, and batches of token sequences.

`ModelTokenizer` turns texts into token ids with character offsets, in bulk. The functions after it
group sequences into batches without padding, and split long ones into overlapping windows.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np

from evenmatch.errors import InputError
from evenmatch.models.checkpoints import Checkpoint, loading_error, read_config
from evenmatch.models.loading import load_bert_tokenizer, quiet_transformers
from evenmatch.types import NO_FLAGS, Array
from evenmatch.units.text import replace_surrogates

NO_LIMIT = 1_000_000  # tokenizers without a known limit have absurdly large numbers for it

T = TypeVar("T")

_CHUNK_SIZE = 4096

# With these, no token depends on text beyond the nearest space.
_BERT_SPLITTING = {"BertNormalizer", "BertPreTokenizer"}
_MAX_CACHED_WORDS = 1 << 16

# Model types that number positions from after their padding id, so the table holds fewer tokens.
_OFFSET_POSITIONS = frozenset(
    "roberta xlm-roberta xlm-roberta-xl camembert longformer mpnet data2vec-text".split()
)
_RELATIVE_POSITIONS = frozenset({"t5", "mt5", "umt5", "longt5"})


@dataclass(frozen=True, slots=True, eq=False)
class HiddenStates:
    """The tokens of one text, and their vectors at the requested layers of a model."""

    text: str
    token_ids: Array  # (tokens,)
    spans: Array  # (tokens, 2) character offsets
    special_tokens: Mapping[int, str]  # position and name of opening, closing and padding tokens
    layers: dict[int, Array] = field(default_factory=dict)  # layer number to (tokens, dim)
    flags: frozenset[str] = NO_FLAGS


@dataclass(frozen=True, eq=False)
class ModelTokenizer:
    """A loaded tokenizer; `max_tokens` is its model's limit, special tokens included."""

    backend: Any
    max_tokens: int
    opening_tokens: tuple[str, ...]
    closing_tokens: tuple[str, ...]
    unknown_id: int | None
    padding: tuple[int, str] | None = None  # id and name of the padding token, if there is one
    # The packed token ids of words met so far, if words are tokenized independently of each other:
    # a list of one dictionary, which is replaced when it is full. Else empty.
    word_caches: list[dict[str, bytes]] = field(default_factory=list)

    @property
    def max_text_tokens(self) -> int:
        """How many tokens of text fit between the special tokens."""
        return self.max_tokens - len(self.opening_tokens) - len(self.closing_tokens)

    def special_token_positions(self, length: int) -> Mapping[int, str]:
        """Return the positions of opening and closing tokens in a sequence of that length."""
        return _special_token_positions(self.opening_tokens, self.closing_tokens, length)

    def __call__(self, texts: Sequence[str], *, spans: bool = True) -> list[HiddenStates]:
        """Tokenize each text without padding or truncation; the result has no layers yet.

        Without `spans`, which take most of the time, all character offsets are 0.
        """
        if not spans:
            ids = self.token_ids(texts)
            nothing = np.zeros((max(map(len, ids), default=0), 2), dtype=np.int32)
            return [
                self._make_tokenized(text, own, nothing[: len(own)])
                for text, own in zip(texts, ids, strict=True)
            ]
        clean = [replace_surrogates(text).strip() for text in texts]
        found = []
        for text, encoding in zip(texts, self.backend.encode_batch(clean), strict=True):
            own = np.array(encoding.ids, dtype=np.int64)
            offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
            last = len(own) - len(self.closing_tokens)
            offsets[len(self.opening_tokens) : last] += len(text) - len(text.lstrip())
            found.append(self._make_tokenized(text, own, offsets))
        return found

    def truncate(self, tokenized: HiddenStates) -> HiddenStates:
        """Return the beginning of a text that is too long for the model."""
        length, closing = len(tokenized.token_ids), len(self.closing_tokens)
        kept = np.r_[0 : self.max_tokens - closing, length - closing : length]
        return replace(
            tokenized,
            token_ids=tokenized.token_ids[kept],
            spans=tokenized.spans[kept],
            special_tokens=self.special_token_positions(self.max_tokens),
            flags=tokenized.flags | {"truncated"},
        )

    def token_ids(self, texts: Sequence[str]) -> list[Array]:
        """Return only the token ids of each text, in half the time or less."""
        clean = [replace_surrogates(text).strip() for text in texts]
        if self.word_caches:
            return self._join_words([text.split(" ") for text in clean])
        return [np.array(e.ids, dtype=np.int64) for e in self.backend.encode_batch_fast(clean)]

    def _join_words(self, texts: Sequence[Sequence[str]]) -> list[Array]:
        """Return the token ids of texts that are split at spaces; each word is tokenized once."""
        if len(self.word_caches[0]) > _MAX_CACHED_WORDS:
            self.word_caches[0] = {}  # another thread may still read the old one
        known = self.word_caches[0]
        opening, closing = (
            _pack_ids(map(self.backend.token_to_id, tokens))
            for tokens in (self.opening_tokens, self.closing_tokens)
        )
        packed: list[bytes] = []
        for words in texts:
            try:
                inner = b"".join(map(known.__getitem__, words))
            except KeyError:
                new = list(set(chain.from_iterable(texts)).difference(known))
                encodings = self.backend.encode_batch_fast(new, add_special_tokens=False)
                known.update((w, _pack_ids(e.ids)) for w, e in zip(new, encodings, strict=True))
                inner = b"".join(map(known.__getitem__, words))
            packed.append(opening + inner + closing)
        return [np.frombuffer(ids, np.int64) for ids in packed]

    def _make_tokenized(self, text: str, ids: Array, spans: Array) -> HiddenStates:
        first, count = len(self.opening_tokens), len(ids)
        special = self.special_token_positions(count)
        flags = NO_FLAGS
        # Nearly always the first token is known, and then the others need not be compared.
        if count > len(special) and ids.item(first) == self.unknown_id:
            inner = ids[first : count - len(self.closing_tokens)]
            flags = frozenset({"unknown_only"}) if (inner == self.unknown_id).all() else NO_FLAGS
        return HiddenStates(text, ids, spans, special, flags=flags)


def _pack_ids(ids: Iterable[int]) -> bytes:
    """Return token ids as the bytes of an array: these are joined in half the time of lists."""
    return np.fromiter(ids, np.int64).tobytes()


@lru_cache(maxsize=4096)  # texts of one length have the same ones
def _special_token_positions(
    opening: tuple[str, ...], closing: tuple[str, ...], length: int
) -> Mapping[int, str]:
    return dict(enumerate(opening)) | dict(enumerate(closing, length - len(closing)))


@lru_cache(maxsize=4)
def load_model_tokenizer(checkpoint: Checkpoint, trust_remote_code: bool) -> ModelTokenizer:
    """Load the tokenizer of a checkpoint, with its own padding and truncation disabled."""
    plain = load_bert_tokenizer(checkpoint)
    if plain is not None:
        return _make_tokenizer(*plain, token_limit(checkpoint))
    loaded = load_transformers_tokenizer(checkpoint, trust_remote_code)
    return wrap_tokenizer(loaded, token_limit(checkpoint, int(loaded.model_max_length)))


@lru_cache(maxsize=4)
def load_transformers_tokenizer(checkpoint: Checkpoint, trust_remote_code: bool) -> Any:
    """Load the tokenizer of a checkpoint as a transformers tokenizer."""
    with quiet_transformers():
        from transformers import AutoTokenizer

        try:
            return AutoTokenizer.from_pretrained(
                str(checkpoint.folder), trust_remote_code=trust_remote_code
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise loading_error(checkpoint, error) from None


def unpadded_backend(loaded: Any) -> Any:
    """Return a copy of a fast tokenizer's backend, without padding and truncation."""
    if getattr(loaded, "backend_tokenizer", None) is None:
        raise InputError(f"{type(loaded).__name__} is not a fast tokenizer; save a tokenizer.json")
    backend = copy.deepcopy(loaded.backend_tokenizer)
    backend.no_padding()
    backend.no_truncation()
    return backend


def wrap_tokenizer(loaded: Any, limit: int) -> ModelTokenizer:
    """Wrap a copy of a transformers tokenizer; the original does not change."""
    backend = unpadded_backend(loaded)
    # Byte-level tokenizers treat a word at the start of a text differently from the same word
    # inside it, unless a space comes before it; bert_score adds one too.
    if type(backend.pre_tokenizer).__name__ == "ByteLevel":
        backend.pre_tokenizer.add_prefix_space = True
    return _make_tokenizer(backend, loaded.unk_token, loaded.pad_token, limit)


def _make_tokenizer(
    backend: Any, unknown: str | None, padding: str | None, limit: int
) -> ModelTokenizer:
    """Wrap a backend, without padding and truncation; find its special tokens with a sample."""
    backend.no_padding()
    backend.no_truncation()
    sample = backend.encode("a")
    inner = [i for i, special in enumerate(sample.special_tokens_mask) if not special]
    first, last = (inner[0], inner[-1] + 1) if inner else (len(sample.ids), len(sample.ids))
    opening, closing = tuple(sample.tokens[:first]), tuple(sample.tokens[last:])
    unknown_id, pad_id = (
        None if token is None else backend.token_to_id(str(token)) for token in (unknown, padding)
    )
    pad_token = None if pad_id is None else (pad_id, str(padding))
    parts = (type(part).__name__ for part in (backend.normalizer, backend.pre_tokenizer))
    word_caches: list[dict[str, bytes]] = [{}] if {*parts} == _BERT_SPLITTING else []
    return ModelTokenizer(backend, limit, opening, closing, unknown_id, pad_token, word_caches)


def token_limit(checkpoint: Checkpoint, by_tokenizer: int = NO_LIMIT) -> int:
    """Return how many tokens the model accepts: the size of its position table, if it has one."""
    config = read_config(checkpoint.folder)
    kind = config.get("model_type")
    table = config.get("max_position_embeddings", config.get("n_positions"))
    if isinstance(table, int) and table > 0 and kind not in _RELATIVE_POSITIONS:
        padding = config.get("pad_token_id", 1)
        offset = padding + 1 if kind in _OFFSET_POSITIONS and isinstance(padding, int) else 0
        return table - offset
    return by_tokenizer if by_tokenizer < NO_LIMIT else 512


def equal_length_batches(
    lengths: Sequence[int] | Sequence[tuple[int, ...]], batch_tokens: int
) -> Iterator[list[int]]:
    """Yield batches of indexes of one length each, with at most `batch_tokens` tokens per batch.

    A batch has no padding, so no computation is wasted and no text is affected by its neighbours.
    The longest come first: if memory runs out, it does so at once. Inputs of several parts have
    tuples of lengths.

    >>> list(equal_length_batches([3, 5, 3, 3], 6))
    [[1], [0, 2], [3]]
    >>> list(equal_length_batches([(3, 2), (9, 1), (3, 2), (2, 3)], 12))
    [[1], [0, 2], [3]]
    """
    by_length: dict[Any, list[int]] = defaultdict(list)
    for index, length in enumerate(lengths):
        by_length[length].append(index)
    for length in sorted(by_length, reverse=True):
        most = max(1, batch_tokens // max(int(np.sum(length)), 1))
        indexes = by_length[length]
        for start in range(0, len(indexes), most):
            yield indexes[start : start + most]


def packed_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield batches of indexes with at most `batch_tokens` tokens, for texts packed into one array.

    Nothing is padded here either, and every batch but the last is nearly full. The longest come
    first, so that texts of one length are adjacent.

    >>> list(packed_batches([3, 5, 3, 4], 8))
    [[1], [3, 0], [2]]
    """
    batch: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and tokens + lengths[index] > batch_tokens:
            yield batch
            batch, tokens = [], 0
        batch.append(index)
        tokens += lengths[index]
    if batch:
        yield batch


def iter_chunks(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield lists of a few thousand items, for work that needs lists but not all items at once."""
    remaining = iter(items)
    while chunk := list(islice(remaining, _CHUNK_SIZE)):
        yield chunk


def sliding_windows(count: int, width: int) -> list[tuple[int, int]]:
    """Return windows of `width` items that cover `count` items and overlap by half.

    >>> sliding_windows(10, 4)
    [(0, 4), (2, 6), (4, 8), (6, 10)]
    """
    if count <= width:
        return [(0, count)]
    step = max(1, width // 2)
    starts = [*range(0, count - width, step), count - width]
    return [(start, start + width) for start in starts]


def owning_windows(count: int, width: int) -> list[int]:
    """Return for each item the window in which it is farthest from a cut edge.

    >>> owning_windows(6, 4)
    [0, 0, 0, 1, 1, 1]
    """
    owner, most = [0] * count, [-1] * count
    for number, (start, stop) in enumerate(sliding_windows(count, width)):
        for item in range(start, stop):
            before = item - start if start > 0 else count
            after = stop - 1 - item if stop < count else count
            if min(before, after) > most[item]:
                owner[item], most[item] = number, min(before, after)
    return owner
