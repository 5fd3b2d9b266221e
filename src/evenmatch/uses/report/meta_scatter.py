"""Metrics' scores against people's ratings, a small plot per set and metric."""

from __future__ import annotations

from html import escape

import numpy as np

from evenmatch.stats.arrays import Floats
from evenmatch.uses.meta.agreement_result import Agreement, short
from evenmatch.uses.meta.agreement_scores import ScoredSet

_WIDE, _TALL, _EDGE = 190, 150, 10
# More points make a cloud no clearer and a page heavier.
_MOST_POINTS = 400
_MOST_NAMED = 60


def scatter_part(agreement: Agreement) -> str:
    """A row of plots per set, the first one open."""
    by_system = agreement.entries[0].level == "system"
    values = {(e.data, e.subset, e.metric): e.value for e in agreement.entries}
    rows = []
    for number, each in enumerate(agreement.scored):
        name = escape(" · ".join(filter(None, (each.rated.name, each.rated.subset))))
        plots = "\n".join(
            _plot(each, metric, values[each.rated.name, each.rated.subset, metric], by_system)
            for metric in each.marks
        )
        rows.append(
            f"<details{' open' if number == 0 else ''}><summary>{name}</summary>\n"
            f'<div class="figures">\n{plots}\n</div></details>'
        )
    what = "a system" if by_system else f"an output, at most {_MOST_POINTS} of them"
    return (
        f"<section>\n<h2>Metrics against people</h2>\n<p>A point is {what}; people's rating "
        "to the right, the metric's score upwards.</p>\n" + "\n".join(rows) + "\n</section>"
    )


def _plot(scored: ScoredSet, metric: str, value: float, by_system: bool) -> str:
    rated, kept, marks = scored.rated, scored.kept, scored.marks[metric]
    names: list[str] = []
    if by_system:
        x, y = rated.by_system[kept], marks.systems[kept]
        names = [n for n, own in zip(rated.systems, kept, strict=True) if own]
    else:
        x, y = rated.ratings[kept].ravel(), marks.segments[kept].ravel()
    known = ~(np.isnan(x) | np.isnan(y))
    names = [n for n, own in zip(names, known, strict=True) if own] if names else []
    points = _placed(x[known], y[known])
    drawn = _circles(points, names) if 0 < len(names) <= _MOST_NAMED else _cloud(points)
    return (
        f"<figure><figcaption>{escape(metric)} <b>{short(value)}</b></figcaption>"
        f'<svg role="img" width="{_WIDE}" height="{_TALL}" viewBox="0 0 {_WIDE} {_TALL}">'
        f'<rect class="frame" x=".5" y=".5" width="{_WIDE - 1}" height="{_TALL - 1}"/>'
        f"{drawn}</svg></figure>"
    )


def _placed(x: Floats, y: Floats) -> Floats:
    """Where points lie in the picture: each side from its least to its greatest."""
    across = _EDGE + _shares(x) * (_WIDE - 2 * _EDGE)
    down = _TALL - _EDGE - _shares(y) * (_TALL - 2 * _EDGE)
    points: Floats = np.stack([across, down], axis=-1)
    return points


def _shares(values: Floats) -> Floats:
    if not values.size:
        return values
    spread = values.max() - values.min()
    shares: Floats = (values - values.min()) / spread if spread else np.full(values.shape, 0.5)
    return shares


def _circles(points: Floats, names: list[str]) -> str:
    return "".join(
        f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="4">'
        f"<title>{escape(name)}</title></circle>"
        for (x, y), name in zip(points, names, strict=True)
    )


def _cloud(points: Floats) -> str:
    """Points as dots of one path, thinned evenly at random, the same on every page."""
    if len(points) > _MOST_POINTS:
        some = np.random.default_rng(0).choice(len(points), _MOST_POINTS, replace=False)
        points = points[np.sort(some)]
    dots = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in points)
    return f'<path class="cloud" d="{dots}"/>'
