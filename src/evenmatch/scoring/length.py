"""reference_length: no judgement of a candidate, but of use beside some."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from evenmatch.registry import register, signature
from evenmatch.scoring.ngram_rows import flags
from evenmatch.scoring.pairs import check_pairs
from evenmatch.types import Pair, Score, Scores


@register("metric", "reference_length")
@dataclass(frozen=True)
class ReferenceLength:
    """The logarithm of 1 + the reference's words, the longest reference's where there are several.

    It says nothing of a candidate. In a blend it takes out what other parts owe to length alone:
    long texts have more chances to match.
    """

    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """One length a pair, in order."""
        check_pairs(pairs)
        return Scores(tuple(self._score(pair) for pair in pairs), self.signature)

    def _score(self, pair: Pair) -> Score:
        most = max(len(reference.split()) for reference in pair.references)
        return Score(math.log1p(most), flags=flags(pair))

    @property
    def signature(self) -> str:
        """The recipe."""
        return signature(self)
