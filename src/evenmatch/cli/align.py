"""evenmatch align: one candidate against one reference, unit by unit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenmatch.cli.options import Json, metric_option, optional
from evenmatch.cli.output import say_either, tell
from evenmatch.data.rows import appearing, as_record
from evenmatch.scoring import ask
from evenmatch.scoring.aligned import Aligned
from evenmatch.scoring.together import as_metric
from evenmatch.types import Metric
from evenmatch.viewer.shown import all_shown, alternatives, trees_of

if TYPE_CHECKING:
    from evenmatch.viewer.tree_layout import TreePair

_PICTURES = (".svg", ".png", ".html")


def align(
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The text that is judged.")],
    reference: Annotated[
        str, typer.Argument(metavar="REFERENCE", help="The text it is judged by.")
    ],
    metric: Annotated[str, metric_option("An alignment metric's name or spec.")] = "f_disc",
    plot: Annotated[str, optional("FILE", "Draw it: a .svg, .png or .html file.")] = "",
    also: Annotated[
        list[str] | None, optional("METRIC", "Another metric to switch to in a page.")
    ] = None,
    against: Annotated[str, optional("TEXT", "A second candidate to compare with in a page.")] = "",
    json: Json = False,
) -> None:
    """Show how the units of one candidate line up with those of one reference.

    Put -- before a text that begins with a dash.
    """
    if plot and not plot.lower().endswith(_PICTURES):
        raise typer.BadParameter(f"cannot draw {plot}; its name may end in {', '.join(_PICTURES)}")
    part = as_metric(metric)
    aligned = ask.align(candidate, reference, part)
    if plot.lower().endswith(".html"):
        others = [(name, as_metric(name)) for name in dict.fromkeys(also or ())]
        candidates = [candidate, against] if against else [candidate]
        _write(plot, _page(aligned, [(metric, part), *others], candidates, reference))
    elif plot:
        draw(aligned, plot, trees_of(part, candidate, reference, aligned))
    if plot:
        tell(f"wrote {plot}")
    say_either(f"{aligned}\n{aligned.signature}", document(aligned), json=json)


def document(aligned: Aligned) -> dict[str, Any]:
    """An alignment as JSON has it."""
    return {
        "candidate_units": aligned.candidate_units,
        "reference_units": aligned.reference_units,
        "similarity": [[float(s) for s in row] for row in aligned.similarity],
        "pairs": [list(pair) for pair in aligned.pairs],
        "score": as_record(aligned.score),
        "signature": aligned.signature,
    }


def _page(
    aligned: Aligned,
    metrics: Sequence[tuple[str, Metric]],
    candidates: Sequence[str],
    reference: str,
) -> str:
    """A page of these metrics and of the first one's other ways to align."""
    from evenmatch.viewer.page import alignment_page

    every = [*metrics, *alternatives(metrics[0][1])]
    trees = trees_of(metrics[0][1], candidates[0], reference, aligned)
    return alignment_page(aligned, trees, also=all_shown(every, candidates, reference))


def draw(aligned: Aligned, path: str, trees: TreePair | None = None) -> None:
    """Draw an alignment as a picture; trees, where there are some."""
    suffix = Path(path).suffix.lower()
    if trees and suffix == ".svg":
        from evenmatch.viewer.tree_picture import tree_file

        _write(path, tree_file(trees, f"score {aligned.score.value:.4f}"))
    elif trees:
        from evenmatch.uses.report.tree_plot import draw_trees

        draw_trees(trees, aligned, path)
    else:
        from evenmatch.uses.report.heatmap import draw_alignment

        draw_alignment(aligned, path)


def _write(path: str, text: str) -> None:
    with appearing(path) as place:
        Path(place).write_text(text, "utf-8")
