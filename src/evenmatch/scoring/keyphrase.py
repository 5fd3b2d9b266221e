"""KeyphraseMetric: lists of phrases cleaned by named policies, compared, aligned and scored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from evenmatch.alignment.assign import Greedy
from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register, signature
from evenmatch.scoring.keyphrase_fine import FineGrained
from evenmatch.scoring.keyphrase_lists import Cleaning, Policy, Which
from evenmatch.scoring.keyphrase_shared import Tallying, judge_keyphrases, mean_of
from evenmatch.scoring.ngram_library import release
from evenmatch.similarity.cosine import bounds_of
from evenmatch.similarity.strings import PhraseLikeness
from evenmatch.types import (
    Array,
    Bounding,
    Encoder,
    Pair,
    Reducer,
    Scores,
    Similarity,
    Solver,
)
from evenmatch.units.phrases import Phrases
from evenmatch.vectors.bare import Bare


@register("metric", "keyphrases")
@dataclass(frozen=True)
class KeyphraseMetric:
    """Keyphrases against keyphrases, both as text with `;` between phrases.

    `which` takes all phrases, or only those present in the source (their stemmed words stand there
    in a row), or only those absent. Of the candidate's phrases the first `most` are looked at (0
    for all of them). What equals an earlier one once stemmed is dropped, counted as wrong or kept,
    as `duplicates` says; `reference_duplicates` does the same for the reference. `invalid`
    is about candidate phrases with a comma, a full stop or `<unk>` as a word. A document without
    reference phrases counts, as its reducer defines it, or `no_reference` skips it in the score of
    many. `units` says how phrases are cut and stemmed; the other parts are those of `align`.
    """

    units: Phrases = Phrases()
    which: Which = "all"
    duplicates: Policy = "drop"
    reference_duplicates: Literal["drop", "keep"] = "drop"
    invalid: Policy = "drop"
    most: int = 200
    no_reference: Literal["count", "skip"] = "count"
    vectors: Encoder = Bare()
    similarity: Similarity = PhraseLikeness()
    alignment: Solver = Greedy()
    scoring: Reducer = FineGrained()
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self)
        if self.most < 0:
            raise InputError(f"most must be 0 (all phrases) or more, got {self.most}")

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores in order, the best reference's; and the corpus score where it is no mean."""
        return self.counted(pairs)[0]

    def counted(self, pairs: Sequence[Pair]) -> tuple[Scores, Array]:
        """The scores, and each pair's counts, whose totals `of_totals` scores."""
        return judge_keyphrases([self], pairs)[0]

    def of_totals(self, totals: Array) -> Array:
        """The score of many documents for each row of totals."""
        if isinstance(self.scoring, Tallying):
            return self.scoring.of_totals(totals)
        return mean_of(totals)

    @property
    def cleaning(self) -> Cleaning:
        """How lists are made from texts; metrics that agree in it share the work."""
        return Cleaning(
            self.units, self.duplicates, self.reference_duplicates, self.invalid, self.most
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """The range a score lies in, as far as the similarity and the reducer know theirs."""
        low, high = bounds_of(self.similarity)
        if isinstance(self.scoring, Bounding):
            return self.scoring.bounds_within(low, high)
        return (-math.inf, math.inf)

    def sources(self) -> tuple[str, ...]:
        """The stemmer with its version."""
        return (release("nltk"),) if self.units.stem == "porter" else ()

    @property
    def signature(self) -> str:
        """The recipe, with every policy that is not the usual one, and the stemmer's version."""
        return signature(self)
