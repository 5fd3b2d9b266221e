"""Two trees side by side as a PNG, from the same layout as the SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evenmatch.errors import InputError
from evenmatch.scoring.aligned import Aligned
from evenmatch.uses.report import fonts, marks
from evenmatch.uses.report.heatmap import drawing
from evenmatch.viewer.tree_layout import Link, Place, TreePair

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOTS = 100.0  # pixels of the layout to an inch


def draw_trees(pair: TreePair, aligned: Aligned, path: str | Path) -> Path:
    """Draw both trees and the links between them into a PNG file, and give the path."""
    path = Path(path)
    with drawing(quiet=False):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(pair.wide / _DOTS, pair.high / _DOTS + 0.4), facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, pair.wide), ylim=(pair.high, -0.4 * _DOTS))
        axes.axis("off")
        axes.text(10, -20, f"score {aligned.score.value:.3f}", fontsize=13, color=marks.INK)
        for places in (pair.candidate, pair.reference):
            _edges(axes, places)
        for link in pair.links:
            _link(axes, link, pair)
        joined = {link.start for link in pair.links}, {link.end for link in pair.links}
        for places, own in zip((pair.candidate, pair.reference), joined, strict=True):
            _nodes(axes, places, own)
        try:
            figure.savefig(path, dpi=144)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from None
    return path


def _edges(axes: Axes, places: Sequence[Place]) -> None:
    for place in places:
        if place.parent >= 0:
            above = places[place.parent]
            axes.plot(
                [above.x, place.x], [above.y, place.y], color=marks.STRIPE, linewidth=1, zorder=1
            )


def _link(axes: Axes, link: Link, pair: TreePair) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    a, b = pair.candidate[link.start], pair.reference[link.end]
    bend = (b.x - a.x) / 3
    points = [(a.x, a.y), (a.x + bend, a.y - 30), (b.x - bend, b.y - 30), (b.x, b.y)]
    curve = Curve(points, [Curve.MOVETO, *[Curve.CURVE4] * 3])
    axes.add_patch(
        PathPatch(
            curve,
            fill=False,
            edgecolor=marks.PAIR,
            linewidth=min(0.6 + 0.4 * len(link.pieces), 3.0),
            alpha=0.15 + 0.75 * min(link.similarity, 1.0) ** 2,
            zorder=2,
        )
    )


def _nodes(axes: Axes, places: Sequence[Place], joined: set[int]) -> None:
    for n, place in enumerate(places):
        box = {
            "boxstyle": "round,pad=0.25",
            "facecolor": "white",
            "edgecolor": marks.STRIPE,
            "linestyle": "-" if n in joined else "--",
        }
        axes.text(
            place.x,
            place.y,
            fonts.drawable(place.text),
            ha="center",
            va="center",
            fontsize=9,
            color=marks.INK,
            fontstyle="normal" if n in joined else "italic",
            bbox=box,
            zorder=3,
        )
        if place.under:
            word = fonts.drawable(place.under)
            axes.text(place.x, place.y + 28, word, ha="center", fontsize=9, color=marks.LEFT_OUT)
