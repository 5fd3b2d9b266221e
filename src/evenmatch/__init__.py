"""Score generated text by how its parts align with a reference."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenmatch.alignment.assign import Greedy, Lsa
from evenmatch.alignment.transport import Emd, Sinkhorn
from evenmatch.errors import (
    DataError,
    EvenmatchError,
    InputError,
    MissingExtraError,
    UnknownNameError,
)
from evenmatch.registry import build, names, register, spec
from evenmatch.scoring.aligned import Aligned
from evenmatch.scoring.ask import align, score, solve, solve_batch
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.reduce import Prf, Rescale
from evenmatch.similarity.cosine import Cosine, Dot, Floor, SameLabel
from evenmatch.types import Alignment, Cache, Embedded, Pair, Problem, Score, Scores, Units
from evenmatch.units.pieces import Pieces
from evenmatch.units.words import Words
from evenmatch.vectors.hashed import Hashed
from evenmatch.vectors.lookup import LiveLookup, Lookup
from evenmatch.vectors.transformer import Transformer
from evenmatch.vectors.weighting import Idf, Norm, Uniform
from evenmatch.version import __version__

if TYPE_CHECKING:
    from evenmatch.data.ratings import RatedSet
    from evenmatch.data.ratings_reading import read_ratings
    from evenmatch.uses.meta.compare import compare
    from evenmatch.uses.meta.compare_result import Comparison

# What one does with scores is loaded when first asked for: most programs only score.
_LATE = {
    "Comparison": "evenmatch.uses.meta.compare_result",
    "RatedSet": "evenmatch.data.ratings",
    "compare": "evenmatch.uses.meta.compare",
    "read_ratings": "evenmatch.data.ratings_reading",
}

__all__ = [
    "AlignMetric",
    "Aligned",
    "Alignment",
    "Cache",
    "Comparison",
    "Cosine",
    "DataError",
    "Dot",
    "Embedded",
    "Emd",
    "EvenmatchError",
    "Floor",
    "Greedy",
    "Hashed",
    "Idf",
    "InputError",
    "LiveLookup",
    "Lookup",
    "Lsa",
    "MissingExtraError",
    "Norm",
    "Pair",
    "Pieces",
    "Prf",
    "Problem",
    "RatedSet",
    "Rescale",
    "SameLabel",
    "Score",
    "Scores",
    "Sinkhorn",
    "Transformer",
    "Uniform",
    "Units",
    "UnknownNameError",
    "Words",
    "__version__",
    "align",
    "build",
    "compare",
    "names",
    "read_ratings",
    "register",
    "score",
    "solve",
    "solve_batch",
    "spec",
]


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'evenmatch' has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)


def _as_html(aligned: Aligned) -> str:
    from evenmatch.viewer.page import alignment_part

    return alignment_part(aligned)


Aligned.as_html = _as_html
