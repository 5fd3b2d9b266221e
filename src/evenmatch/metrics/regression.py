"""Regression metrics: a cross-encoder reads both texts as one sequence and predicts a number.

`Regression` is the general metric; BLEURT (Sellam et al. 2020) and FrugalScore (Kamal Eddine et
al. 2022) are presets of it (`presets.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from evenmatch.errors import InputError
from evenmatch.models.adapters import find_adapter
from evenmatch.models.backbone import resolve_model, run_in_threads
from evenmatch.models.checkpoints import Checkpoint, find_checkpoint
from evenmatch.models.heads import HeadedModel
from evenmatch.models.loading import quiet_transformers
from evenmatch.models.tokenizer import (
    equal_length_batches,
    load_transformers_tokenizer,
    token_limit,
)
from evenmatch.registry import CallContext, check_settings, register
from evenmatch.scoring.engine import Chunk, ChunkScores, EngineMetric, ReadyMetric
from evenmatch.scoring.reducers import empty_text_flags
from evenmatch.types import Array, Pair, Run, Score
from evenmatch.units.text import replace_surrogates


@register("metric", "regression")
@dataclass(frozen=True)
class Regression(EngineMetric):
    """Prediction of a regression model that reads candidate and reference together.

    `model` is a Hugging Face name or a folder with a sequence-classification model that has one
    output. `first` is the text it reads first. `limit` is the maximum number of tokens of both
    texts together, 0 for the model's own limit; the longer text is truncated first. `long` sets
    what happens to texts beyond the limit. An empty text is scored like any other, and flagged.
    `adapter` loads an adapter trained by `evenmatch debias` for this metric.
    """

    model: str
    first: Literal["reference", "candidate"] = "reference"
    limit: int = 0
    long: Literal["truncate", "error"] = "truncate"
    trust_remote_code: bool = False
    adapter: str = ""
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.limit and self.limit < 8:
            raise InputError(f"limit must be 0 or leave room for both texts, got {self.limit}")

    def open(self, context: CallContext) -> ReadyMetric:
        """Find the model; it is loaded with the first chunk."""
        checkpoint = context.once(find_checkpoint, self.model)
        tokenizer = self.make_tokenizer(checkpoint)
        model = self.model_with_head(context.run.device, checkpoint)
        adapter = context.once(find_adapter, self.adapter) if self.adapter else None

        def score_chunk(chunk: Chunk) -> ChunkScores:
            every = list(dict.fromkeys(two for p in chunk.pairs for two in self.ordered_texts(p)))
            tokenized = tokenizer(every)
            found = predict_values(model.with_adapter(adapter), tokenized, chunk.run)
            values = dict(zip(every, zip(found, tokenized, strict=True), strict=True))
            scores = []
            for pair in chunk.pairs:
                for reference, texts in zip(pair.references, self.ordered_texts(pair), strict=True):
                    value, sequence = values[texts]
                    flags = empty_text_flags(pair.candidate, reference)
                    flags |= {"truncated"} if sequence.truncated else set()
                    scores.append(Score(value, flags=flags))
            return chunk.best_scores(scores, lambda score: score.value), None

        return ReadyMetric(score_chunk)

    def ordered_texts(self, pair: Pair) -> Iterator[tuple[str, str]]:
        """Yield (first text, second text) for each reference."""
        for reference in pair.references:
            sides = (reference, pair.candidate)
            yield sides if self.first == "reference" else sides[::-1]

    def make_tokenizer(self, checkpoint: Checkpoint | None = None) -> PairTokenizer:
        """The tokenizer that makes one sequence of two texts."""
        found = checkpoint or find_checkpoint(self.model)
        return PairTokenizer(found, self.limit, self.long, self.trust_remote_code)

    def model_with_head(self, device: str, checkpoint: Checkpoint | None = None) -> HeadedModel:
        """The model with its regression head."""
        found = checkpoint or find_checkpoint(self.model)
        return HeadedModel(found, "regression", self.trust_remote_code, device)

    def resolve(self, context: CallContext) -> tuple[Regression, tuple[str, ...]]:
        """Return the metric with model and adapter named by content hash."""
        return resolve_model(self, context)


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedPair:
    """Two texts as one token sequence; `inputs` are the model's keyword arguments."""

    inputs: Mapping[str, Array]
    truncated: bool

    @property
    def length(self) -> int:
        """The number of tokens, special tokens included."""
        return len(self.inputs["input_ids"])


@dataclass(frozen=True)
class PairTokenizer:
    """Tokenize pairs of texts for one model."""

    checkpoint: Checkpoint
    limit: int
    long: str
    trust_remote_code: bool

    def __call__(self, texts: Sequence[tuple[str, str]]) -> list[TokenizedPair]:
        """Join the two texts of each pair in order, with the model's special tokens."""
        loaded = load_transformers_tokenizer(self.checkpoint, self.trust_remote_code)
        limit = token_limit(self.checkpoint, int(loaded.model_max_length))
        limit = min(self.limit, limit) if self.limit else limit
        clean = [[replace_surrogates(t).strip() for t in pair] for pair in texts]
        with quiet_transformers():
            return [self._tokenize_pair(loaded, first, second, limit) for first, second in clean]

    def _tokenize_pair(self, loaded: Any, first: str, second: str, limit: int) -> TokenizedPair:
        given = loaded(first, second, return_attention_mask=False)
        count = len(given["input_ids"])
        if count > limit:
            if self.long == "error":
                raise InputError(
                    f"two texts have {count} tokens, but {self.checkpoint.display_name} reads "
                    f"{limit}; shorten them, or set long='truncate'"
                )
            cut = {"truncation": "longest_first", "max_length": limit}
            given = loaded(first, second, return_attention_mask=False, **cut)
        return TokenizedPair(
            {k: np.array(v, dtype=np.int64) for k, v in given.items()}, count > limit
        )


def predict_values(model: Any, tokenized: Sequence[TokenizedPair], run: Run) -> list[float]:
    """The model's output for each sequence, in order; a batch holds sequences of one length."""
    import torch

    found = [0.0] * len(tokenized)

    def predict_batch(batch: list[int]) -> None:
        rows = [tokenized[i].inputs for i in batch]
        inputs = {
            name: torch.from_numpy(np.stack([row[name] for row in rows])).to(model.device)
            for name in rows[0]
        }
        with torch.inference_mode():
            logits = model(**inputs).logits.float().reshape(-1)
        for index, value in zip(batch, logits.tolist(), strict=True):
            found[index] = value

    lengths = [sequence.length for sequence in tokenized]
    run_in_threads(predict_batch, list(equal_length_batches(lengths, run.batch_tokens)), run)
    return found
