"""Two texts as a question to a language model: what it reads, and which pieces it is to predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.types import Array
from evenmatch.vectors import tokens
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.heads import Head
from evenmatch.vectors.quiet import quiet_transformers

SOURCE, TARGET = "{source}", "{target}"


def check_prompt(prompt: str) -> None:
    """Refuse a prompt that does not name both texts, the predicted one last."""
    if prompt.count(SOURCE) != 1 or prompt.count(TARGET) != 1 or not prompt.endswith(TARGET):
        raise InputError(
            f"a prompt holds {SOURCE} once and ends with {TARGET}, got {prompt[:80]!r}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Ids that an encoder reads, ids that are predicted one by one, and which of those count.

    A causal model has no encoder: everything it reads stands before what counts.
    """

    source: Array
    target: Array
    counted: Array
    cut: bool  # whether a text had to be cut short


@dataclass(frozen=True)
class Asking:
    """How texts are put to one model."""

    checkpoint: Checkpoint
    head: Head
    prompt: str
    source_tag: str
    target_tag: str
    long: str
    trust_remote_code: bool

    def __call__(self, texts: Sequence[tuple[str, str]]) -> list[Question]:
        """A question for each pair of texts: what is read, and what is then predicted."""
        loaded = tokens.load_tokenizer(self.checkpoint, self.trust_remote_code)
        limit = tokens.limit(self.checkpoint, int(loaded.model_max_length))
        clean = [tuple(tokens.without_surrogates(t).strip() for t in pair) for pair in texts]
        sources, targets = [c[0] for c in clean], [c[1] for c in clean]
        with quiet_transformers():  # which warns of every text longer than the model takes
            if self.head == "causal":
                return self._prompted(loaded, limit, sources, targets)
            read = self._ids(loaded, limit, sources, self.source_tag)
            written = self._ids(loaded, limit, targets, self.target_tag)
        return [
            Question(source, target, self._counted(target), longer or long)
            for (source, longer), (target, long) in zip(read, written, strict=True)
        ]

    def _counted(self, target: Array) -> Array:
        """Every piece counts, marks too, but not the tag that says which language to write."""
        return np.arange(len(target)) >= bool(self.target_tag)

    def _ids(
        self, loaded: Any, limit: int, texts: Sequence[str], tag: str
    ) -> list[tuple[Array, bool]]:
        """Each text's ids as the model is used to them, and whether there were too many."""
        # With tags the metric says what surrounds a text; without, the tokenizer does.
        tagged = bool(self.source_tag or self.target_tag)
        opening = [self._tag(loaded, tag)] if tag else []
        closing = [loaded.eos_token_id] if tagged else []
        given = loaded(list(texts), add_special_tokens=not tagged)["input_ids"] if texts else []
        found = [np.array([*opening, *ids, *closing], dtype=np.int64) for ids in given]
        if not tagged and found and max(map(len, found)) > limit:
            closing = self._closing(loaded)
        return [self._cut(ids, limit, len(closing)) for ids in found]

    def _tag(self, loaded: Any, tag: str) -> int:
        found = loaded.convert_tokens_to_ids(tag)
        if found is None or found == loaded.unk_token_id:
            raise InputError(
                f"{self.checkpoint.spoken} has no piece {tag!r}; "
                "give the tag as its tokenizer writes it"
            )
        return int(found)

    def _closing(self, loaded: Any) -> list[int]:
        """What the tokenizer puts after a text."""
        mask = loaded("a", return_special_tokens_mask=True)["special_tokens_mask"]
        return [1] * (len(mask) - 1 - max(i for i, special in enumerate(mask) if not special))

    def _cut(self, ids: Array, limit: int, closing: int) -> tuple[Array, bool]:
        if len(ids) <= limit:
            return ids, False
        self._refuse_long(len(ids), limit)
        return np.concatenate([ids[: limit - closing], ids[len(ids) - closing :]]), True

    def _refuse_long(self, count: int, limit: int) -> None:
        if self.long == "error":
            raise InputError(
                f"a text has {count} pieces and {self.checkpoint.spoken} takes {limit}; "
                "shorten it, or say long='truncate'"
            )

    def _prompted(
        self, loaded: Any, limit: int, sources: Sequence[str], targets: Sequence[str]
    ) -> list[Question]:
        backend = tokens.whole_backend(loaded)
        before, rest = self.prompt.split(SOURCE)
        between = rest.removesuffix(TARGET)
        # Source and target may each take half of the room that the prompt leaves.
        room = (limit - len(backend.encode(before + between).ids) - 2) // 2
        short = {text: self._shortened(backend, text, room) for text in {*sources, *targets}}
        questions = []
        for source, target in zip(sources, targets, strict=True):
            (read, longer), (written, long) = short[source], short[target]
            start = len(before + read + between)
            encoding = backend.encode(before + read + between + written)
            ends = np.array([end for _, end in encoding.offsets], dtype=np.int64)
            ids = np.array(encoding.ids, dtype=np.int64)
            questions.append(Question(ids[:0], ids, ends > start, longer or long))
        return questions

    def _shortened(self, backend: Any, text: str, room: int) -> tuple[str, bool]:
        encoding = backend.encode(text, add_special_tokens=False)
        if len(encoding.ids) <= room:
            return text, False
        self._refuse_long(len(encoding.ids), room)
        return text[: encoding.offsets[room - 1][1]], True
