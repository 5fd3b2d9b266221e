"""phrase_scorer: how alike two phrases are, by a model trained for it (paper 004's FB)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from evenmatch.errors import DataError
from evenmatch.registry import register, signature
from evenmatch.scoring.ngram_rows import best, overlap
from evenmatch.scoring.pairs import check_pairs
from evenmatch.scoring.regression import Regression
from evenmatch.storage.contents import BY_CONTENT
from evenmatch.storage.folders import models_dir
from evenmatch.types import Pair, Run, Scores
from evenmatch.vectors import checkpoints
from evenmatch.vectors.checkpoints import Checkpoint

OWN_SCORER = "fb"


def own_scorer() -> Path:
    """Where the scorer of this machine lies, or would."""
    return models_dir() / OWN_SCORER


@register("metric", "phrase_scorer")
@dataclass(frozen=True)
class PhraseScorer:
    """A trained model that reads both phrases at once and says how alike they are, from 0 to 1.

    `model` is a folder that `evenmatch fit --keyphrases` made; 'fb' is where it puts one unless
    told otherwise. The score is not the same when candidate and reference change places.
    """

    model: str = OWN_SCORER
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores in order; the best reference counts."""
        return self.carry_out(pairs, Run())

    def carry_out(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """The same, as the run settings have it."""
        check_pairs(pairs)
        asked = [Pair(pair.candidate, (each,)) for pair in pairs for each in pair.references]
        reader = Regression(self.checkpoint().name, "candidate")
        found = reader.carry_out(list(dict.fromkeys(asked)), run).segments
        likeness = {
            (pair.candidate, pair.references[0]): 1 / (1 + math.exp(-score.value))
            for pair, score in zip(dict.fromkeys(asked), found, strict=True)
        }
        scored = (best(pair, lambda *two: overlap(likeness[two])) for pair in pairs)
        return Scores(tuple(scored), self.signature)

    def checkpoint(self) -> Checkpoint:
        """Where the scorer lies and what it is."""
        if self.model.startswith(BY_CONTENT):
            return checkpoints.find(self.model)
        folder = own_scorer() if self.model == OWN_SCORER else Path(self.model).expanduser()
        if not (folder / "config.json").is_file():
            raise DataError(
                f"there is no phrase scorer in {folder}; "
                f"train one with: evenmatch fit DATA --keyphrases -o {folder}"
            )
        return checkpoints.find(str(folder))

    def pinned(self) -> PhraseScorer:
        """The folder as its content hash."""
        return dataclasses.replace(self, model=self.checkpoint().name)

    def sources(self) -> tuple[str, ...]:
        """The scorer by content."""
        return (f"model {self.checkpoint().label}",)

    @property
    def signature(self) -> str:
        """The recipe, with the scorer's content."""
        return signature(self)
