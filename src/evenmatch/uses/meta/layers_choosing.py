"""choose_layer: the layer of a model whose scores agree best with people, cross-validated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evenmatch.data.ratings import RatedSet
from evenmatch.data.ratings_reading import Ratings, as_sets, names_of
from evenmatch.errors import InputError
from evenmatch.registry import spec
from evenmatch.scoring.ask import name_of, score
from evenmatch.scoring.metric import AlignMetric
from evenmatch.stats.levels import Level
from evenmatch.stats.panel import Panel
from evenmatch.stats.rows import Method
from evenmatch.types import Metric
from evenmatch.uses.meta.layers import at_every_layer, at_layer, layered
from evenmatch.uses.meta.layers_choice import Choosing, LayerAgreement, LayerChoice, keep
from evenmatch.uses.meta.layers_folds import Folds, Validated, best, mean, validate
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.transformer import Transformer


def choose_layer(
    data: Ratings,
    metric: str | Metric = "bertscore",
    *,
    level: Level = "pooled",
    method: Method = "pearson",
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
    wanted = layered(metric)
    if level == "system":
        raise InputError("layers are chosen by segments; take pooled, per_item or per_system")
    sets = _rated(data)
    panels = list(_panels(sets, at_every_layer(wanted), run))
    names = [each.segments for each in sets]
    found = validate(panels, names, level=level, method=method, folds=folds, seed=seed)
    if np.isnan(found.overall).all():
        raise InputError(f"the ratings of {names_of(sets)} are constant or too few to agree with")
    choice = _choice(wanted, found, sets, Choosing(level, str(method), folds, seed))
    if store:
        keep(choice, _checkpoint(wanted))
    return choice


def _choice(
    metric: AlignMetric, found: Validated, sets: Sequence[RatedSet], choosing: Choosing
) -> LayerChoice:
    layer = best(found.overall)
    held_out = [mean(column) for column in found.held_out.T]
    counts = np.bincount(found.choices, minlength=len(held_out))
    return LayerChoice(
        metric=spec(at_layer(metric, layer)),
        model=_checkpoint(metric).label,
        layer=layer,
        held_out=found.honest,
        rows=tuple(
            LayerAgreement(number, float(agreement), held_out[number], int(counts[number]))
            for number, agreement in enumerate(found.overall)
        ),
        data=names_of(sets),
        subsets=tuple(each.subset or each.criterion or each.name for each in sets),
        outputs=sum(len(each.cells(rated=True)[0]) for each in sets),
        choosing=choosing,
    )


def _rated(data: Ratings) -> list[RatedSet]:
    """The sets that have something to choose by, without ratings of people's own outputs."""
    given = as_sets(data)
    sets = [each.without_people() for each in given]
    sets = [each for each in sets if len(each.cells(rated=True)[0])]
    if not sets:
        what = names_of(given) or "an empty list"
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
    values = np.array([[s.value for s in scores[name_of(m)].segments] for m in metrics])
    start = 0
    for each, own in zip(sets, cells, strict=True):
        part = values[:, start : start + len(own[0])]
        yield Panel(np.stack([each.spread(row, own) for row in part]), each.ratings)
        start += len(own[0])


def _checkpoint(metric: AlignMetric) -> Checkpoint:
    assert isinstance(metric.vectors, Transformer)
    return metric.vectors.body.checkpoint()
