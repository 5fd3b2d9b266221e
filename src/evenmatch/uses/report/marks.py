"""What is drawn over a heat map: pairs outlined, units without a partner hatched, a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evenmatch.scoring.aligned import Aligned

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

INK = "#212529"
LEFT_OUT = "#868e96"
STRIPE = "#adb5bd"
PAIR = "#e8590c"
_THIN, _THICK = 0.8, 3.2  # points, for a weight of 0 and of 1


def matched(aligned: Aligned) -> tuple[set[int], set[int]]:
    """The candidate's and the reference's units that have a partner."""
    pairs = aligned.pairs
    return {i for i, _, _ in pairs}, {j for _, j, _ in pairs}


def outline_pairs(axes: Axes, aligned: Aligned, cell: tuple[float, float]) -> None:
    """A frame inside the cell of each pair, heavier for a larger weight.

    `cell` is its height and width in points.
    """
    from matplotlib.patches import Rectangle

    for i, j, weight in aligned.pairs:
        line = max(_THIN, min(_line(weight), min(cell) / 4))
        down, across = 0.5 * line / cell[0], 0.5 * line / cell[1]
        corner = (j - 0.5 + across, i - 0.5 + down)
        frame = Rectangle(corner, 1 - 2 * across, 1 - 2 * down, fill=False, zorder=2.5)
        frame.set(edgecolor=PAIR, linewidth=line)
        axes.add_patch(frame)


def hatch_unmatched(axes: Axes, aligned: Aligned) -> None:
    """Stripes over the row or column of each unit that has no partner."""
    rows, columns = matched(aligned)
    style: dict[str, Any] = {
        "facecolor": "none",
        "edgecolor": LEFT_OUT,
        "hatch": "////",
        "linewidth": 0,
    }
    for i in set(range(len(aligned.candidate_units))) - rows:
        axes.axhspan(i - 0.5, i + 0.5, **style)
    for j in set(range(len(aligned.reference_units))) - columns:
        axes.axvspan(j - 0.5, j + 0.5, **style)


def explain(axes: Axes, aligned: Aligned) -> None:
    """The key below the map: only what occurs in it."""
    from matplotlib.patches import Patch

    key: list[Artist] = [
        Patch(fill=False, edgecolor=PAIR, linewidth=_line(weight), label=name)
        for weight, name in _kinds_of_pair(aligned).items()
    ]
    rows, columns = matched(aligned)
    if len(rows) < len(aligned.candidate_units) or len(columns) < len(aligned.reference_units):
        stripes = Patch(facecolor="none", edgecolor=LEFT_OUT, hatch="////", lw=0)
        stripes.set_label("no partner")
        key.append(stripes)
    below: dict[str, Any] = {"bbox_to_anchor": (0, 0), "borderaxespad": 0.8, "borderpad": 0}
    shape: dict[str, Any] = {"ncols": len(key), "handlelength": 1.6, "handleheight": 1.2}
    axes.legend(handles=key, loc="upper left", frameon=False, fontsize=9, **below, **shape)


def _kinds_of_pair(aligned: Aligned) -> dict[float, str]:
    """Weights to show in the key, with what they mean."""
    weights = {round(weight, 2) for _, _, weight in aligned.pairs}
    if weights <= {1.0}:
        return dict.fromkeys(weights, "pair")
    shares = np.concatenate([aligned.alignment.rows, aligned.alignment.cols])
    if np.isin(shares, (0.0, 1.0)).all():  # each unit has one partner, not always the same way
        return {1.0: "pair, chosen by both sides", 0.5: "pair, chosen by one side"}
    return {weight: f"pair, weight {weight:g}" for weight in (1.0, 0.5, 0.1)}


def _line(weight: float) -> float:
    return _THIN + (_THICK - _THIN) * min(weight, 1.0)
