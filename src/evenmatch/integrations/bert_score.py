"""Drop-in replacement for the bert_score package: same functions, arguments and results.

Results equal those of bert_score at batch size 1. `batch_size`, `nthreads` and `use_fast_tokenizer`
are accepted for compatibility and change no score. Below `BERTScorer` come the parts of bert_score
it needs: baselines for rescaling, the best score over references, the default model of each
language, and the conversion of idf dictionaries.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.api import align
from evenmatch.api import score as score_texts
from evenmatch.errors import DataError, InputError, needs_extra
from evenmatch.metrics.presets import make_metric
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.models.checkpoints import Layer, count_layers, find_checkpoint, resolve_layer
from evenmatch.reports.heatmap import draw_alignment
from evenmatch.scoring.aligned import Aligned
from evenmatch.scoring.inputs import make_pairs
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.streaming import count_flags
from evenmatch.types import Array, Score, Scores
from evenmatch.vectors.weighting import IdfTable, count_documents, store_idf_table
from evenmatch.version import __version__

__all__ = ["BERTScorer", "plot_example", "score"]


def score(
    cands: Sequence[str],
    refs: Sequence[str] | Sequence[Sequence[str]],
    model_type: str | None = None,
    num_layers: int | None = None,
    verbose: bool = False,
    idf: bool | Mapping[int, float] = False,
    device: str | None = None,
    batch_size: int = 64,
    nthreads: int = 4,
    all_layers: bool = False,
    lang: str | None = None,
    return_hash: bool = False,
    rescale_with_baseline: bool = False,
    baseline_path: str | None = None,
    use_fast_tokenizer: bool = False,
) -> Any:
    """Return P, R and F as three tensors of shape (candidates,), or (layers, candidates).

    With several references, each of the three is the highest over references. `idf` is True, or a
    dictionary from bert_score's `get_idf_dict`. With `return_hash`: ((P, R, F), hash).
    """
    settings = (batch_size, nthreads, all_layers, bool(idf), None, device, lang)
    rescaling = (rescale_with_baseline, baseline_path, use_fast_tokenizer)
    scorer = BERTScorer(model_type, num_layers, *settings, *rescaling)
    if isinstance(idf, Mapping) and idf:
        scorer.use_idf_table(idf_table_from_weights(idf))
    elif idf:
        pairs = make_pairs(cands, refs)
        scorer.compute_idf([reference for pair in pairs for reference in pair.references])
    return scorer.score(cands, refs, verbose, batch_size, return_hash)


def plot_example(
    candidate: str,
    reference: str,
    model_type: str | None = None,
    num_layers: int | None = None,
    lang: str | None = None,
    rescale_with_baseline: bool = False,
    baseline_path: str | None = None,
    use_fast_tokenizer: bool = False,
    fname: str = "",
) -> Aligned:
    """Align two texts for display in a notebook; `fname` saves a plot as SVG or PNG."""
    scorer = BERTScorer(
        model_type,
        num_layers,
        lang=lang,
        rescale_with_baseline=rescale_with_baseline,
        baseline_path=baseline_path,
        use_fast_tokenizer=use_fast_tokenizer,
    )
    return scorer.plot_example(candidate, reference, fname)


class BERTScorer:
    """Score with one model; attributes and methods are those of bert_score's `BERTScorer`."""

    def __init__(
        self,
        model_type: str | None = None,
        num_layers: int | None = None,
        batch_size: int = 64,
        nthreads: int = 4,
        all_layers: bool = False,
        idf: bool | Sequence[str] = False,
        idf_sents: Sequence[str] | None = None,
        device: str | None = None,
        lang: str | None = None,
        rescale_with_baseline: bool = False,
        baseline_path: str | None = None,
        use_fast_tokenizer: bool = False,
    ) -> None:
        self.model_type = choose_model(model_type, lang)
        self._checkpoint = find_checkpoint(self.model_type)
        if num_layers is not None and type(num_layers) is not int:
            raise InputError(f"num_layers must be a whole number, got {num_layers!r}")
        layer: Layer = "auto" if num_layers is None else num_layers
        self.num_layers = resolve_layer(layer, self._checkpoint)
        self.batch_size, self.nthreads, self.all_layers = batch_size, nthreads, all_layers
        self.device = device or ("cuda" if _import_torch().cuda.is_available() else "cpu")
        self.lang, self.idf = lang, bool(idf)
        self.rescale_with_baseline, self.baseline_path = rescale_with_baseline, baseline_path
        self.use_fast_tokenizer = use_fast_tokenizer
        if rescale_with_baseline:
            find_baseline(baseline_path, lang, self.model_type)  # fail now, not after scoring
        self._idf_table = ""
        sentences = idf if idf_sents is None and not isinstance(idf, bool) else idf_sents
        if sentences is not None:
            self.compute_idf(sentences)

    @property
    def use_custom_baseline(self) -> bool:
        """Whether the baseline comes from `baseline_path`."""
        return self.baseline_path is not None

    @property
    def baseline_vals(self) -> Any:
        """The baselines of P, R and F as a tensor of shape (3,), or (layers, 1, 3)."""
        values = _import_torch().from_numpy(self._read_baseline(self._layers())).float()
        return values.unsqueeze(1) if self.all_layers else values[0]

    @property
    def hash(self) -> str:
        """The settings in bert_score's format; a local model is named by its content hash."""
        parts = [self._checkpoint.name, f"_L{self.num_layers}", "_idf" if self.idf else "_no-idf"]
        parts.append(f"_version=evenmatch-{__version__}(hug_trans={version('transformers')})")
        if self.rescale_with_baseline:
            parts.append("-custom-rescaled" if self.use_custom_baseline else "-rescaled")
        if self.use_fast_tokenizer:
            parts.append("_fast-tokenizer")
        return "".join(parts)

    def compute_idf(self, sents: Sequence[str]) -> None:
        """Count document frequencies for idf weights from these sentences."""
        if isinstance(sents, str) or not all(isinstance(text, str) for text in sents):
            raise InputError("idf weights are counted from a list of strings, one per sentence")
        self.use_idf_table(
            count_documents(PretrainedBackbone(self.model_type).open().token_ids(sents))
        )

    def use_idf_table(self, table: IdfTable) -> None:
        """Use a table of document frequencies for the idf weights."""
        if self._idf_table:
            warnings.warn(
                "the previous idf weights are replaced; create a new BERTScorer to keep them",
                stacklevel=3,
            )
        self._idf_table = store_idf_table(table)

    def score(
        self,
        cands: Sequence[str],
        refs: Sequence[str] | Sequence[Sequence[str]],
        verbose: bool = False,
        batch_size: int = 64,
        return_hash: bool = False,
    ) -> Any:
        """Return P, R and F as three tensors, or ((P, R, F), hash) with `return_hash`."""
        if self.idf and not self._idf_table:
            raise InputError(
                "idf weights are not counted yet; give idf_sents=[...], or call compute_idf"
            )
        start, idf = time.perf_counter(), self._idf_table if self.idf else False
        metrics = [
            make_metric("bertscore", model=self.model_type, layer=layer, idf=idf)
            for layer in self._layers()
        ]
        best = best_reference_scores(metrics, cands, refs, self.device)
        values = _import_torch().from_numpy(best if self.all_layers else best[0]).float()
        if self.rescale_with_baseline:
            values = (values - self.baseline_vals) / (1 - self.baseline_vals)
        if verbose:
            spent = time.perf_counter() - start
            sys.stderr.write(f"scored {len(cands)} candidates in {spent:.2f} seconds\n")
        found = values[..., 0], values[..., 1], values[..., 2]
        return (found, self.hash) if return_hash else found

    def plot_example(self, candidate: str, reference: str, fname: str = "") -> Aligned:
        """Align two texts; `fname` saves a plot as SVG or PNG."""
        metric = make_metric("bertscore", model=self.model_type, layer=self.num_layers)
        aligned = align(candidate, reference, metric)
        if self.rescale_with_baseline:
            aligned = _rescale_alignment(aligned, self._read_baseline([self.num_layers])[0])
        if fname:
            draw_alignment(aligned, fname)
        return aligned

    def _layers(self) -> list[int]:
        if not self.all_layers:
            return [self.num_layers]
        return list(range(count_layers(self._checkpoint) + 1))

    def _read_baseline(self, layers: Sequence[int]) -> Array:
        path = find_baseline(self.baseline_path, self.lang, self.model_type)
        return read_baseline(path, layers)

    def __repr__(self) -> str:
        return (
            f"BERTScorer(hash={self.hash}, batch_size={self.batch_size}, nthreads={self.nthreads})"
        )


def _import_torch() -> Any:
    with needs_extra(
        "bert_score's tensors need torch; install it with: pip install 'evenmatch[torch]'"
    ):
        import torch
    return torch


def _rescale_alignment(aligned: Aligned, low: Array) -> Aligned:
    """Rescale P, R and F by their own baselines, and similarities by the baseline of F."""
    score = aligned.score
    given = np.array([score.precision, score.recall, score.value], dtype=np.float64)
    precision, recall, value = ((given - low) / (1 - low)).tolist()
    return dataclasses.replace(
        aligned,
        similarity=(aligned.similarity - low[2]) / (1 - low[2]),
        score=Score(value, precision, recall, score.flags),
    )


def find_baseline(path: str | None, lang: str | None, model_type: str) -> Path:
    """The given file, or the baseline that comes with an installed bert_score package."""
    if path is not None:
        return Path(path)
    if lang is None:
        raise InputError(
            "rescale_with_baseline needs a baseline; give lang='en' or baseline_path='FILE'"
        )
    package = importlib.util.find_spec("bert_score")
    name = f"rescale_baseline/{lang.lower()}/{model_type}.tsv"
    for folder in package.submodule_search_locations or () if package else ():
        if (Path(folder) / name).is_file():
            return Path(folder) / name
    raise InputError(
        f"no baseline is known for {model_type} in {lang!r}; give baseline_path='FILE' (a table "
        "with columns LAYER,P,R,F), or leave out rescale_with_baseline"
    )


def read_baseline(path: Path, layers: Sequence[int]) -> Array:
    """Read the baselines of P, R and F at these layers, an array of shape (layers, 3)."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = {int(r["LAYER"]): [float(r[c]) for c in "PRF"] for r in csv.DictReader(file)}
    except OSError as error:
        raise DataError(f"cannot read the baseline {path}: {error.strerror}") from None
    except (KeyError, ValueError, TypeError):
        raise DataError(
            f"{path} is not a baseline file; expected a header LAYER,P,R,F and rows of numbers"
        ) from None
    if missing := [layer for layer in layers if layer not in rows]:
        known = f"{min(rows)} to {max(rows)}" if rows else "none"
        raise DataError(f"the baseline {path} lacks layer {missing[0]}; it has {known}")
    return np.array([rows[layer] for layer in layers])


def best_reference_scores(
    metrics: Sequence[AlignMetric], cands: Sequence[str], refs: Sequence[object], device: str
) -> Array:
    """P, R and F, each the highest over references: an array (metrics, candidates, 3).

    The three numbers of a candidate may come from different references.
    """
    pairs = make_pairs(cands, refs)
    candidates = [pair.candidate for pair in pairs for _ in pair.references]
    references = [reference for pair in pairs for reference in pair.references]
    if not pairs:
        return np.zeros((len(metrics), 0, 3))
    found = list(score_texts(candidates, references, list(metrics), device=device).values())
    _warn_of_flags(found[0])
    values = np.array([[(s.precision, s.recall, s.value) for s in f.segments] for f in found])
    counts = [len(pair.references) for pair in pairs]
    return np.maximum.reduceat(values, np.cumsum([0, *counts[:-1]]), axis=1)


def _warn_of_flags(scores: Scores) -> None:
    """Warn how many pairs carry each flag, since tensors of numbers cannot show flags."""
    if counts := count_flags([scores]):
        summary = ", ".join(f"{count} {flag}" for flag, count in sorted(counts.items()))
        warnings.warn(
            f"of {len(scores.segments)} pairs some are flagged: {summary}; evenmatch.score shows "
            "which (to silence: warnings.filterwarnings('ignore', message='of .* are flagged'))",
            stacklevel=4,
        )


DEFAULT_MODELS: Mapping[str, str] = {
    "en": "roberta-large",
    "en-sci": "allenai/scibert_scivocab_uncased",
    "tr": "dbmdz/bert-base-turkish-cased",
    "zh": "bert-base-chinese",
}

FALLBACK_MODEL = "bert-base-multilingual-cased"


def choose_model(model_type: str | None, lang: str | None) -> str:
    """The given model, or bert_score's default model for the language.

    >>> choose_model(None, "EN"), choose_model(None, "de")
    ('roberta-large', 'bert-base-multilingual-cased')
    """
    for name, value in (("model_type", model_type), ("lang", lang)):
        if value is not None and not isinstance(value, str):
            raise InputError(f"{name} must be a string, got {type(value).__name__}")
    if model_type is not None:
        return model_type
    if lang is None:
        raise InputError("neither model_type nor lang is given; give one, such as lang='en'")
    return DEFAULT_MODELS.get(lang.lower(), FALLBACK_MODEL)


_TOLERANCE = 1e-6


def idf_table_from_weights(weights: Mapping[int, float]) -> IdfTable:
    """Recover document frequencies from idf weights log((N + 1) / (df + 1)).

    Only a dictionary from bert_score's `get_idf_dict` reveals N: its default value is the weight of
    a token that occurs in no document.
    """
    if not isinstance(weights, defaultdict) or weights.default_factory is None:
        raise InputError(
            "an idf dictionary must come from bert_score's get_idf_dict, with its default value; "
            "or set idf=True"
        )
    total = np.exp(weights.default_factory())
    keys = np.array(sorted(weights), dtype=np.int64)
    found = np.array([weights[key] for key in keys.tolist()])
    counts = np.rint(total / np.exp(found) - 1)
    if (counts < 0).any() or not np.allclose(np.log(total / (counts + 1)), found, atol=_TOLERANCE):
        raise InputError(
            "the idf dictionary holds weights that are not of the form log((N + 1) / (df + 1)); "
            "count it with get_idf_dict, or set idf=True"
        )
    return IdfTable(round(total) - 1, keys, counts.astype(np.int64))
