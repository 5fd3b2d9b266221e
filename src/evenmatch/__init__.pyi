from .alignment.assignment import Greedy, Lsa, Mutual
from .alignment.lisa import Auction, Recursive, RowMask, TopK
from .alignment.partial import Partial, Unbalanced
from .alignment.solver_contract import check_solver
from .alignment.transport import Emd, Sinkhorn
from .api import align, score, solve, solve_batch
from .data.cards import MetricCard
from .data.documents import read_documents
from .data.fairness_sets import FairnessSet, make_fairness_pair, read_fair_pairs
from .data.graphs import read_graphs, write_graphs
from .data.ratings.rated_set import RatedSet
from .data.ratings.reading import read_ratings
from .distributed.run import score_files
from .errors import (
    DataError,
    EvenmatchError,
    InputError,
    MissingExtraError,
    PromiseError,
    UnknownNameError,
)
from .evaluation.agreement import correlate
from .evaluation.agreement_result import Agreement
from .evaluation.baseline import measure_baseline
from .evaluation.calibrate import calibrate
from .evaluation.compare import Comparison, compare
from .evaluation.keyphrase_scores import score_keyphrases
from .evaluation.keyphrase_table import KeyphraseTable
from .evaluation.layer_selection import choose_layer
from .fairness.adapter_training import DebiasSettings
from .fairness.audit import Audit, audit
from .fairness.counterfactuals import counterfactuals
from .fairness.debias import debias
from .fairness.explain import explain_pair
from .integrations.lighteval import for_lighteval
from .integrations.rl import for_openrlhf, for_trl, for_verl
from .registry import build, names, register, spec
from .reports.results import write_report
from .scoring.aligned import Aligned
from .scoring.metric import AlignMetric
from .scoring.metric_contract import check_metric
from .scoring.reducers import Prf, Rescale
from .similarity.vectors import Cosine, Dot, Floor, SameLabel
from .training.generator.decoding import generate
from .training.generator.tune import tune
from .training.generator.tune_settings import TuneSettings
from .training.loop import FitSettings
from .training.metrics.distil import distil
from .training.metrics.fit import fit
from .training.rewards import Reward, length_term, repetition_term, reward
from .types import Alignment, Cache, Embedded, Pair, Problem, Score, Scores, Units
from .units.constituency.converter import PhraseTrees
from .units.keyphrases import join_phrases
from .units.parsers.spacy import Spacy
from .units.subtrees import Constituents, Subtrees
from .units.text import Pieces, Words
from .vectors.encoder_contract import check_encoder
from .vectors.hashed import Hashed
from .vectors.lookup import LiveLookup, Lookup
from .vectors.transformer import Transformer
from .vectors.weighting import Idf, Norm, Uniform
from .version import __version__

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
    "DebiasSettings",
    "Dot",
    "Embedded",
    "Emd",
    "EvenmatchError",
    "FairnessSet",
    "FitSettings",
    "Floor",
    "Greedy",
    "Hashed",
    "Idf",
    "InputError",
    "KeyphraseTable",
    "LiveLookup",
    "Lookup",
    "Lsa",
    "MetricCard",
    "MissingExtraError",
    "Mutual",
    "Norm",
    "Pair",
    "Partial",
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
    "TuneSettings",
    "Unbalanced",
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
    "explain_pair",
    "fit",
    "for_lighteval",
    "for_openrlhf",
    "for_trl",
    "for_verl",
    "generate",
    "join_phrases",
    "length_term",
    "make_fairness_pair",
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
