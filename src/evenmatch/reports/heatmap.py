"""Alignments drawn with matplotlib: heat maps, and pairs of trees as PNG or PDF.

Colours show similarities; matched pairs are outlined and unmatched units hatched. `axis_layout`
sets cell and font sizes for long texts, and `replace_undrawable` handles characters without a font.
Trees have the layout of the viewer's SVG.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenmatch.errors import InputError, needs_extra
from evenmatch.scoring.aligned import Aligned
from evenmatch.viewer.links import matched_units, text_width, truncate, unit_label
from evenmatch.viewer.trees import NodePosition, TreeLink, TreePair

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IMAGE_SUFFIXES = (".svg", ".png", ".pdf")
_COLOUR_MAP = "Blues"
_NUMBER_WIDTH, _NUMBER_HEIGHT = 27.0, 15.0  # points, of a number in a cell
_EMPTY_SIDE = 1.6  # inches, for a side without units
_MARGIN = 2.5  # inches; empty margins are cropped when the figure is saved
_MAX_COLOUR_BAR = 3.0  # inches
INK = "#212529"
UNMATCHED_COLOUR = "#868e96"
OUTLINE_COLOUR = "#adb5bd"
PAIR_COLOUR = "#e8590c"
_THIN, _THICK = 0.8, 3.2  # points, for a weight of 0 and of 1
_MAX_SIDE = 14.0  # inches
_CELL_WIDTH, _CELL_HEIGHT = 0.62, 0.42  # inches, if they fit
_MAX_FONT, _MIN_FONT = 10.0, 4.5  # points
_POINTS_PER_INCH = 72.0
_PIXELS_PER_INCH = 100.0  # of the layout of trees

_HATCHED: dict[str, Any] = {
    "facecolor": "none",
    "edgecolor": UNMATCHED_COLOUR,
    "hatch": "////",
    "linewidth": 0,
}

# Used if installed; the first comes with matplotlib and is always available.
_FONT_FAMILIES = (
    "DejaVu Sans, Noto Sans CJK SC, Noto Sans CJK JP, Noto Sans SC, Noto Sans JP, "
    "Source Han Sans SC, WenQuanYi Zen Hei, WenQuanYi Micro Hei, Microsoft YaHei, Hiragino Sans, "
    "PingFang SC, Yu Gothic, Malgun Gothic, Noto Sans Devanagari, Noto Sans Thai, Nirmala UI, "
    "Noto Emoji, Symbola, Segoe UI Emoji, Arial Unicode MS"
).split(", ")


def draw_alignment(aligned: Aligned, path: str | Path) -> Path:
    """Plot an alignment as a heat map into an SVG, PNG or PDF file, and return the path.

    Rows are the units of the candidate, columns those of the reference. Matched pairs are outlined,
    with a thicker line for a larger weight; unmatched units are hatched and set in grey italics.
    """
    path = Path(path)
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        raise InputError(
            f"the name of a plot must end in {' or '.join(IMAGE_SUFFIXES)}, got {path.name!r}"
        )
    svg = path.suffix.lower() == ".svg"
    with matplotlib_context(path):
        # Text in an SVG is drawn with the reader's fonts, so nothing has to be replaced.
        figure = _make_figure(aligned, str if svg else replace_undrawable)
        save_figure(figure, path, bbox_inches="tight", pad_inches=0.2)
    return path


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


def save_figure(figure: Figure, path: Path, **options: Any) -> None:
    """Save a figure in the format that the suffix names, without the time, so that it repeats."""
    undated: dict[str, None] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(
        path.suffix.lower(), {}
    )
    figure.savefig(path, dpi=144, metadata=undated, **options)


@contextmanager
def matplotlib_context(path: Path) -> Iterator[None]:
    """Set matplotlib options for a plot in this file and restore them afterwards."""
    with needs_extra("plots need matplotlib; install it with: pip install 'evenmatch[plot]'"):
        import matplotlib
    ours: dict[Any, Any] = {  # matplotlib types its keys as a list of literals
        "font.family": font_families(),
        "text.parse_math": False,  # dollar signs are not math delimiters
        "text.usetex": False,
        "hatch.linewidth": 0.6,
        "svg.fonttype": "none",
        "pdf.fonttype": 42,  # text that can be searched and that journals accept
        "svg.hashsalt": "evenmatch",  # makes files reproducible
    }
    with matplotlib.rc_context(ours), warnings.catch_warnings():
        if path.suffix.lower() == ".svg":
            warnings.filterwarnings("ignore", message="Glyph")
        try:
            yield
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from None


def _make_figure(aligned: Aligned, prepare: Callable[[str], str]) -> Figure:
    from matplotlib.figure import Figure

    m, n = len(aligned.candidate_units), len(aligned.reference_units)
    rows, columns = axis_layout(m, _CELL_HEIGHT), axis_layout(n, _CELL_WIDTH)
    wide, high = columns.cell * n or _EMPTY_SIDE, rows.cell * m or _EMPTY_SIDE
    whole = wide + 2 * _MARGIN, high + 2 * _MARGIN
    figure = Figure(figsize=whole, facecolor="white")
    place = (_MARGIN / whole[0], _MARGIN / whole[1], wide / whole[0], high / whole[1])
    axes = figure.add_axes(place)
    axes.set(xlim=(-0.5, max(n, 1) - 0.5), ylim=(max(m, 1) - 0.5, -0.5))
    axes.spines[:].set_visible(False)
    if m and n:
        numbers = columns.points >= _NUMBER_WIDTH and rows.points >= _NUMBER_HEIGHT
        _draw_matrix(figure, axes, aligned.similarity, numbers=numbers)
        outline_pairs(axes, aligned, (rows.points, columns.points))
        hatch_unmatched(axes, aligned)
        draw_legend(axes, aligned)
    else:
        axes.text(0.5, 0.5, "nothing to align", transform=axes.transAxes, ha="center", va="center")
    _write_units(axes, aligned, (rows, columns), prepare)
    _write_title(axes, aligned, large=max(13.0, 1.3 * wide))
    return figure


def _draw_matrix(figure: Figure, axes: Axes, matrix: object, *, numbers: bool) -> None:
    """Draw similarities as colours with a colour bar, and as numbers if `numbers`."""
    similarity = np.asarray(matrix, dtype=np.float64)
    # Use 0 to 1 unless a value is outside, so that colours are comparable between plots.
    low, high = min(0.0, similarity.min()), max(1.0, similarity.max())
    image = axes.imshow(similarity, cmap=_COLOUR_MAP, vmin=low, vmax=high, aspect="auto")
    box = axes.get_position()
    wide, tall = figure.get_size_inches()
    long = min(box.height, _MAX_COLOUR_BAR / tall)
    scale = figure.add_axes((box.x1 + 0.25 / wide, box.y1 - long, 0.14 / wide, long))
    bar = figure.colorbar(image, cax=scale)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=2)
    bar.set_label("similarity", fontsize=9)
    if numbers:
        for (i, j), value in np.ndenumerate(similarity):
            ink = "white" if (value - low) / (high - low) > 0.6 else INK
            number = f"{round(value, 2) + 0.0:.2f}"  # without a sign before zero
            axes.text(j, i, number, ha="center", va="center", fontsize=8.5, color=ink)


def _write_units(
    axes: Axes,
    aligned: Aligned,
    sides: tuple[AxisLayout, AxisLayout],
    prepare: Callable[[str], str],
) -> None:
    """Label rows and columns with the units."""
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.xaxis.set_label_position("top")
    matched = matched_units(aligned)
    for axis, name, own, at, fit in (
        (axes.yaxis, "candidate", aligned.labels[0], matched[0], sides[0]),
        (axes.xaxis, "reference", aligned.labels[1], matched[1], sides[1]),
    ):
        written = range(0, len(own), fit.label_step)
        labels = [prepare(unit_label(own[i])) for i in written]
        axis.set_ticks(list(written), labels=labels, fontsize=fit.font)
        axis.set_label_text(name, fontsize=11)
        for i, tick in zip(written, axis.get_ticklabels(), strict=True):
            if i not in at:
                tick.set(color=UNMATCHED_COLOUR, fontstyle="italic")
    labels = [tick.get_text() for tick in axes.get_xticklabels()]
    if any(text_width(text) * sides[1].font > sides[1].points * 0.95 for text in labels):
        axes.tick_params(axis="x", rotation=90)


def _write_title(axes: Axes, aligned: Aligned, large: float) -> None:
    """Write the score in large font, and below it the spec of the metric."""
    score = aligned.score
    parts = [f"score {score.value:.3f}"]
    if score.precision is not None and score.recall is not None:
        parts += [f"precision {score.precision:.3f}", f"recall {score.recall:.3f}"]
    parts += sorted(flag.replace("_", " ") for flag in score.flags)
    recipe = truncate(aligned.signature.split(" · ")[0], 100)
    small = axes.set_title(
        recipe, fontsize=0.65 * large, color=UNMATCHED_COLOUR, loc="left", pad=10
    )
    above: dict[str, Any] = {"xycoords": small, "textcoords": "offset points"}
    axes.annotate("   ".join(parts), (0, 1), (0, 6), fontsize=large, color=INK, **above)


def outline_pairs(axes: Axes, aligned: Aligned, cell: tuple[float, float]) -> None:
    """Outline the cell of each pair, with a thicker line for a larger weight.

    `cell` is the height and width of a cell in points.
    """
    from matplotlib.patches import Rectangle

    for i, j, weight in aligned.pairs:
        line = max(_THIN, min(_line_width(weight), min(cell) / 4))
        down, across = 0.5 * line / cell[0], 0.5 * line / cell[1]
        corner = (j - 0.5 + across, i - 0.5 + down)
        frame = Rectangle(corner, 1 - 2 * across, 1 - 2 * down, fill=False, zorder=2.5)
        frame.set(edgecolor=PAIR_COLOUR, linewidth=line)
        axes.add_patch(frame)


def hatch_unmatched(axes: Axes, aligned: Aligned) -> None:
    """Hatch the row or column of each unmatched unit."""
    rows, columns = matched_units(aligned)
    for i in set(range(len(aligned.candidate_units))) - rows:
        axes.axhspan(i - 0.5, i + 0.5, **_HATCHED)
    for j in set(range(len(aligned.reference_units))) - columns:
        axes.axvspan(j - 0.5, j + 0.5, **_HATCHED)


def draw_legend(axes: Axes, aligned: Aligned) -> None:
    """Draw a legend below the heat map, with only what occurs in it."""
    from matplotlib.patches import Patch

    key: list[Artist] = [
        Patch(fill=False, edgecolor=PAIR_COLOUR, linewidth=_line_width(weight), label=name)
        for weight, name in _legend_weights(aligned).items()
    ]
    rows, columns = matched_units(aligned)
    if len(rows) < len(aligned.candidate_units) or len(columns) < len(aligned.reference_units):
        key.append(Patch(label="unmatched", **_HATCHED))
    below: dict[str, Any] = {"bbox_to_anchor": (0, 0), "borderaxespad": 0.8, "borderpad": 0}
    shape: dict[str, Any] = {"ncols": len(key), "handlelength": 1.6, "handleheight": 1.2}
    axes.legend(handles=key, loc="upper left", frameon=False, fontsize=9, **below, **shape)


def _legend_weights(aligned: Aligned) -> dict[float, str]:
    """Return the weights to show in the legend, with their labels."""
    weights = {round(weight, 2) for _, _, weight in aligned.pairs}
    if weights <= {1.0}:
        return dict.fromkeys(weights, "pair")
    shares = np.concatenate([aligned.alignment.rows, aligned.alignment.cols])
    if np.isin(shares, (0.0, 1.0)).all():  # one partner each, not always mutual
        return {1.0: "pair, chosen by both sides", 0.5: "pair, chosen by one side"}
    return {weight: f"pair, weight {weight:g}" for weight in (1.0, 0.5, 0.1)}


def _line_width(weight: float) -> float:
    return _THIN + (_THICK - _THIN) * min(weight, 1.0)


@dataclass(frozen=True, slots=True)
class AxisLayout:
    """Cell size and labels along one axis of a heat map."""

    cell: float  # inches
    font: float  # points
    label_step: int  # label every n-th unit

    @property
    def points(self) -> float:
        """Cell size in points."""
        return self.cell * _POINTS_PER_INCH


def axis_layout(count: int, largest: float) -> AxisLayout:
    """Return the layout for `count` units; for many, cells and fonts shrink, then labels thin out.

    >>> [round(axis_layout(n, 0.62).cell, 2) for n in (3, 60, 500)]
    [0.62, 0.23, 0.03]
    >>> [axis_layout(n, 0.62).label_step for n in (3, 60, 500)]
    [1, 1, 3]
    """
    cell = min(largest, _MAX_SIDE / max(count, 1))
    fitting = cell * _POINTS_PER_INCH * 0.8
    font = min(_MAX_FONT, max(_MIN_FONT, fitting))
    return AxisLayout(cell, font, max(1, math.ceil(font / fitting)))


@cache
def font_families() -> list[str]:
    """Return the installed font families to try, in order."""
    from matplotlib import font_manager

    here = {font.name for font in font_manager.fontManager.ttflist}
    return [family for family in _FONT_FAMILIES if family in here]


@cache
def _supported_characters(family: str) -> frozenset[int]:
    from matplotlib import font_manager

    path = font_manager.findfont(family)
    return frozenset(font_manager.get_font(path).get_charmap())


def replace_undrawable(text: str) -> str:
    """Replace each character that no installed font can draw by its code point.

    Otherwise a PNG would show the same empty box for every such character.

    >>> replace_undrawable("naïve \\U000f0000")
    'naïve [F0000]'
    """
    known = [_supported_characters(family) for family in font_families()]
    return "".join(
        c if any(ord(c) in characters for characters in known) else f"[{ord(c):04X}]" for c in text
    )


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
