"""moverscore: how far a candidate's words must travel to become the reference's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenmatch.alignment.transport import Emd
from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.named import idf_weighting
from evenmatch.scoring.reduce import flags_of, gains, total, without_weight
from evenmatch.similarity.euclidean import Euclidean
from evenmatch.types import Alignment, Array, Embedded, Score
from evenmatch.units.pieces import Pieces
from evenmatch.vectors.layers import Layer
from evenmatch.vectors.mover import Mover
from evenmatch.vectors.pretrained import Long


@register("reducer", "nearness")
@dataclass(frozen=True)
class Nearness:
    """1 / (1 + the mean distance that mass is moved over), or 1 less that distance.

    The similarity is less the distance, as `euclidean` has it. Precision and recall would be the
    same, so there are none. Empty sides score as under `prf`. `linear` takes the distance from 1.
    """

    linear: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """The score with flags for what was odd about the pair."""
        rows, cols = total(x.weights), total(y.weights)
        if not (rows > 0 and cols > 0):
            score = without_weight(x, y)
            return Score(score.value, flags=score.flags)
        moved, _ = gains(similarity, alignment, x.weights, y.weights)
        return Score(self._near(max(0.0, -float(moved) / rows)), flags=flags_of(x, y))

    def bounds_within(self, low: float, high: float) -> tuple[float, float]:
        """Those of the distance, and 0 and 1 for empty sides."""
        return (min(self._near(-low), 0.0), 1.0)

    def _near(self, distance: float) -> float:
        return 1 - distance if self.linear else 1 / (1 + distance)


@register("metric", "moverscore")
def moverscore(
    model: str = "minilm",
    layer: Layer = "last",
    version: Literal[1, 2] = 2,
    n_gram: int = 1,
    idf: bool | str = True,
    stop_words: tuple[str, ...] = (),
    long: Long = "truncate",
    trust_remote_code: bool = False,
) -> AlignMetric:
    """MoverScore: the earth mover's distance between two texts' pieces (Zhao et al. 2019).

    Pieces weigh by idf, counted from the call's candidates and references each for themselves;
    `idf` may also be False, or a table for both. `version` 1 joins the last five layers by power
    means, squares distances and takes their sum from 1, and is the one that knows `n_gram` above 1.
    """
    first = version == 1
    if n_gram > 1 and not first:
        raise InputError("moverscore's second version has no n-grams; say version=1, or n_gram=1")
    weighting = idf_weighting(idf)
    vectors = Mover(
        model,
        layer,
        layers=5 if first else 1,
        n_gram=n_gram,
        candidates=weighting,
        references=weighting,
        stop_words=stop_words,
        long=long,
        trust_remote_code=trust_remote_code,
    )
    return AlignMetric(Pieces(), vectors, Euclidean(squared=first), Emd(), Nearness(linear=first))
