"""choose_layer: the layer of a model whose scores agree best with people, cross-validated.

A layer chosen by ratings: every layer's agreement, what the choice rests on, and its storage.

Cross-validation of a choice: made on some of the ratings, judged on the others.

One metric at every layer of its model: texts go through the model once for all of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from evenmatch.api import metric_name, score
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.reading import RatingsLike, as_rated_sets, join_set_names
from evenmatch.data.tables import table_to_text
from evenmatch.errors import InputError
from evenmatch.models.checkpoints import Checkpoint
from evenmatch.models.layers import count_layers, save_layer_choice
from evenmatch.protocols import Metric
from evenmatch.registry import spec
from evenmatch.scoring.metric import AlignMetric, as_metric
from evenmatch.stats.levels import CorrelationMethod, Level, prepare_level
from evenmatch.stats.panel import Floats, Indexes, Panel
from evenmatch.vectors.transformer import Transformer
from evenmatch.version import __version__


def choose_layer(
    data: RatingsLike,
    metric: str | Metric = "bertscore",
    *,
    level: Level = "pooled",
    method: CorrelationMethod = "pearson",
    folds: Folds = 5,
    seed: int = 0,
    store: bool = True,
    **run: Any,
) -> LayerChoice:
    """The layer at which a metric agrees best with people, segment by segment.

    `data` is what `read_ratings` takes, or what it gives; each subset counts the same, and people
    among the systems are left out. Texts go through the model once for all layers. With `store` the
    choice is kept with the model's content hash, and `layer='auto'` takes it from then on where
    nothing is published for the model. `run` is as in `score`.
    """
    wanted = layered_metric(metric)
    if level == "system":
        raise InputError("layers are chosen by segments; take pooled, per_item or per_system")
    sets = _usable_sets(data)
    panels = list(_panels(sets, metric_at_every_layer(wanted), run))
    names = [each.segments for each in sets]
    found = cross_validate_layers(panels, names, level=level, method=method, folds=folds, seed=seed)
    if np.isnan(found.overall).all():
        raise InputError(
            f"the ratings of {join_set_names(sets)} are constant or too few to agree with"
        )
    choice = _build_choice(
        wanted, found, sets, LayerSelectionSettings(level, str(method), folds, seed)
    )
    if store:
        store_layer_choice(choice, _checkpoint(wanted))
    return choice


def _build_choice(
    metric: AlignMetric,
    found: LayerValidation,
    sets: Sequence[RatedSet],
    choosing: LayerSelectionSettings,
) -> LayerChoice:
    layer = best_index(found.overall)
    held_out = [nan_mean(column) for column in found.held_out.T]
    counts = np.bincount(found.choices, minlength=len(held_out))
    return LayerChoice(
        metric=spec(metric_at_layer(metric, layer)),
        model=_checkpoint(metric).label,
        layer=layer,
        held_out=found.held_out_mean,
        rows=tuple(
            LayerAgreement(number, float(agreement), held_out[number], int(counts[number]))
            for number, agreement in enumerate(found.overall)
        ),
        data=join_set_names(sets),
        subsets=tuple(each.subset or each.criterion or each.name for each in sets),
        outputs=sum(len(each.cells(rated=True)[0]) for each in sets),
        choosing=choosing,
    )


def _usable_sets(data: RatingsLike) -> list[RatedSet]:
    """The sets that have something to choose by, without ratings of people's own outputs."""
    given = as_rated_sets(data)
    sets = [each.exclude_humans() for each in given]
    sets = [each for each in sets if len(each.cells(rated=True)[0])]
    if not sets:
        what = join_set_names(given) or "an empty list"
        raise InputError(f"{what} has no rated outputs with references to choose by")
    return sets


def _panels(
    sets: Sequence[RatedSet], metrics: Sequence[AlignMetric], run: Mapping[str, Any]
) -> Iterator[Panel]:
    """The scores of every metric beside people's, set by set; all are scored in one call."""
    cells = [each.cells(rated=True) for each in sets]
    pairs = [pair for each, own in zip(sets, cells, strict=True) for pair in each.pairs(own)]
    scores = score(
        [pair.candidate for pair in pairs],
        [pair.references for pair in pairs],
        list(metrics),
        **run,
    )
    values = np.array([[s.value for s in scores[metric_name(m)].segments] for m in metrics])
    start = 0
    for each, own in zip(sets, cells, strict=True):
        part = values[:, start : start + len(own[0])]
        yield Panel(np.stack([each.to_matrix(row, own) for row in part]), each.ratings)
        start += len(own[0])


def _checkpoint(metric: AlignMetric) -> Checkpoint:
    assert isinstance(metric.vectors, Transformer)
    return metric.vectors.backbone.checkpoint()


@dataclass(frozen=True, slots=True)
class LayerSelectionSettings:
    """By what the layers were judged, and which parts were held out."""

    level: str
    method: str
    folds: Folds
    seed: int


@dataclass(frozen=True, slots=True)
class LayerAgreement:
    """How one layer agrees with people: on all ratings, and as the mean over held-out folds.

    `chosen` is in how many folds it was the best on the rest.
    """

    layer: int
    agreement: float
    held_out: float
    chosen: int


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """The best layer, with every layer's agreement.

    `held_out` is the mean agreement of what was chosen without the fold it is judged on: what to
    expect of the choice on other ratings. `metric` is the metric at the chosen layer.
    """

    metric: str
    model: str
    layer: int
    held_out: float
    rows: tuple[LayerAgreement, ...]
    data: str
    subsets: tuple[str, ...]
    outputs: int
    choosing: LayerSelectionSettings

    def __str__(self) -> str:
        table = [["layer", "agreement", "held out", "chosen"]]
        table += [
            [
                str(r.layer),
                _format_agreement(r.agreement),
                _format_agreement(r.held_out),
                str(r.chosen),
            ]
            for r in self.rows
        ]
        how = self.choosing
        parts = "subset by subset" if how.folds == "subsets" else f"in {how.folds} parts"
        return (
            f"{table_to_text(table)}\n\nlayer {self.layer} of {self.model}; agreement of the choice on "
            f"ratings held out: {_format_agreement(self.held_out)}\n{how.method}, {how.level}, "
            f"{self._data_label} ({self.outputs} outputs); "
            f"held out {parts}, seed {how.seed}\nto use: {self.metric}"
        )

    @property
    def _data_label(self) -> str:
        count = len(self.subsets)
        return f"mean over {count} subsets of {self.data}" if count > 1 else self.data

    def document(self) -> dict[str, Any]:
        """The choice as JSON has it; an agreement there is none of becomes null."""
        rows = [
            {key: _finite_or_none(value) for key, value in asdict(agreement).items()}
            for agreement in self.rows
        ]
        return {**asdict(self), "held_out": _finite_or_none(self.held_out), "rows": rows}


def store_layer_choice(choice: LayerChoice, checkpoint: Checkpoint) -> None:
    """Store a choice with the model's content hash, for `layer='auto'`."""
    facts = choice.document() | {"evenmatch": __version__}
    save_layer_choice(checkpoint, choice.layer, facts)


def _format_agreement(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "-"


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


# Parts of the segments, so many; or each subset (a language pair, a criterion) in its turn.
Folds: TypeAlias = int | Literal["subsets"]


@dataclass(frozen=True, slots=True, eq=False)
class LayerValidation:
    """Agreement of each metric: on everything, and fold by fold on the rest and held out."""

    overall: Floats  # (metrics,)
    training: Floats  # (folds, metrics)
    held_out: Floats  # (folds, metrics)

    @property
    def choices(self) -> list[int]:
        """In each fold the metric that is best on the rest; ties go to the lower number."""
        return [best_index(row) for row in self.training]

    @property
    def held_out_mean(self) -> float:
        """The mean agreement, held out, of what was chosen on the rest."""
        return nan_mean(
            np.array([row[c] for row, c in zip(self.held_out, self.choices, strict=True)])
        )


def cross_validate_layers(
    panels: Sequence[Panel],
    segments: Sequence[Sequence[str]],
    *,
    level: Level,
    method: CorrelationMethod,
    folds: Folds,
    seed: int,
) -> LayerValidation:
    """Each metric's mean agreement over the panels; `segments` names those of each panel.

    Segments of one name are in one fold in every panel: criteria rate the same outputs.
    """
    if folds == "subsets":
        return _validate_by_subset(panels, level, method)
    parts = _assign_folds(segments, folds, seed)
    each = []
    for panel, part in zip(panels, parts, strict=True):
        out = (part == np.arange(folds)[:, None]).astype(np.float64)
        weights = np.concatenate([np.ones((1, len(part))), 1 - out, out])
        each.append(prepare_level(panel, level, method)(np.ones((1, panel.systems)), weights))
    found = np.array([[nan_mean(cell) for cell in row.T] for row in np.stack(each, axis=1)])
    return LayerValidation(found[0], found[1 : 1 + folds], found[1 + folds :])


def best_index(agreement: Floats) -> int:
    """The number of the greatest; the lowest of several, and of none 0."""
    return int(np.argmax(np.where(np.isnan(agreement), -np.inf, agreement)))


def nan_mean(values: Floats) -> float:
    """The mean of what is known; NaN of nothing."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _validate_by_subset(
    panels: Sequence[Panel], level: Level, method: CorrelationMethod
) -> LayerValidation:
    if len(panels) < 2:
        raise InputError(
            f"{len(panels)} subset of ratings cannot be held out from itself; "
            "give folds as a number, to hold out segments"
        )
    own = np.concatenate(
        [
            prepare_level(p, level, method)(np.ones((1, p.systems)), np.ones((1, p.segments)))
            for p in panels
        ]
    )
    rest = [[nan_mean(c) for c in np.delete(own, i, axis=0).T] for i in range(len(own))]
    return LayerValidation(np.array([nan_mean(c) for c in own.T]), np.array(rest), own)


def _assign_folds(segments: Sequence[Sequence[str]], folds: int, seed: int) -> list[Indexes]:
    """The fold of each segment, panel by panel; every fold has about as many."""
    names = list(dict.fromkeys(name for own in segments for name in own))
    if type(folds) is not int or not 2 <= folds <= len(names):
        raise InputError(
            f"folds must be 'subsets', or a number from 2 to that of segments ({len(names)}), "
            f"got {folds!r}"
        )
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of = dict(zip((names[i] for i in order), np.arange(len(names)) % folds, strict=True))
    return [np.array([fold_of[name] for name in own], dtype=np.intp) for own in segments]


def layered_metric(given: str | Metric) -> AlignMetric:
    """The metric that is meant, or a refusal where it has no layers to choose from."""
    metric: Any = as_metric(given)
    if isinstance(metric, AlignMetric) and isinstance(metric.vectors, Transformer):
        return metric
    raise InputError(
        f"{given if isinstance(given, str) else spec(metric)} has no layers; give an alignment "
        "metric over a transformer, such as bertscore(model='FOLDER')"
    )


def metric_at_layer(metric: AlignMetric, layer: int) -> AlignMetric:
    """The metric with its vectors read at that layer."""
    assert isinstance(metric.vectors, Transformer)
    return dataclasses.replace(metric, vectors=dataclasses.replace(metric.vectors, layer=layer))


def metric_at_every_layer(metric: AlignMetric) -> list[AlignMetric]:
    """The metric at layer 0, the embeddings before the first block, and at every block."""
    assert isinstance(metric.vectors, Transformer)
    deepest = count_layers(metric.vectors.backbone.checkpoint())
    return [metric_at_layer(metric, layer) for layer in range(deepest + 1)]
