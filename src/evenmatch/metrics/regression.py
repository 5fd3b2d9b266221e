"""regression: a number that a trained model gives for two texts read side by side.

Two texts as one sequence, and the number a model gives for it.
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
    """What a model that was trained on ratings says of a candidate beside its reference.

    `model` is a Hugging Face name or a folder with a model for sequence classification that gives
    one number. `first` says which text it reads first. `limit` is how many pieces of both texts it
    reads at most, 0 as many as it takes; the longer text is cut first. `long` says what happens to
    texts with more. An empty text is judged like any other, and flagged. `adapter` switches on one
    that `debias` trained through this metric.
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
        """The scores in order; the best reference counts."""
        return self.score_pairs(pairs, Run())

    def score_pairs(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """The same, as the run settings have it."""
        return Scores(score_in_chunks(pairs, run, self._score_chunk), self.signature)

    def _score_chunk(self, pairs: Sequence[Pair], run: Run) -> Iterator[Score]:
        wanted = list(dict.fromkeys(texts for pair in pairs for texts in self.ordered_texts(pair)))
        read = self.make_tokenizer()(wanted)
        model = self.model_with_head(run.device).with_adapter(find_optional_adapter(self.adapter))
        found = dict(zip(wanted, predict_values(model, read, run), strict=True))
        cut = {texts for texts, seen in zip(wanted, read, strict=True) if seen.truncated}
        for pair in pairs:
            scores = []
            for reference, texts in zip(pair.references, self.ordered_texts(pair), strict=True):
                flags = empty_text_flags(pair.candidate, reference)
                flags |= {"truncated"} if texts in cut else set()
                scores.append(Score(found[texts], flags=flags))
            yield max(scores, key=lambda score: score.value)

    def ordered_texts(self, pair: Pair) -> Iterator[tuple[str, str]]:
        """What is read for each reference: two texts in their order."""
        for reference in pair.references:
            sides = (reference, pair.candidate)
            yield sides if self.first == "reference" else sides[::-1]

    def make_tokenizer(self) -> PairTokenizer:
        """How two texts are put to the model."""
        found = find_checkpoint(self.model)
        return PairTokenizer(found, self.limit, self.long, self.trust_remote_code)

    def model_with_head(self, device: str) -> HeadedModel:
        """The model that gives the number."""
        found = find_checkpoint(self.model)
        return HeadedModel(found, "regression", self.trust_remote_code, device)

    def pin(self) -> Regression:
        """Folders by what they hold."""
        adapter = pin_adapter(self.adapter)
        return dataclasses.replace(self, model=find_checkpoint(self.model).name, adapter=adapter)

    def sources(self) -> tuple[str, ...]:
        """The model and the adapter by content."""
        return (f"model {find_checkpoint(self.model).label}", *adapter_sources(self.adapter))

    @property
    def signature(self) -> str:
        """The recipe, with the model named by content."""
        return make_signature(self)


@register("metric", "bleurt")
def bleurt(
    model: str = "Elron/bleurt-base-512",
    limit: int = 512,
    long: Literal["truncate", "error"] = "truncate",
    trust_remote_code: bool = False,
    adapter: str = "",
) -> Regression:
    """BLEURT: BERT trained on ratings, the reference read first (Sellam et al. 2020)."""
    return Regression(model, "reference", limit, long, trust_remote_code, adapter)


@register("metric", "frugalscore")
def frugalscore(
    model: str = "moussaKam/frugalscore_tiny_bert-base_bert-score",
    limit: int = 128,
    long: Literal["truncate", "error"] = "truncate",
    trust_remote_code: bool = False,
    adapter: str = "",
) -> Regression:
    """FrugalScore: a small model that learnt a large metric, the candidate first (Eddine 2022)."""
    return Regression(model, "candidate", limit, long, trust_remote_code, adapter)


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedPair:
    """What a model is given for two texts: ids, which text each belongs to, whether some were cut.

    `inputs` has what the model's tokenizer makes, by the names its model takes.
    """

    inputs: Mapping[str, Array]
    truncated: bool

    @property
    def length(self) -> int:
        """How many pieces there are, marks included."""
        return len(self.inputs["input_ids"])


@dataclass(frozen=True)
class PairTokenizer:
    """How two texts are put to one model."""

    checkpoint: Checkpoint
    limit: int
    long: str
    trust_remote_code: bool

    def __call__(self, texts: Sequence[tuple[str, str]]) -> list[TokenizedPair]:
        """Both texts in their order, with the marks the model is used to."""
        loaded = load_transformers_tokenizer(self.checkpoint, self.trust_remote_code)
        most = token_limit(self.checkpoint, int(loaded.model_max_length))
        most = min(self.limit, most) if self.limit else most
        clean = [[replace_surrogates(t).strip() for t in pair] for pair in texts]
        with quiet_transformers():
            return [self._tokenize_pair(loaded, first, second, most) for first, second in clean]

    def _tokenize_pair(self, loaded: Any, first: str, second: str, most: int) -> TokenizedPair:
        given = loaded(first, second, return_attention_mask=False)
        count = len(given["input_ids"])
        if count > most:
            if self.long == "error":
                raise InputError(
                    f"two texts have {count} pieces and {self.checkpoint.display_name} reads {most}; "
                    "shorten them, or say long='truncate'"
                )
            given = loaded(
                first,
                second,
                truncation="longest_first",
                max_length=most,
                return_attention_mask=False,
            )
        return TokenizedPair(
            {k: np.array(v, dtype=np.int64) for k, v in given.items()}, count > most
        )


def predict_values(model: Any, read: Sequence[TokenizedPair], run: Run) -> list[float]:
    """The model's number for each, in order; only sequences of one length share a batch."""
    import torch

    found = [0.0] * len(read)

    def one(batch: list[int]) -> None:
        names = read[batch[0]].inputs
        inputs = {
            name: torch.from_numpy(np.stack([read[i].inputs[name] for i in batch])).to(model.device)
            for name in names
        }
        with torch.inference_mode():
            logits = model(**inputs).logits.float().reshape(-1)
        for index, number in zip(batch, logits.tolist(), strict=True):
            found[index] = number

    lengths = [seen.length for seen in read]
    run_in_threads(one, list(equal_length_batches(lengths, run.batch_tokens)), run)
    return found
