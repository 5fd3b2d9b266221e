"""BERTScorer: bert_score's object, which keeps its settings from one call to the next."""

from __future__ import annotations

import dataclasses
import sys
import time
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from evenmatch.compat.baselines import find_baseline, read_baseline
from evenmatch.compat.best import best_scores
from evenmatch.compat.defaults import choose_model
from evenmatch.errors import InputError, MissingExtraError
from evenmatch.scoring.aligned import Aligned
from evenmatch.scoring.ask import align
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.named import bertscore
from evenmatch.types import Array, Score
from evenmatch.uses.report.heatmap import draw_alignment
from evenmatch.vectors import checkpoints, layers, tables
from evenmatch.vectors.pretrained import Pretrained
from evenmatch.version import __version__


class BERTScorer:
    """Scores with one model; attributes and methods are bert_score's."""

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
        self._checkpoint = checkpoints.find(self.model_type)
        self.num_layers = layers.resolve(_layer(num_layers), self._checkpoint)
        self.batch_size, self.nthreads, self.all_layers = batch_size, nthreads, all_layers
        self.device = device or _best_device()
        self.lang, self.idf = lang, bool(idf)
        self.rescale_with_baseline, self.baseline_path = rescale_with_baseline, baseline_path
        self.use_fast_tokenizer = use_fast_tokenizer
        if rescale_with_baseline:
            find_baseline(baseline_path, lang, self.model_type)  # say so now, not after scoring
        self._table = ""
        sentences = idf if idf_sents is None and not isinstance(idf, bool) else idf_sents
        if sentences is not None:
            self.compute_idf(sentences)

    @property
    def use_custom_baseline(self) -> bool:
        """Whether the baseline is the user's own."""
        return self.baseline_path is not None

    @property
    def baseline_vals(self) -> Any:
        """The baselines as a tensor: of P, R and F, or (layers, 1, 3) with all layers."""
        path = find_baseline(self.baseline_path, self.lang, self.model_type)
        values = _torch().from_numpy(read_baseline(path, self._layers())).float()
        return values.unsqueeze(1) if self.all_layers else values[0]

    @property
    def hash(self) -> str:
        """The settings in bert_score's form; a model in a folder is named by its content."""
        parts = [self._checkpoint.name, f"_L{self.num_layers}", "_idf" if self.idf else "_no-idf"]
        parts.append(f"_version=evenmatch-{__version__}(hug_trans={version('transformers')})")
        if self.rescale_with_baseline:
            parts.append("-custom-rescaled" if self.use_custom_baseline else "-rescaled")
        if self.use_fast_tokenizer:
            parts.append("_fast-tokenizer")
        return "".join(parts)

    def compute_idf(self, sents: Sequence[str]) -> None:
        """Count the importance weights from these sentences."""
        if isinstance(sents, str) or not all(isinstance(text, str) for text in sents):
            raise InputError("idf weights are counted from a list of sentences; give strings only")
        self.take_idf(tables.count(Pretrained(self.model_type).keys(list(sents))))

    def take_idf(self, table: tables.Table) -> None:
        """Use weights counted elsewhere."""
        if self._table:
            warnings.warn(
                "the previous importance weights are replaced; make a new BERTScorer to keep them",
                stacklevel=3,
            )
        self._table = tables.store(table)

    def score(
        self,
        cands: Sequence[str],
        refs: Sequence[str] | Sequence[Sequence[str]],
        verbose: bool = False,
        batch_size: int = 64,
        return_hash: bool = False,
    ) -> Any:
        """P, R and F as three tensors; with `return_hash` these and the hash."""
        if self.idf and not self._table:
            raise InputError(
                "idf weights are not counted yet; give idf_sents=[...], or call compute_idf"
            )
        start = time.perf_counter()
        metrics = [self._metric(layer) for layer in self._layers()]
        values = _torch().from_numpy(best_scores(metrics, cands, refs, self.device)).float()
        if not self.all_layers:
            values = values[0]
        if self.rescale_with_baseline:
            values = (values - self.baseline_vals) / (1 - self.baseline_vals)
        if verbose:
            spent = time.perf_counter() - start
            sys.stderr.write(f"scored {len(cands)} candidates in {spent:.2f} seconds\n")
        found = values[..., 0], values[..., 1], values[..., 2]
        return (found, self.hash) if return_hash else found

    def plot_example(self, candidate: str, reference: str, fname: str = "") -> Aligned:
        """One alignment, drawn into `fname` (SVG or PNG) if that is given."""
        aligned = align(candidate, reference, bertscore(self.model_type, self.num_layers))
        if self.rescale_with_baseline:
            path = find_baseline(self.baseline_path, self.lang, self.model_type)
            aligned = _rescaled(aligned, read_baseline(path, [self.num_layers])[0])
        if fname:
            draw_alignment(aligned, fname)
        return aligned

    def _layers(self) -> list[int]:
        if not self.all_layers:
            return [self.num_layers]
        return list(range(layers.depth(self._checkpoint) + 1))

    def _metric(self, layer: int) -> AlignMetric:
        return bertscore(self.model_type, layer, idf=self._table if self.idf else False)

    def __repr__(self) -> str:
        return (
            f"BERTScorer(hash={self.hash}, batch_size={self.batch_size}, nthreads={self.nthreads})"
        )


def _layer(num_layers: int | None) -> layers.Layer:
    if num_layers is not None and type(num_layers) is not int:
        raise InputError(f"num_layers must be a whole number, got {num_layers!r}")
    return "auto" if num_layers is None else num_layers


def _best_device() -> str:
    return "cuda" if _torch().cuda.is_available() else "cpu"


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError(
            "bert_score's tensors need torch; install it with: pip install 'evenmatch[torch]'"
        ) from None
    return torch


def _rescaled(aligned: Aligned, low: Array) -> Aligned:
    """The alignment with its numbers stretched: P, R and F by their own baselines."""
    score = aligned.score
    assert score.precision is not None
    assert score.recall is not None
    given = np.array([score.precision, score.recall, score.value])
    precision, recall, value = ((given - low) / (1 - low)).tolist()
    return dataclasses.replace(
        aligned,
        similarity=(aligned.similarity - low[2]) / (1 - low[2]),
        score=Score(value, precision, recall, score.flags),
    )
