"""Alignments as HTML: a whole page, or the part of one that a notebook shows.

Where scripts run, one web component shows them; where none run, what it stands for is there as
plain tables and drawings.

One alignment as the viewer takes it: plain lists of texts and numbers.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from evenmatch.alignment.assignment import Greedy, Lsa
from evenmatch.alignment.transport import Emd
from evenmatch.protocols import Metric
from evenmatch.scoring.aligned import Aligned, align_texts
from evenmatch.scoring.metric import AlignMetric
from evenmatch.types import Array, Score
from evenmatch.viewer.links import link_diagram, similarity_table
from evenmatch.viewer.trees import TREE_CAPTION, TreePair, has_trees, lay_out_trees, tree_svg

_SCRIPTS = ("writing.js", "drawing.js", "comparing.js", "element.js", "showing.js")


_EXAMPLE_TEXTS = ("the the cat sat on the mat", "a cat was sitting on the mat")


def alignment_page(
    aligned: Aligned, trees: TreePair | None = None, *, also: Sequence[AlignmentData] = ()
) -> str:
    """A page that stands alone: no other file, no request, light and dark.

    `also` are more alignments to switch to: by other metrics, of a second candidate.
    """
    own = also or [alignment_data(aligned, "this metric", _join_units(aligned), trees)]
    title = f"Alignment, score {aligned.score.value:.3f}"
    part = _component(own, _static_fallback(aligned, trees), page=True)
    return _html_page(title, part, "'none'")


def server_page(names: Sequence[str]) -> str:
    """The page of a server that aligns with these metrics; it asks nobody else."""
    element = _element([], names, "<p>This page needs a script to ask the server.</p>", served=True)
    return _html_page("evenmatch", f"{element}\n{viewer_script()}", "'self'")


def alignment_fragment(aligned: Aligned, trees: TreePair | None = None) -> str:
    """What a notebook shows: the component, and the same without a script inside it."""
    own = [alignment_data(aligned, "this metric", _join_units(aligned), trees)]
    return _component(own, _static_fallback(aligned, trees), page=False)


def _join_units(aligned: Aligned) -> tuple[str, str]:
    return " ".join(aligned.candidate_units), " ".join(aligned.reference_units)


def _html_page(title: str, part: str, connect: str) -> str:
    # The policy makes sure that nothing typed here can leave the page but to its own server.
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
        f"img-src data:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n"
        "<style>html{background:#fff}@media(prefers-color-scheme:dark){html{background:#16191d}}"
        "h1{font:600 1.4rem system-ui,sans-serif;max-width:72rem;margin:.75rem auto 0;"
        "padding:0 .75rem;color:#212529}@media(prefers-color-scheme:dark){h1{color:#e9ecef}}"
        "</style>\n"
        f'</head>\n<body style="margin:0">\n<main>\n<h1>Alignment</h1>\n{part}\n'
        "</main>\n</body>\n</html>\n"
    )


def _component(own: Sequence[AlignmentData], static: str, *, page: bool) -> str:
    names = list(dict.fromkeys(one.name for one in own))
    return f"{_element(own, names, static, page=page)}\n{viewer_script()}"


def _element(
    own: Sequence[AlignmentData],
    names: Sequence[str],
    inside: str,
    *,
    page: bool = True,
    served: bool = False,
) -> str:
    given = {
        "names": list(names),
        "shown": [asdict(one) | {"score": _score_record(one.score)} for one in own],
        "page": page,
        "served": served,
        "try": _EXAMPLE_TEXTS if served else [],
    }
    # Inside a script element only "<" could end it early.
    data = json.dumps(given).replace("<", "\\u003c")
    return (
        '<evenmatch-viewer style="display:block"><script type="application/json">'
        f"{data}</script>\n{inside}\n</evenmatch-viewer>"
    )


def _score_record(score: Score) -> dict[str, object]:
    return asdict(score) | {"flags": sorted(score.flags)}


def _static_fallback(aligned: Aligned, trees: TreePair | None) -> str:
    """The score, the trees if any, the links, the similarities and the recipe, with their style."""
    drawn = ""
    if trees:
        picture = _scrollable(tree_svg(trees), "trees")
        drawn = f"<figure><figcaption>{TREE_CAPTION}</figcaption>\n{picture}</figure>\n"
    return (
        f'<div class="evenmatch">\n<style>\n{_read_asset("style.css")}</style>\n'
        f"{_score_html(aligned.score)}\n{drawn}"
        "<figure><figcaption>Lines join the pairs: broader for a larger weight, fainter for a "
        "lower similarity. A dashed box has no partner.</figcaption>\n"
        f"{_scrollable(link_diagram(aligned), 'pairs of units')}</figure>\n"
        f"{_scrollable(similarity_table(aligned), 'similarities of units')}\n"
        f'<p class="recipe">Metric: <code>{escape(aligned.signature)}</code></p>\n</div>'
    )


def _score_html(score: Score) -> str:
    named = {"score": score.value, "precision": score.precision, "recall": score.recall}
    numbers = "".join(
        f"<span>{name} <strong>{value:.4f}</strong></span>"
        for name, value in named.items()
        if value is not None
    )
    text = f'<p class="score">{numbers}</p>'
    if score.flags:
        flags = ", ".join(sorted(flag.replace("_", " ") for flag in score.flags))
        text += f'\n<p class="flags">Note: {escape(flags)}.</p>'
    return text


def _scrollable(content: str, name: str) -> str:
    """Content that may be wider than the window, reachable by keyboard."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{name}">{content}</div>'


def viewer_element(own: Sequence[AlignmentData], inside: str) -> str:
    """The component as one of several parts of a page; what is `inside` shows without a script."""
    return _element(own, list(dict.fromkeys(one.name for one in own)), inside, page=False)


def viewer_style() -> str:
    """The style of what alignments are drawn with; all of it under one class."""
    return _read_asset("style.css")


@cache
def viewer_script() -> str:
    """The component, in a scope of its own: a notebook holds it once per output."""
    style = json.dumps(_read_asset("style.css") + _read_asset("component/component.css"))
    parts = "\n".join(_read_asset(f"component/{name}") for name in _SCRIPTS)
    return f"<script>\n(() => {{\nconst STYLE = {style};\n{parts}}})();\n</script>"


@cache
def _read_asset(name: str) -> str:
    return files("evenmatch.viewer").joinpath(name).read_text("utf-8")


_DIGITS = 5  # a page shows three


@dataclass(frozen=True)
class AlignmentData:
    """An alignment to look at; `gained` and `covered` are the credit of each unit."""

    name: str
    candidate: str
    reference: str
    candidate_units: list[str]
    reference_units: list[str]
    similarity: list[list[float]]
    pairs: list[tuple[int, int, float]]
    gained: list[float]
    covered: list[float]
    candidate_weights: list[float]
    reference_weights: list[float]
    score: Score
    signature: str
    trees: str = ""


def alignment_data_with_trees(
    aligned: Aligned, metric: Metric, candidate: str, reference: str, *, name: str
) -> AlignmentData:
    """An alignment by a metric, with its trees where it has some, under the name it goes by."""
    trees = metric_trees(metric, candidate, reference, aligned)
    return alignment_data(aligned, name, (candidate, reference), trees)


def alignment_data(
    aligned: Aligned, name: str, texts: tuple[str, str], trees: TreePair | None = None
) -> AlignmentData:
    """An alignment as lists of numbers."""
    similarity = np.asarray(aligned.similarity, dtype=np.float64)
    rows, cols = (np.asarray(a) for a in (aligned.alignment.rows, aligned.alignment.cols))
    shape = len(aligned.candidate_units), len(aligned.reference_units)
    return AlignmentData(
        name,
        *texts,
        aligned.candidate_units,
        aligned.reference_units,
        np.round(similarity, _DIGITS).reshape(shape).tolist(),
        [(i, j, round(weight, _DIGITS)) for i, j, weight in aligned.pairs],
        np.round((rows * similarity).sum(1), _DIGITS).tolist(),
        np.round((cols * similarity).sum(0), _DIGITS).tolist(),
        _round_weights(aligned.candidate_weights, shape[0]),
        _round_weights(aligned.reference_weights, shape[1]),
        aligned.score,
        aligned.signature,
        tree_svg(trees) if trees else "",
    )


def metric_trees(
    metric: Metric, candidate: str, reference: str, aligned: Aligned
) -> TreePair | None:
    """The two trees laid out, where the metric aligns pieces of trees."""
    if not isinstance(metric, AlignMetric) or not has_trees(metric.units):
        return None
    splitter: Any = metric.units
    return lay_out_trees(splitter, candidate, reference, aligned)


def alternative_metrics(metric: Metric) -> Iterator[tuple[str, Metric]]:
    """The metric with every other way to align the same units, by name."""
    if isinstance(metric, AlignMetric):
        for name, solver in (("greedy", Greedy()), ("one-to-one", Lsa()), ("transport", Emd())):
            if metric.alignment != solver:
                yield f"{name}, else the same", dataclasses.replace(metric, alignment=solver)


def align_all(
    metrics: Sequence[tuple[str, Metric]], candidates: Sequence[str], reference: str
) -> list[AlignmentData]:
    """Every candidate aligned by every metric."""
    return [
        alignment_data_with_trees(
            align_texts(candidate, reference, metric), metric, candidate, reference, name=name
        )
        for name, metric in metrics
        for candidate in candidates
    ]


def _round_weights(given: Array, count: int) -> list[float]:
    found = np.asarray(given, dtype=np.float64)
    return np.round(found, _DIGITS).tolist() if len(found) else [1.0] * count
