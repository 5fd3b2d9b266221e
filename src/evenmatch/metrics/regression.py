"""Regression metrics: a cross-encoder reads both texts as one sequence and predicts a number.

`Regression` is the general metric; BLEURT (Sellam et al. 2020) and FrugalScore (Kamal Eddine et
al. 2022) are presets of it (`presets.py`). The last part scores texts two by two with any model
that has a head; the likelihood metrics use it as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

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
from evenmatch.types import Array, Run, Score
from evenmatch.units.text import replace_surrogates

TwoTexts: TypeAlias = tuple[str, str]


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
        return open_pair_model(
            self, context, lambda *sides: {"value": self.ordered_texts(*sides)}, predict_values
        )

    def ordered_texts(self, candidate: str, reference: str) -> TwoTexts:
        """The text that the model reads first, and the other."""
        return (reference, candidate) if self.first == "reference" else (candidate, reference)

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

    def __call__(self, texts: Sequence[TwoTexts]) -> list[TokenizedPair]:
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
    """The model's output for each sequence, in order."""
    import torch

    def predict(batch: Sequence[TokenizedPair]) -> list[float]:
        inputs = {
            name: torch.from_numpy(np.stack([each.inputs[name] for each in batch]))
            for name in batch[0].inputs
        }
        logits = model(**{name: rows.to(model.device) for name, rows in inputs.items()}).logits
        values: list[float] = logits.float().reshape(-1).tolist()
        return values

    return predict_in_batches(predict, tokenized, [(each.length,) for each in tokenized], run)


# Texts scored two by two with a model and its head


def open_pair_model(
    metric: Any,
    context: CallContext,
    readings: Callable[[str, str], Mapping[str, TwoTexts]],
    predict: Callable[[Any, Sequence[Any], Run], list[float]],
) -> ReadyMetric:
    """Open a metric whose value is the mean of what a model predicts for two texts.

    `readings` returns the model's input texts by name, given candidate and reference: one
    `value`, or `precision`, `recall` or both. `predict` takes the model and tokenized texts. Texts
    that occur several times in a chunk are predicted once.
    """
    checkpoint = context.once(find_checkpoint, metric.model)
    tokenize = metric.make_tokenizer(checkpoint)
    model = metric.model_with_head(context.run.device, checkpoint)
    adapter = context.once(find_adapter, metric.adapter) if metric.adapter else None

    def score_chunk(chunk: Chunk) -> ChunkScores:
        sides = [(pair.candidate, r) for pair in chunk.pairs for r in pair.references]
        texts = list(dict.fromkeys(two for s in sides for two in readings(*s).values()))
        inputs = tokenize(texts)
        values = predict(model.with_adapter(adapter), inputs, chunk.run)
        known = dict(zip(texts, values, strict=True))
        truncated = {two for two, given in zip(texts, inputs, strict=True) if given.truncated}
        scores = []
        for candidate, reference in sides:
            own = readings(candidate, reference)
            found = {name: known[two] for name, two in own.items()}
            flags = empty_text_flags(candidate, reference)
            if truncated.intersection(own.values()):
                flags |= {"truncated"}
            value = sum(found.values()) / len(found)
            scores.append(Score(value, found.get("precision"), found.get("recall"), flags))
        return chunk.best_scores(scores, lambda score: score.value), None

    return ReadyMetric(score_chunk)


def predict_in_batches(
    predict: Callable[[list[Any]], Sequence[float]],
    inputs: Sequence[Any],
    sizes: Sequence[tuple[int, ...]],
    run: Run,
) -> list[float]:
    """Predict a number for each input, in order, in batches of one size.

    Nothing is padded: beside a longer text, SmolLM2's log-probabilities moved by up to 1e-5.
    """
    import torch

    found = [0.0] * len(inputs)

    def run_batch(batch: list[int]) -> None:
        with torch.inference_mode():
            values = predict([inputs[i] for i in batch])
        for index, value in zip(batch, values, strict=True):
            found[index] = value

    run_in_threads(run_batch, list(equal_length_batches(sizes, run.batch_tokens)), run)
    return found
