"""A picture of one alignment: similarities as colour, the chosen pairs outlined."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenmatch.errors import InputError, MissingExtraError
from evenmatch.scoring.aligned import Aligned
from evenmatch.uses.report import fonts, marks
from evenmatch.uses.report.layout import Side, side
from evenmatch.viewer.labels import label, shorten, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
_COLOURS = "Blues"
_NUMBER = (27.0, 15.0)  # points of width and height that a printed similarity needs
_ROOM = 1.6  # inches; what stands for a side without units
_MARGIN = 2.5  # inches; what is not written on is cut off when the figure is saved
_LONGEST_SCALE = 3.0  # inches


def draw_alignment(aligned: Aligned, path: str | Path) -> Path:
    """Draw an alignment into an SVG or PNG file, by its suffix, and give the path.

    Rows are the candidate's units, columns the reference's. A pair is outlined, the more heavily
    the larger its weight; a unit without a partner is hatched and written in grey italics.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"a picture's name ends in {' or '.join(SUFFIXES)}, got {path.name!r}; rename it"
        )
    svg = path.suffix.lower() == ".svg"
    with drawing(quiet=svg):
        # In an SVG text stays text, and the reader's fonts draw it, whatever ours lack.
        figure = _picture(aligned, (lambda text: text) if svg else fonts.drawable)
        try:
            figure.savefig(
                path,
                dpi=144,
                bbox_inches="tight",
                pad_inches=0.2,
                metadata={"Date": None} if svg else {},
            )
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from None
    return path


@contextmanager
def drawing(*, quiet: bool) -> Iterator[None]:
    """Matplotlib as these pictures need it, and as it was afterwards."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError(
            "pictures need matplotlib; install it with: pip install 'evenmatch[plot]'"
        ) from None
    ours: dict[Any, Any] = {  # matplotlib types its keys as a list of literals
        "font.family": list(fonts.families()),
        "text.parse_math": False,  # a dollar sign is a dollar sign
        "text.usetex": False,
        "hatch.linewidth": 0.6,
        "svg.fonttype": "none",
        "svg.hashsalt": "evenmatch",  # the same alignment gives the same file
    }
    with matplotlib.rc_context(ours), warnings.catch_warnings():
        if quiet:
            warnings.filterwarnings("ignore", message="Glyph")
        yield


def _picture(aligned: Aligned, drawn: Callable[[str], str]) -> Figure:
    from matplotlib.figure import Figure

    m, n = len(aligned.candidate_units), len(aligned.reference_units)
    rows, columns = side(m, wide=False), side(n, wide=True)
    wide, high = columns.cell * n or _ROOM, rows.cell * m or _ROOM
    whole = wide + 2 * _MARGIN, high + 2 * _MARGIN
    figure = Figure(figsize=whole, facecolor="white")
    place = (_MARGIN / whole[0], _MARGIN / whole[1], wide / whole[0], high / whole[1])
    axes = figure.add_axes(place)
    axes.set(xlim=(-0.5, max(n, 1) - 0.5), ylim=(max(m, 1) - 0.5, -0.5))
    axes.spines[:].set_visible(False)
    if m and n:
        _colour(figure, axes, aligned.similarity, numbers=_fits(columns, rows))
        marks.outline_pairs(axes, aligned, (rows.points, columns.points))
        marks.hatch_unmatched(axes, aligned)
        marks.explain(axes, aligned)
    else:
        axes.text(0.5, 0.5, "nothing to align", transform=axes.transAxes, ha="center", va="center")
    _write_units(axes, aligned, (rows, columns), drawn)
    _write_title(axes, aligned, large=max(13.0, 1.3 * wide))
    return figure


def _fits(columns: Side, rows: Side) -> bool:
    return columns.points >= _NUMBER[0] and rows.points >= _NUMBER[1]


def _colour(figure: Figure, axes: Axes, matrix: object, *, numbers: bool) -> None:
    """Similarities as colour, with a scale beside them; as numbers too, where these fit."""
    similarity = np.asarray(matrix, dtype=np.float64)
    # From 0 to 1 unless a value lies outside, so that the colours of two pictures compare.
    low, high = min(0.0, similarity.min()), max(1.0, similarity.max())
    image = axes.imshow(similarity, cmap=_COLOURS, vmin=low, vmax=high, aspect="auto")
    box = axes.get_position()
    wide, tall = figure.get_size_inches()
    long = min(box.height, _LONGEST_SCALE / tall)
    scale = figure.add_axes((box.x1 + 0.25 / wide, box.y1 - long, 0.14 / wide, long))
    bar = figure.colorbar(image, cax=scale)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=2)
    bar.set_label("similarity", fontsize=9)
    if numbers:
        for (i, j), value in np.ndenumerate(similarity):
            ink = "white" if (value - low) / (high - low) > 0.6 else marks.INK
            axes.text(j, i, _number(value), ha="center", va="center", fontsize=8.5, color=ink)


def _number(value: float) -> str:
    """Two digits, and no sign before a zero."""
    return f"{round(value, 2) + 0.0:.2f}"


def _write_units(
    axes: Axes, aligned: Aligned, sides: tuple[Side, Side], drawn: Callable[[str], str]
) -> None:
    """The units beside their rows and above their columns."""
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.xaxis.set_label_position("top")
    names = ("candidate", "reference")
    units = (aligned.candidate_units, aligned.reference_units)
    matched = marks.matched(aligned)
    for axis, name, own, at, fit in zip(
        (axes.yaxis, axes.xaxis), names, units, matched, sides, strict=True
    ):
        written = range(0, len(own), fit.step)
        labels = [drawn(label(own[i])) for i in written]
        axis.set_ticks(list(written), labels=labels, fontsize=fit.font)
        axis.set_label_text(name, fontsize=11)
        for i, tick in zip(written, axis.get_ticklabels(), strict=True):
            if i not in at:
                tick.set(color=marks.LEFT_OUT, fontstyle="italic")
    labels = [tick.get_text() for tick in axes.get_xticklabels()]
    if any(width(text) * sides[1].font > sides[1].points * 0.95 for text in labels):
        axes.tick_params(axis="x", rotation=90)


def _write_title(axes: Axes, aligned: Aligned, large: float) -> None:
    """The score in large letters above everything, and the metric that gave it in small ones."""
    score = aligned.score
    parts = [f"score {score.value:.3f}"]
    if score.precision is not None and score.recall is not None:
        parts += [f"precision {score.precision:.3f}", f"recall {score.recall:.3f}"]
    parts += sorted(flag.replace("_", " ") for flag in score.flags)
    recipe = shorten(aligned.signature.split(" · ")[0], 100)
    small = axes.set_title(recipe, fontsize=0.65 * large, color=marks.LEFT_OUT, loc="left", pad=10)
    above: dict[str, Any] = {"xycoords": small, "textcoords": "offset points"}
    axes.annotate("   ".join(parts), (0, 1), (0, 6), fontsize=large, color=marks.INK, **above)
