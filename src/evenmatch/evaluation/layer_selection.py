"""Selection of a model's layer by agreement with human ratings, with cross-validation.

`choose_layer` scores rated outputs at every layer (one forward pass for all), picks the layer with
the highest agreement, and estimates by cross-validation how good that choice is on other ratings
(`cross_validate_layers`). The result is a `LayerChoice`, stored for `layer='auto'`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from evenmatch.api import metric_name
from evenmatch.data.ratings.rated_set import RatedSet, mean_known
from evenmatch.data.ratings.reading import RatingsLike, as_rated_sets, join_set_names
from evenmatch.data.scores import finite_or_none, json_record
from evenmatch.data.tables import format_number, table_to_text
from evenmatch.errors import InputError
from evenmatch.models.checkpoints import Checkpoint, count_layers, save_layer_choice
from evenmatch.protocols import MetricLike
from evenmatch.registry import spec
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.inputs import make_run, warn_of_misreadings
from evenmatch.scoring.metric import AlignMetric, as_metric, score_metrics
from evenmatch.stats.levels import CorrelationMethod, Level, correlate_panel, prepare_level
from evenmatch.stats.panel import Floats, Indexes, Panel
from evenmatch.vectors.transformer import Transformer
from evenmatch.version import __version__

# A number of folds of segments; or each subset (a language pair, a criterion) as one fold.
Folds: TypeAlias = int | Literal["subsets"]


@check_arguments
def choose_layer(
    data: RatingsLike,
    metric: MetricLike = "bertscore",
    *,
    level: Level = "segment",
    method: CorrelationMethod = "pearson",
    folds: Folds = 5,
    seed: int = 0,
    store: bool = True,
    **run: Any,
) -> LayerChoice:
    """Choose the layer at which a metric agrees best with human ratings of segments.

    `data` is a path or name, or the result of `read_ratings`. Subsets have equal weight, and human
    references among the systems are excluded. Each text is encoded once for all layers. With
    `store` the choice is saved under the model's content hash, and `layer='auto'` uses it unless a
    layer is published for the model. `run` takes the run settings of `score`.
    """
    wanted = layered_metric(metric)
    if level == "system" or level not in get_args(Level):
        raise InputError("a layer is chosen by segments; use segment, per_item or per_system")
    sets = _usable_sets(data)
    panels = list(_panels(sets, metric_at_every_layer(wanted), run))
    names = [each.segments for each in sets]
    found = cross_validate_layers(panels, names, level=level, method=method, folds=folds, seed=seed)
    if np.isnan(found.overall).all():
        raise InputError(
            f"the ratings of {join_set_names(sets)} are constant or too few for a correlation"
        )
    layer = best_index(found.overall)
    chosen = np.bincount(found.choices, minlength=len(found.overall))
    columns = [c.tolist() for c in (found.overall, mean_known(found.held_out), chosen)]
    choice = LayerChoice(
        metric=spec(metric_at_layer(wanted, layer)),
        model=_checkpoint(wanted).label,
        layer=layer,
        held_out=found.held_out_mean,
        rows=tuple(LayerAgreement(n, *row) for n, row in enumerate(zip(*columns, strict=True))),
        data=join_set_names(sets),
        subsets=tuple(each.subset or each.criterion or each.name for each in sets),
        outputs=sum(len(each.cells(rated=True)[0]) for each in sets),
        choosing=LayerSelectionSettings(level, str(method), folds, seed),
    )
    if store:
        facts = choice.document() | {"evenmatch": __version__}
        save_layer_choice(_checkpoint(wanted), choice.layer, facts)
    return choice


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """The best layer, with the agreement of every layer.

    `held_out` is the mean agreement on each fold of the layer chosen without that fold: an estimate
    of the agreement on other ratings. `metric` is the metric at the chosen layer.
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
        for row in self.rows:
            numbers = (format_number(finite_or_none(n)) for n in (row.agreement, row.held_out))
            table.append([str(row.layer), *numbers, str(row.chosen)])
        how, count = self.choosing, len(self.subsets)
        data = f"mean over {count} subsets of {self.data}" if count > 1 else self.data
        folds = "one fold per subset" if how.folds == "subsets" else f"{how.folds} folds"
        return (
            f"{table_to_text(table)}\n\nlayer {self.layer} of {self.model}; "
            f"agreement on held-out ratings: {format_number(finite_or_none(self.held_out))}\n"
            f"{how.method}, {how.level}, {data} ({self.outputs} outputs); "
            f"{folds}, seed {how.seed}\nto use: {self.metric}"
        )

    def document(self) -> dict[str, Any]:
        """The choice as a JSON object; an undefined agreement becomes null."""
        return {**json_record(asdict(self)), "rows": [json_record(asdict(r)) for r in self.rows]}


@dataclass(frozen=True, slots=True)
class LayerAgreement:
    """Agreement of one layer with human ratings: on all, and as the mean over held-out folds.

    `chosen` is the number of folds in which the layer was the best on the training part.
    """

    layer: int
    agreement: float
    held_out: float
    chosen: int


@dataclass(frozen=True, slots=True)
class LayerSelectionSettings:
    """Correlation level and method, and the folds of the cross-validation."""

    level: str
    method: str
    folds: Folds
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class LayerValidation:
    """Agreement of each metric: on all ratings, and for each fold on the training and test part."""

    overall: Floats  # (metrics,)
    training: Floats  # (folds, metrics)
    held_out: Floats  # (folds, metrics)

    @property
    def choices(self) -> list[int]:
        """Index of the best metric on the training part of each fold; the lower one on ties."""
        return [best_index(row) for row in self.training]

    @property
    def held_out_mean(self) -> float:
        """Mean held-out agreement of the metrics chosen on the training parts."""
        chosen = self.held_out[np.arange(len(self.held_out)), self.choices]
        return float(mean_known(chosen))


def cross_validate_layers(
    panels: Sequence[Panel],
    segments: Sequence[Sequence[str]],
    *,
    level: Level,
    method: CorrelationMethod,
    folds: Folds,
    seed: int,
) -> LayerValidation:
    """Cross-validate the mean agreement of each metric over the panels.

    `segments` are the segment names of each panel. Segments with the same name are in the same fold
    in every panel, because criteria rate the same outputs.
    """
    if folds == "subsets":
        return _validate_by_subset(panels, level, method)
    parts = assign_folds(segments, folds, seed)
    by_panel = []
    for panel, part in zip(panels, parts, strict=True):
        out = (part == np.arange(folds)[:, None]).astype(np.float64)
        weights = np.concatenate([np.ones((1, len(part))), 1 - out, out])
        by_panel.append(prepare_level(panel, level, method)(np.ones((1, panel.systems)), weights))
    found = mean_known(np.stack(by_panel))
    return LayerValidation(found[0], found[1 : 1 + folds], found[1 + folds :])


def assign_folds(segments: Sequence[Sequence[str]], folds: int, seed: int) -> list[Indexes]:
    """Assign each segment of each panel to a fold at random; folds have about equal size."""
    names = list(dict.fromkeys(name for panel in segments for name in panel))
    if type(folds) is not int or not 2 <= folds <= len(names):
        raise InputError(
            f"folds must be 'subsets', or a number from 2 to the number of segments "
            f"({len(names)}), got {folds!r}"
        )
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of = {names[i]: number % folds for number, i in enumerate(order)}
    return [np.array([fold_of[name] for name in panel], dtype=np.intp) for panel in segments]


def best_index(agreement: Floats) -> int:
    """Index of the maximum, ignoring NaN; the lowest on ties, 0 if all are NaN."""
    return int(np.argmax(np.where(np.isnan(agreement), -np.inf, agreement)))


def layered_metric(given: MetricLike) -> AlignMetric:
    """Build the metric; raise `InputError` if it has no layers to choose from."""
    metric: Any = as_metric(given)
    if isinstance(metric, AlignMetric) and isinstance(metric.vectors, Transformer):
        return metric
    raise InputError(
        f"{metric_name(given)} has no layers; give an alignment "
        "metric with a transformer, such as bertscore(model='FOLDER')"
    )


def metric_at_layer(metric: AlignMetric, layer: int) -> AlignMetric:
    """Return the metric with the hidden states of that layer as vectors."""
    assert isinstance(metric.vectors, Transformer)
    return replace(metric, vectors=replace(metric.vectors, layer=layer))


def metric_at_every_layer(metric: AlignMetric) -> list[AlignMetric]:
    """Return the metric at layer 0 (the input embeddings) and after every block."""
    return [metric_at_layer(metric, n) for n in range(count_layers(_checkpoint(metric)) + 1)]


def _usable_sets(data: RatingsLike) -> list[RatedSet]:
    """Return the sets that have rated outputs, with human references excluded."""
    given = as_rated_sets(data)
    sets = [each.exclude_humans() for each in given]
    sets = [each for each in sets if len(each.cells(rated=True)[0])]
    if not sets:
        what = join_set_names(given) or "an empty list"
        raise InputError(f"{what} has no rated outputs with references to choose a layer by")
    return sets


def _panels(
    sets: Sequence[RatedSet], metrics: Sequence[AlignMetric], run: Mapping[str, Any]
) -> Iterator[Panel]:
    """Yield the scores of every metric with the ratings, set by set; all are scored in one call."""
    cells = [each.cells(rated=True) for each in sets]
    pairs = [pair for each, rated in zip(sets, cells, strict=True) for pair in each.pairs(rated)]
    warn_of_misreadings(metrics, pairs)
    scored = score_metrics(metrics, pairs, make_run(**run))
    values = np.array([[score.value for score in scores.segments] for scores in scored])
    ends = np.cumsum([len(rated[0]) for rated in cells])[:-1]
    for each, rated, part in zip(sets, cells, np.split(values, ends, axis=1), strict=True):
        yield Panel(np.stack([each.to_matrix(row, rated) for row in part]), each.ratings)


def _checkpoint(metric: AlignMetric) -> Checkpoint:
    assert isinstance(metric.vectors, Transformer)
    return metric.vectors.backbone.checkpoint()


def _validate_by_subset(
    panels: Sequence[Panel], level: Level, method: CorrelationMethod
) -> LayerValidation:
    if len(panels) < 2:
        raise InputError(
            "folds='subsets' needs at least two subsets of ratings, got "
            f"{len(panels)}; give folds as a number, to hold out segments"
        )
    by_subset = np.stack([correlate_panel(p, level=level, method=method) for p in panels])
    training = [mean_known(np.delete(by_subset, i, axis=0)) for i in range(len(by_subset))]
    return LayerValidation(mean_known(by_subset), np.array(training), by_subset)
