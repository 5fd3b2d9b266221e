"""evenmatch align: one candidate against one reference, unit by unit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenmatch.cli.options import Json
from evenmatch.cli.output import say, say_json, tell
from evenmatch.data.rows import appearing, as_record
from evenmatch.scoring import ask
from evenmatch.scoring.aligned import Aligned

_PICTURES = (".svg", ".png", ".html")


def align(
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The text that is judged.")],
    reference: Annotated[
        str, typer.Argument(metavar="REFERENCE", help="The text it is judged by.")
    ],
    metric: Annotated[
        str,
        typer.Option(
            "--metric", "-m", metavar="METRIC", help="An alignment metric's name or spec."
        ),
    ] = "f_disc",
    plot: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Draw it: a .svg, .png or .html file.", show_default=False
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Show how the units of one candidate line up with those of one reference.

    Put -- before a text that begins with a dash.
    """
    if plot and not plot.lower().endswith(_PICTURES):
        raise typer.BadParameter(f"cannot draw {plot}; its name may end in {', '.join(_PICTURES)}")
    aligned = ask.align(candidate, reference, metric)
    if plot:
        draw(aligned, plot)
        tell(f"wrote {plot}")
    if json:
        say_json(document(aligned))
    else:
        say(f"{aligned}\n{aligned.signature}")


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


def draw(aligned: Aligned, path: str) -> None:
    """Draw an alignment as a picture, or as a page to look into."""
    if path.lower().endswith(".html"):
        from evenmatch.viewer.page import alignment_page

        with appearing(path) as place:
            Path(place).write_text(alignment_page(aligned), "utf-8")
        return
    from evenmatch.uses.report.heatmap import draw_alignment

    draw_alignment(aligned, path)
