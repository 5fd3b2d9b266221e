"""Plot of two aligned trees as PNG or PDF, with the same layout as the SVG of the viewer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evenmatch.reports.heatmap import (
    INK,
    OUTLINE_COLOUR,
    PAIR_COLOUR,
    UNMATCHED_COLOUR,
    matplotlib_context,
    replace_undrawable,
    save_figure,
)
from evenmatch.scoring.aligned import Aligned
from evenmatch.viewer.trees import NodePosition, TreeLink, TreePair

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_PIXELS_PER_INCH = 100.0  # of the layout


def draw_trees(pair: TreePair, aligned: Aligned, path: str | Path) -> Path:
    """Plot both trees and the links between them into a PNG or PDF file, and return the path."""
    path = Path(path)
    with matplotlib_context(path):
        from matplotlib.figure import Figure

        figure = Figure(
            figsize=(pair.width / _PIXELS_PER_INCH, pair.height / _PIXELS_PER_INCH + 0.4),
            facecolor="white",
        )
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, pair.width), ylim=(pair.height, -0.4 * _PIXELS_PER_INCH))
        axes.axis("off")
        axes.text(10, -20, f"score {aligned.score.value:.3f}", fontsize=13, color=INK)
        _draw_tree(axes, pair.candidate, {link.start for link in pair.links})
        _draw_tree(axes, pair.reference, {link.end for link in pair.links})
        for link in pair.links:
            _draw_link(axes, link)
        for name, x, y in pair.names:
            axes.text(x, y, name, fontsize=10, fontweight="bold", color=UNMATCHED_COLOUR)
        save_figure(figure, path)
    return path


def _draw_link(axes: Axes, link: TreeLink) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    line = Curve(link.points, [Curve.MOVETO, *[Curve.LINETO] * (len(link.points) - 1)])
    axes.add_patch(
        PathPatch(
            line,
            fill=False,
            edgecolor=PAIR_COLOUR,
            linewidth=min(0.6 + 0.4 * len(link.pieces), 3.0),
            alpha=0.15 + 0.75 * min(link.similarity, 1.0) ** 2,
            zorder=2,
        )
    )


def _draw_tree(axes: Axes, nodes: Sequence[NodePosition], joined: set[int]) -> None:
    for n, node in enumerate(nodes):
        if node.parent >= 0:
            above = nodes[node.parent]
            ends = [above.x, node.x], [above.y, node.y]
            axes.plot(*ends, color=OUTLINE_COLOUR, linewidth=1, zorder=1)
        box = {
            "boxstyle": "round,pad=0.25",
            "facecolor": "white",
            "edgecolor": OUTLINE_COLOUR,
            "linestyle": "-" if n in joined else "--",
        }
        axes.text(
            node.x,
            node.y,
            replace_undrawable(node.text),
            ha="center",
            va="center",
            fontsize=9,
            color=INK,
            fontstyle="normal" if n in joined else "italic",
            bbox=box,
            zorder=3,
        )
        if node.word:
            word = replace_undrawable(node.word)
            axes.text(node.x, node.y + 28, word, ha="center", fontsize=9, color=UNMATCHED_COLOUR)
