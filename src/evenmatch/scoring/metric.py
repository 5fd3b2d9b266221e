"""Alignment metrics, and scoring with any list of metrics.

`AlignMetric` is a chain of five parts. `as_metric` turns a name, a spec or a folder into a metric,
`score_metrics` scores pairs with metrics of every kind, in the engine or on workers, and
`select_metrics` finds those that can run on this machine, for the name `all`. The last part writes
metrics to folders and reads them.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from evenmatch.alignment.assignment import Greedy, Lsa, zero_matrices
from evenmatch.alignment.transport import Emd, Sinkhorn
from evenmatch.errors import DataError, EvenmatchError, InputError
from evenmatch.models.checkpoints import without_downloads
from evenmatch.packages import PACKAGES
from evenmatch.protocols import (
    BatchSimilarity,
    Encoder,
    Metric,
    Reducer,
    Similarity,
    Solver,
    Splitter,
)
from evenmatch.registry import (
    CallContext,
    build,
    check_settings,
    find_entry,
    kind_of,
    names,
    part_settings,
    register,
    spec,
)
from evenmatch.registry.opening import Openable
from evenmatch.registry.parts import PLUGINS_VARIABLE
from evenmatch.scoring.engine import (
    Chunk,
    EngineMetric,
    OpenMetrics,
    ReadyMetric,
    open_encoder,
    small_matrix_threads,
)
from evenmatch.scoring.reducers import Prf, reducer_bounds
from evenmatch.similarity.vectors import Cosine
from evenmatch.types import Array, Embedded, OpenEncoder, Pair, Problem, Run, Score, Scores
from evenmatch.units.text import Pieces
from evenmatch.vectors.transformer import Transformer

ALL_METRICS = "all"

# `align` is what other metrics are made of, `rouge` is `rouge1` by default, `reference_length` and
# the sentinels do not rate a candidate, and the others score lists of phrases instead of texts.
_NON_TEXT_METRICS = frozenset(
    "align rouge reference_length sentinel_length sentinel_random "
    "keyphrases keyphrase_f1 fg fb f1_at_5 f1_at_m f1_at_10 f1_at_o recall_at_10 recall_at_50 "
    "keyphrase_map keyphrase_ndcg keyphrase_alpha_ndcg sem_f1 phrase_scorer".split()
)

# Scored to see whether a metric can run, and to load its model.
TRIAL_PAIRS = (Pair("a short text", ("a short text",), "a short text"),)

METRIC_FILE = "metric.json"

# In the spec of a saved metric: its folder. {here/NAME} is a file or folder in it.
FOLDER_PLACEHOLDER = "{here}"
_PLACEHOLDER_PATTERN = re.compile(r"\{here(/[\w.-]+)?\}")

# Solvers whose score is a continuous function of the similarities.
_CONTINUOUS_SOLVERS = (Greedy, Lsa, Emd, Sinkhorn)

_PATH_SETTINGS = ("model", "weights", "adapter")  # settings that may name a folder or a file


@register("metric", "align")
@dataclass(frozen=True)
class AlignMetric(EngineMetric):
    """Alignment metric: split texts into units, embed, compare, align, reduce to a score.

    A part may be given as a name or a spec: `AlignMetric(alignment="lsa")`.
    """

    units: Splitter = Pieces()
    vectors: Encoder = Transformer()
    similarity: Similarity = Cosine()
    alignment: Solver = Greedy()
    scoring: Reducer = Prf()

    def __post_init__(self) -> None:
        for name, given in part_settings(self).items():
            if isinstance(given, str):
                part = build(given, name)
                if kind_of(part) != name:
                    raise InputError(
                        f"align's {name} takes a part of kind {name}, got {given!r}; "
                        f"`evenmatch list {name}` shows all"
                    )
                object.__setattr__(self, name, part)
        check_settings(self)

    def open(self, context: CallContext) -> ReadyMetric:
        """Open the encoder; the engine then scores chunks of pairs."""
        sides = self.open_sides(context)
        return ReadyMetric(
            lambda chunk: (self._score_chunk(chunk, sides), None),
            pad_to=max(side.pad_to for side in sides),
            facts=sides[0].facts,
            no_model=all(side.no_model for side in sides),
        )

    def open_sides(self, context: CallContext) -> tuple[OpenEncoder, OpenEncoder]:
        """Open the encoder for candidates and for references.

        Where a tiny change of the vectors may align other units, a cache keeps them exact.
        """
        if not isinstance(self.alignment, _CONTINUOUS_SOLVERS):
            context = context.with_exact_vectors()
        return open_encoder(self.vectors, context)

    def _score_chunk(self, chunk: Chunk, sides: tuple[OpenEncoder, OpenEncoder]) -> list[Score]:
        embedded = chunk.embedded_pairs(self.units, sides)

        def compare() -> list[Array]:
            similarity = self.similarity
            if isinstance(similarity, BatchSimilarity):
                similarity = similarity.prepare(embedded)
            candidates = (pair.candidate for pair in chunk.pairs for _ in pair.references)
            return compare_pairs(similarity, embedded, candidates)

        if chunk.run.check_cost:
            chunk.run.check(*(len(x.weights) * len(y.weights) for x, y in embedded))
        # A similarity reads vectors only, so encoders that differ in weights or mass share it.
        keys = tuple(side.vectors_key for side in sides)
        with small_matrix_threads(chunk.run):
            matrices = chunk.share(("similarity", self.units, keys, self.similarity), compare)
            problems = chunk.share(
                ("problems", self.units, sides, self.similarity),
                lambda: [
                    Problem(matrix, x.mass, y.mass)
                    for matrix, (x, y) in zip(matrices, embedded, strict=True)
                ],
            )
            scores = [
                self.scoring(matrix, alignment, x, y)
                for matrix, alignment, (x, y) in zip(
                    matrices, self.alignment(problems), embedded, strict=True
                )
            ]
        if len(scores) == len(chunk.pairs):  # one reference each
            return scores
        return chunk.best_scores(scores, lambda score: score.value)

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of scores; infinite where the similarity or the reducer declares no bounds."""
        return reducer_bounds(self.scoring, self.similarity)


def as_metric(given: Any) -> Metric:
    """Return the metric given as a name, a spec, the folder it was saved in, or the part itself."""
    metric = given
    if isinstance(given, os.PathLike):
        metric = read_metric(os.fspath(given))
    elif isinstance(given, str):
        metric = read_metric(given) if is_metric_path(given) else build(given, "metric")
    if isinstance(metric, type):
        raise InputError(
            f"expected a metric, got a class; create an instance: {metric.__name__}(...)"
        )
    kind = kind_of(metric)
    # `Openable` is asked first: isinstance() with `Metric` computes the metric's signature.
    is_metric = (kind == "metric" and isinstance(metric, Openable)) or isinstance(metric, Metric)
    if kind in ("metric", None) and is_metric:
        return cast(Metric, metric)
    if kind == "metric":
        raise InputError(
            f"the metric {spec(metric)} lacks signature, higher_is_better, bounds or __call__; "
            "see the guide 'Write your own part'"
        )
    what = f"the {kind} part {spec(metric)}" if kind else f"{type(metric).__name__}"
    raise InputError(f"expected a metric, got {what}; `evenmatch list metric` shows all metrics")


def score_metrics(metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run) -> list[Scores]:
    """Score the pairs with each metric; one `Scores` per metric, in the order of `metrics`."""
    if run.on is not None:
        return run.on.score_metrics(metrics, pairs, run)
    return OpenMetrics(metrics, pairs, run).score(pairs)


def compare_pairs(
    similarity: Similarity, embedded: Sequence[tuple[Embedded, Embedded]], candidates: Iterable[str]
) -> list[Array]:
    """Return the similarity matrix of each pair, in double precision.

    All are views of one array, which is checked at once; InputError for NaN or infinity.
    """
    matrices = zero_matrices([(len(x.weights), len(y.weights)) for x, y in embedded])
    for (x, y), matrix in zip(embedded, matrices, strict=True):
        matrix[...] = similarity(x, y)
    if matrices and not np.isfinite(matrices[0].base).all():
        wrong = next(
            candidate
            for candidate, matrix in zip(candidates, matrices, strict=True)
            if not np.isfinite(matrix).all()
        )
        raise InputError(
            f"a similarity is not a number for the candidate {wrong[:60]!r}; "
            "check the vectors its encoder gives"
        )
    return matrices


def select_metrics(metrics: Sequence[str], run: Run) -> tuple[list[str], dict[str, str]]:
    """Replace `all` by the names of all metrics that can run; also return why others cannot.

    `all` covers every metric of texts that needs no settings and no download; each is tried on one
    short text first. Metrics named explicitly are not tried.
    """
    reasons: dict[str, str] = {}
    wanted: list[str] = []
    for name in metrics:
        if name != ALL_METRICS:
            wanted.append(name)
            continue
        for each in names("metric"):
            if each in _NON_TEXT_METRICS or _needs_settings(each):
                continue
            if why := _reason_unavailable(each, run):
                reasons[each] = why
            else:
                wanted.append(each)
    wanted = list(dict.fromkeys(wanted))
    if not wanted:
        raise InputError("no metric can run here; `evenmatch models list` shows what is missing")
    return wanted, {name: why for name, why in reasons.items() if name not in wanted}


def _needs_settings(name: str) -> bool:
    settings = inspect.signature(find_entry(name).factory).parameters.values()
    return any(setting.default is inspect.Parameter.empty for setting in settings)


def _reason_unavailable(name: str, run: Run) -> str:
    """Why a metric cannot run, in one line; empty if it can."""
    quiet = Run(run.device, run.threads, run.batch_tokens)
    try:
        with without_downloads():
            score_metrics([as_metric(name)], TRIAL_PAIRS, quiet)
    except EvenmatchError as error:
        return " ".join(str(error).split())
    return ""


# Saved metrics: a folder with the metric's spec in `metric.json` and the files it needs


def is_metric_path(given: str) -> bool:
    """Whether a metric is given as a path: it has a separator before any settings, or ~ or a dot.

    A Python file is a path as well, so that `read_metric` can say how to use it.

    >>> is_metric_path("./mine"), is_metric_path("runs/7"), is_metric_path("bleu")
    (True, True, False)
    >>> is_metric_path("fitted(model='runs/7')")
    False
    """
    name = given.split("(", 1)[0]
    return "/" in name or os.sep in name or name.startswith(("~", ".")) or name.endswith(".py")


def write_metric(folder: Path, spec: str) -> None:
    """Write the spec of the metric in this folder; `{here}` in the spec is the folder itself."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / METRIC_FILE).write_text(json.dumps({"metric": spec}, indent=2) + "\n", "utf-8")


def write_portable_metric(folder: Path, spec: str) -> str:
    """Write a metric to a folder, with copies of all files its spec names; return the new spec.

    The folder can then be moved, and the original files can be deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = _find_paths(spec)
    inside = {path: f"part-{n}" for n, path in enumerate(dict.fromkeys(p for *_, p in found), 1)}
    for path, name in inside.items():
        copy = shutil.copytree if path.is_dir() else shutil.copyfile
        copy(path, folder / name)
    written = spec.encode()
    for start, end, path in reversed(found):
        written = written[:start] + f"{{here/{inside[path]}}}".encode() + written[end:]
    write_metric(folder, written.decode())
    return written.decode()


def _find_paths(spec: str) -> list[tuple[int, int, Path]]:
    """Paths of existing files and folders in a spec, each as (first byte, last byte + 1, path)."""
    found = []
    for node in ast.walk(ast.parse(spec, mode="eval")):
        if isinstance(node, ast.keyword) and node.arg in _PATH_SETTINGS:
            given = node.value
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                path = Path(given.value).expanduser()
                if given.value and given.value not in PACKAGES and path.exists():
                    found.append((given.col_offset, given.end_col_offset or 0, path))
    return sorted(found, key=lambda each: each[0])


def read_metric(given: str) -> Any:
    """Load the metric saved in a folder; the path of its `metric.json` works as well."""
    path = Path(given).expanduser()
    if path.suffix == ".py":
        raise InputError(
            f"{given} is a module; give the name of its metric and set {PLUGINS_VARIABLE}="
            f"{path.stem}, with its folder in PYTHONPATH, or install it with an entry point"
        )
    file = path / METRIC_FILE if path.is_dir() else path
    if not file.is_file():
        raise DataError(
            f"{given} holds no {METRIC_FILE}; give a folder that evenmatch fit, distil or "
            f"calibrate wrote; a model is a setting, as in bertscore(model={given!r})"
        )
    try:
        spec = json.loads(file.read_text("utf-8"))["metric"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{file} describes no metric ({error!r}); save the metric again") from None
    return build(
        _PLACEHOLDER_PATTERN.sub(lambda match: repr(f"{file.parent}{match[1] or ''}"), str(spec))
    )
