"""by_metric: two units are as similar as some metric says their texts are.

phrase_scorer: how alike two phrases are, by a model trained for it (paper 004's FB).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from evenmatch.errors import DataError
from evenmatch.files import DIGEST_PREFIX, models_dir
from evenmatch.metrics.regression import Regression
from evenmatch.metrics.token_level import f_disc
from evenmatch.models.checkpoints import Checkpoint, find_checkpoint
from evenmatch.protocols import Metric, Similarity
from evenmatch.registry import make_signature, register
from evenmatch.scoring.inputs import check_pairs
from evenmatch.scoring.reducers import best_over_references, overlap_score
from evenmatch.types import Array, Embedded, Pair, Run, Scores, Units


@register("similarity", "by_metric")
@dataclass(frozen=True)
class ByMetric:
    """The score of one unit's text against another's, by any metric.

    The text is as it was written, whatever stems the unit's words are. With `f_disc` this is the
    semantic likeness of phrases: their pieces embedded and matched one to one.
    """

    metric: Metric = f_disc()

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s."""
        return self.prepare([(x, y)])(x, y)

    def prepare(self, sides: Sequence[tuple[Embedded, Embedded]]) -> Similarity:
        """A similarity that knows the score of any two units of these, each scored once."""
        texts = [(unit_texts(x.units), unit_texts(y.units)) for x, y in sides]
        pairs = dict.fromkeys((p, q) for rows, cols in texts for p in rows for q in cols if p and q)
        scored = self.metric([Pair(p, (q,)) for p, q in pairs]).segments
        return _ScoreLookup({two: score.value for two, score in zip(pairs, scored, strict=True)})

    @property
    def bounds(self) -> tuple[float, float]:
        """Those of the metric."""
        return self.metric.bounds


@dataclass(frozen=True)
class _ScoreLookup:
    """Similarities looked up by text; a unit without a word is like nothing."""

    scores: Mapping[tuple[str, str], float]

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        rows, cols = unit_texts(x.units), unit_texts(y.units)
        found = [[self.scores.get((p, q), 0.0) for q in cols] for p in rows]
        return np.array(found).reshape(len(rows), len(cols))


def unit_texts(units: Units) -> list[str]:
    """Each unit as it stands in the text; its words where nothing says where it stands."""
    if not units.spans:
        return list(units.items)
    return [
        units.text[units.spans[group[0]][0] : units.spans[group[-1]][1]] if group else ""
        for group in units.groups
    ]


DEFAULT_SCORER = "fb"


def default_scorer_folder() -> Path:
    """Where the scorer of this machine lies, or would."""
    return models_dir() / DEFAULT_SCORER


@register("metric", "phrase_scorer")
@dataclass(frozen=True)
class PhraseScorer:
    """A trained model that reads both phrases at once and says how alike they are, from 0 to 1.

    `model` is a folder that `evenmatch fit --keyphrases` made; 'fb' is where it puts one unless
    told otherwise. The score is not the same when candidate and reference change places.
    """

    model: str = DEFAULT_SCORER
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores in order; the best reference counts."""
        return self.score_pairs(pairs, Run())

    def score_pairs(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """The same, as the run settings have it."""
        check_pairs(pairs)
        asked = [Pair(pair.candidate, (each,)) for pair in pairs for each in pair.references]
        reader = Regression(self.checkpoint().name, "candidate")
        found = reader.score_pairs(list(dict.fromkeys(asked)), run).segments
        likeness = {
            (pair.candidate, pair.references[0]): 1 / (1 + math.exp(-score.value))
            for pair, score in zip(dict.fromkeys(asked), found, strict=True)
        }
        scored = (
            best_over_references(pair, lambda *two: overlap_score(likeness[two])) for pair in pairs
        )
        return Scores(tuple(scored), self.signature)

    def checkpoint(self) -> Checkpoint:
        """Where the scorer lies and what it is."""
        if self.model.startswith(DIGEST_PREFIX):
            return find_checkpoint(self.model)
        folder = (
            default_scorer_folder()
            if self.model == DEFAULT_SCORER
            else Path(self.model).expanduser()
        )
        if not (folder / "config.json").is_file():
            raise DataError(
                f"there is no phrase scorer in {folder}; "
                f"train one with: evenmatch fit DATA --keyphrases -o {folder}"
            )
        return find_checkpoint(str(folder))

    def pin(self) -> PhraseScorer:
        """The folder as its content hash."""
        return dataclasses.replace(self, model=self.checkpoint().name)

    def sources(self) -> tuple[str, ...]:
        """The scorer by content."""
        return (f"model {self.checkpoint().label}",)

    @property
    def signature(self) -> str:
        """The recipe, with the scorer's content."""
        return make_signature(self)
