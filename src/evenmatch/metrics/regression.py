"""Regression metrics: a cross-encoder reads both texts as one sequence and predicts a number.

`Regression` is the general metric; BLEURT (Sellam et al. 2020) and FrugalScore (Kamal Eddine et
al. 2022) are settings of it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from evenmatch.errors import InputError
from evenmatch.models.adapters import adapter_sources, find_optional_adapter, pin_adapter
from evenmatch.models.backbone import run_in_threads
from evenmatch.models.checkpoints import Checkpoint, find_checkpoint
from evenmatch.models.heads import HeadedModel
from evenmatch.models.loading import quiet_transformers
from evenmatch.models.packing import equal_length_batches
from evenmatch.models.tokenizer import load_transformers_tokenizer, replace_surrogates, token_limit
from evenmatch.registry import check_settings, make_signature, register
from evenmatch.scoring.engine import score_in_chunks
from evenmatch.scoring.reducers import empty_text_flags
from evenmatch.types import Array, Pair, Run, Score, Scores


@register("metric", "regression")
@dataclass(frozen=True)
class Regression:
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
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.limit and self.limit < 8:
            raise InputError(f"limit must be 0 or leave room for both texts, got {self.limit}")

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Score the pairs, in order; with several references the best score counts."""
        return self.score_pairs(pairs, Run())

    def score_pairs(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """Score the pairs with the given run settings."""
        return Scores(score_in_chunks(pairs, run, self._score_chunk), self.signature)

    def _score_chunk(self, pairs: Sequence[Pair], run: Run) -> Iterator[Score]:
        every = list(dict.fromkeys(texts for pair in pairs for texts in self.ordered_texts(pair)))
        tokenized = self.make_tokenizer()(every)
        model = self.model_with_head(run.device).with_adapter(find_optional_adapter(self.adapter))
        found = dict(zip(every, predict_values(model, tokenized, run), strict=True))
        truncated = {texts for texts, t in zip(every, tokenized, strict=True) if t.truncated}
        for pair in pairs:
            scores = []
            for reference, texts in zip(pair.references, self.ordered_texts(pair), strict=True):
                flags = empty_text_flags(pair.candidate, reference)
                flags |= {"truncated"} if texts in truncated else set()
                scores.append(Score(found[texts], flags=flags))
            yield max(scores, key=lambda score: score.value)

    def ordered_texts(self, pair: Pair) -> Iterator[tuple[str, str]]:
        """Yield (first text, second text) for each reference."""
        for reference in pair.references:
            sides = (reference, pair.candidate)
            yield sides if self.first == "reference" else sides[::-1]

    def make_tokenizer(self) -> PairTokenizer:
        """The tokenizer that makes one sequence of two texts."""
        found = find_checkpoint(self.model)
        return PairTokenizer(found, self.limit, self.long, self.trust_remote_code)

    def model_with_head(self, device: str) -> HeadedModel:
        """The model with its regression head."""
        found = find_checkpoint(self.model)
        return HeadedModel(found, "regression", self.trust_remote_code, device)

    def pin(self) -> Regression:
        """Return the metric with model and adapter named by content hash."""
        adapter = pin_adapter(self.adapter)
        return dataclasses.replace(self, model=find_checkpoint(self.model).name, adapter=adapter)

    def sources(self) -> tuple[str, ...]:
        """Model and adapter by content hash."""
        return (f"model {find_checkpoint(self.model).label}", *adapter_sources(self.adapter))

    @property
    def signature(self) -> str:
        """The metric's spec, with files named by content hash."""
        return make_signature(self)


@register("metric", "bleurt")
def bleurt(
    model: str = "Elron/bleurt-base-512",
    limit: int = 512,
    long: Literal["truncate", "error"] = "truncate",
    trust_remote_code: bool = False,
    adapter: str = "",
) -> Regression:
    """BLEURT: a BERT trained on human ratings; reads the reference first (Sellam et al. 2020)."""
    return Regression(model, "reference", limit, long, trust_remote_code, adapter)


@register("metric", "frugalscore")
def frugalscore(
    model: str = "moussaKam/frugalscore_tiny_bert-base_bert-score",
    limit: int = 128,
    long: Literal["truncate", "error"] = "truncate",
    trust_remote_code: bool = False,
    adapter: str = "",
) -> Regression:
    """FrugalScore: a small model distilled from a large metric (Kamal Eddine et al. 2022).

    It reads the candidate first.
    """
    return Regression(model, "candidate", limit, long, trust_remote_code, adapter)


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
            given = loaded(
                first,
                second,
                truncation="longest_first",
                max_length=limit,
                return_attention_mask=False,
            )
        return TokenizedPair(
            {k: np.array(v, dtype=np.int64) for k, v in given.items()}, count > limit
        )


def predict_values(model: Any, tokenized: Sequence[TokenizedPair], run: Run) -> list[float]:
    """The model's output for each sequence, in order; a batch holds sequences of one length."""
    import torch

    found = [0.0] * len(tokenized)

    def predict_batch(batch: list[int]) -> None:
        inputs = {
            name: torch.from_numpy(np.stack([tokenized[i].inputs[name] for i in batch])).to(
                model.device
            )
            for name in tokenized[batch[0]].inputs
        }
        with torch.inference_mode():
            logits = model(**inputs).logits.float().reshape(-1)
        for index, value in zip(batch, logits.tolist(), strict=True):
            found[index] = value

    lengths = [sequence.length for sequence in tokenized]
    run_in_threads(predict_batch, list(equal_length_batches(lengths, run.batch_tokens)), run)
    return found
