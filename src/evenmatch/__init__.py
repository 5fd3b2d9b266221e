"""Score generated text by how its parts align with a reference."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenmatch.alignment.assign import Greedy, Lsa
from evenmatch.alignment.auction import Auction
from evenmatch.alignment.recursive import Recursive
from evenmatch.alignment.row_mask import RowMask
from evenmatch.alignment.topk import TopK
from evenmatch.alignment.transport import Emd, Sinkhorn
from evenmatch.errors import (
    DataError,
    EvenmatchError,
    InputError,
    MissingExtraError,
    PromiseError,
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
    from evenmatch.alignment.checks import check_solver
    from evenmatch.compat.openrlhf import for_openrlhf
    from evenmatch.compat.trl import for_trl
    from evenmatch.compat.verl import for_verl
    from evenmatch.data.cards import Made
    from evenmatch.data.documents_reading import read_documents
    from evenmatch.data.fair_pairs import FairSet, read_fair_pairs
    from evenmatch.data.graphs_files import read_graphs, write_graphs
    from evenmatch.data.ratings import RatedSet
    from evenmatch.data.ratings_reading import read_ratings
    from evenmatch.scoring.checks import check_metric
    from evenmatch.units.constituents import Constituents
    from evenmatch.units.parser_spacy import Spacy
    from evenmatch.units.phrase_trees import PhraseTrees
    from evenmatch.units.subtrees import Subtrees
    from evenmatch.uses.fair.audit import audit
    from evenmatch.uses.fair.audit_result import Audit
    from evenmatch.uses.fair.counterfactuals import counterfactuals
    from evenmatch.uses.fair.debias import debias
    from evenmatch.uses.keyphrases.scores import score_keyphrases
    from evenmatch.uses.keyphrases.table import KeyphraseTable
    from evenmatch.uses.meta.agreement import correlate
    from evenmatch.uses.meta.agreement_result import Agreement
    from evenmatch.uses.meta.baseline import measure_baseline
    from evenmatch.uses.meta.calibrate import calibrate
    from evenmatch.uses.meta.compare import compare
    from evenmatch.uses.meta.compare_result import Comparison
    from evenmatch.uses.meta.layers_choosing import choose_layer
    from evenmatch.uses.report.meta_page import write_report
    from evenmatch.uses.scale.large import score_files
    from evenmatch.uses.train.distil import distil
    from evenmatch.uses.train.fit import fit
    from evenmatch.uses.train.lesson import Lesson
    from evenmatch.uses.train.rewards import Reward, length_term, repetition_term, reward
    from evenmatch.uses.train.tune import tune
    from evenmatch.uses.train.tune_settings import Tuning
    from evenmatch.vectors.checks import check_encoder

# What one does with scores is loaded when first asked for: most programs only score.
_LATE = {
    "Agreement": "evenmatch.uses.meta.agreement_result",
    "Audit": "evenmatch.uses.fair.audit_result",
    "Comparison": "evenmatch.uses.meta.compare_result",
    "Constituents": "evenmatch.units.constituents",
    "FairSet": "evenmatch.data.fair_pairs",
    "KeyphraseTable": "evenmatch.uses.keyphrases.table",
    "Lesson": "evenmatch.uses.train.lesson",
    "Made": "evenmatch.data.cards",
    "PhraseTrees": "evenmatch.units.phrase_trees",
    "RatedSet": "evenmatch.data.ratings",
    "Reward": "evenmatch.uses.train.rewards",
    "Spacy": "evenmatch.units.parser_spacy",
    "Subtrees": "evenmatch.units.subtrees",
    "audit": "evenmatch.uses.fair.audit",
    "calibrate": "evenmatch.uses.meta.calibrate",
    "choose_layer": "evenmatch.uses.meta.layers_choosing",
    "check_encoder": "evenmatch.vectors.checks",
    "check_metric": "evenmatch.scoring.checks",
    "check_solver": "evenmatch.alignment.checks",
    "compare": "evenmatch.uses.meta.compare",
    "counterfactuals": "evenmatch.uses.fair.counterfactuals",
    "debias": "evenmatch.uses.fair.debias",
    "correlate": "evenmatch.uses.meta.agreement",
    "distil": "evenmatch.uses.train.distil",
    "fit": "evenmatch.uses.train.fit",
    "measure_baseline": "evenmatch.uses.meta.baseline",
    "read_documents": "evenmatch.data.documents_reading",
    "read_fair_pairs": "evenmatch.data.fair_pairs",
    "read_ratings": "evenmatch.data.ratings_reading",
    "reward": "evenmatch.uses.train.rewards",
    "score_files": "evenmatch.uses.scale.large",
    "score_keyphrases": "evenmatch.uses.keyphrases.scores",
    "write_report": "evenmatch.uses.report.meta_page",
    "for_openrlhf": "evenmatch.compat.openrlhf",
    "for_trl": "evenmatch.compat.trl",
    "for_verl": "evenmatch.compat.verl",
    "length_term": "evenmatch.uses.train.rewards",
    "read_graphs": "evenmatch.data.graphs_files",
    "repetition_term": "evenmatch.uses.train.rewards",
    "tune": "evenmatch.uses.train.tune",
    "Tuning": "evenmatch.uses.train.tune_settings",
    "write_graphs": "evenmatch.data.graphs_files",
}

__all__ = [
    "Agreement",
    "AlignMetric",
    "Aligned",
    "Alignment",
    "Auction",
    "Audit",
    "Cache",
    "Comparison",
    "Constituents",
    "Cosine",
    "DataError",
    "Dot",
    "Embedded",
    "Emd",
    "EvenmatchError",
    "FairSet",
    "Floor",
    "Greedy",
    "Hashed",
    "Idf",
    "InputError",
    "KeyphraseTable",
    "Lesson",
    "LiveLookup",
    "Lookup",
    "Lsa",
    "Made",
    "MissingExtraError",
    "Norm",
    "Pair",
    "PhraseTrees",
    "Pieces",
    "Prf",
    "Problem",
    "PromiseError",
    "RatedSet",
    "Recursive",
    "Rescale",
    "Reward",
    "RowMask",
    "SameLabel",
    "Score",
    "Scores",
    "Sinkhorn",
    "Spacy",
    "Subtrees",
    "TopK",
    "Transformer",
    "Tuning",
    "Uniform",
    "Units",
    "UnknownNameError",
    "Words",
    "__version__",
    "align",
    "audit",
    "build",
    "calibrate",
    "check_encoder",
    "check_metric",
    "check_solver",
    "choose_layer",
    "compare",
    "correlate",
    "counterfactuals",
    "debias",
    "distil",
    "fit",
    "for_openrlhf",
    "for_trl",
    "for_verl",
    "length_term",
    "measure_baseline",
    "names",
    "read_documents",
    "read_fair_pairs",
    "read_graphs",
    "read_ratings",
    "register",
    "repetition_term",
    "reward",
    "score",
    "score_files",
    "score_keyphrases",
    "solve",
    "solve_batch",
    "spec",
    "tune",
    "write_graphs",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'evenmatch' has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)


def _as_html(aligned: Aligned) -> str:
    from evenmatch.viewer.page import alignment_part

    return alignment_part(aligned)


Aligned.as_html = _as_html
