"""regression: a number that a trained model gives for two texts read side by side."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register, signature
from evenmatch.scoring.ngram_rows import side_flags
from evenmatch.scoring.portions import scored_in_portions
from evenmatch.scoring.regression_model import Reading, numbers
from evenmatch.types import Pair, Run, Score, Scores
from evenmatch.vectors import checkpoints
from evenmatch.vectors.adapter_files import adapter_source, named_adapter, pinned_adapter
from evenmatch.vectors.adapter_headed import Headed


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
        return self.carry_out(pairs, Run())

    def carry_out(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """The same, as the run settings have it."""
        return Scores(scored_in_portions(pairs, run, self._scored), self.signature)

    def _scored(self, pairs: Sequence[Pair], run: Run) -> Iterator[Score]:
        wanted = list(dict.fromkeys(texts for pair in pairs for texts in self.sides(pair)))
        read = self.reading()(wanted)
        model = self.headed(run.device).with_adapter(named_adapter(self.adapter))
        found = dict(zip(wanted, numbers(model, read, run), strict=True))
        cut = {texts for texts, seen in zip(wanted, read, strict=True) if seen.cut}
        for pair in pairs:
            scores = []
            for reference, texts in zip(pair.references, self.sides(pair), strict=True):
                flags = side_flags(pair.candidate, reference)
                flags |= {"truncated"} if texts in cut else set()
                scores.append(Score(found[texts], flags=flags))
            yield max(scores, key=lambda score: score.value)

    def sides(self, pair: Pair) -> Iterator[tuple[str, str]]:
        """What is read for each reference: two texts in their order."""
        for reference in pair.references:
            sides = (reference, pair.candidate)
            yield sides if self.first == "reference" else sides[::-1]

    def reading(self) -> Reading:
        """How two texts are put to the model."""
        found = checkpoints.find(self.model)
        return Reading(found, self.limit, self.long, self.trust_remote_code)

    def headed(self, device: str) -> Headed:
        """The model that gives the number."""
        found = checkpoints.find(self.model)
        return Headed(found, "regression", self.trust_remote_code, device)

    def pinned(self) -> Regression:
        """Folders by what they hold."""
        adapter = pinned_adapter(self.adapter)
        return dataclasses.replace(self, model=checkpoints.find(self.model).name, adapter=adapter)

    def sources(self) -> tuple[str, ...]:
        """The model and the adapter by content."""
        return (f"model {checkpoints.find(self.model).label}", *adapter_source(self.adapter))

    @property
    def signature(self) -> str:
        """The recipe, with the model named by content."""
        return signature(self)


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
