"""HTML of alignments: a whole page, a notebook cell, or one element of a larger page.

With JavaScript, a web component shows the alignment interactively. Without it, the same content is
shown as static tables and drawings. `AlignmentData` is the data of one alignment as the component
reads it: plain lists of texts and numbers.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import sha256
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
from evenmatch.units.subtrees import Constituents, Subtrees
from evenmatch.viewer.links import link_diagram, similarity_table
from evenmatch.viewer.trees import TREE_CAPTION, TreePair, lay_out_trees, tree_svg

_SCRIPTS = ("format.js", "draw.js", "compare.js", "element.js", "interact.js")
_EXAMPLE_TEXTS = ("the the cat sat on the mat", "a cat was sitting on the mat")
_DIGITS = 5  # decimals stored; the page shows at most three

_PAGE_STYLE = (
    "html{background:#fff}@media(prefers-color-scheme:dark){html{background:#16191d}}body{margin:0}"
    "h1{font:600 1.4rem system-ui,sans-serif;max-width:72rem;margin:.75rem auto 0;"
    "padding:0 .75rem;color:#212529}@media(prefers-color-scheme:dark){h1{color:#e9ecef}}"
)

# A page in a file has no server to send its policy. It sends typed text nowhere.
_FILE_POLICY = (
    """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; """
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'none'; "
    """base-uri 'none'; form-action 'none'">\n"""
)


@dataclass(frozen=True)
class AlignmentData:
    """Data of one alignment for the viewer.

    `gained` and `covered` are the credit of each candidate unit and each reference unit.
    """

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


def alignment_page(
    aligned: Aligned, trees: TreePair | None = None, *, also: Sequence[AlignmentData] = ()
) -> str:
    """Create a self-contained page: no other files, no requests, with a light and a dark theme.

    `also` lists all alignments that the page can switch between: by other metrics, or of a second
    candidate.
    """
    element = viewer_element(
        also or [_only_alignment(aligned, trees)], _static_fallback(aligned, trees), page=True
    )
    return _html_page(f"Alignment, score {aligned.score.value:.3f}", element, _FILE_POLICY)


def server_page(names: Sequence[str]) -> tuple[str, str]:
    """Create the page of a server with these metrics, and its Content-Security-Policy.

    The page runs only its own script and sends requests to no other server.
    """
    data = {"names": list(names), "shown": [], "page": True, "served": True, "try": _EXAMPLE_TEXTS}
    element = _element(data, "<p>This page needs JavaScript.</p>")
    script = viewer_script().removeprefix("<script>").removesuffix("</script>")
    policy = (
        f"default-src 'none'; style-src {_hash_source(_PAGE_STYLE)}; "
        f"script-src {_hash_source(script)}; img-src data:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )
    return _html_page("evenmatch", element), policy


def alignment_fragment(aligned: Aligned, trees: TreePair | None = None) -> str:
    """Create a notebook cell: the component, and a static version for use without JavaScript."""
    element = viewer_element([_only_alignment(aligned, trees)], _static_fallback(aligned, trees))
    return f"{element}\n{viewer_script()}"


def viewer_element(alignments: Sequence[AlignmentData], inside: str, *, page: bool = False) -> str:
    """Create the component as an element of a larger page; `inside` is shown without JavaScript.

    With `page`, it is the only content of the page.
    """
    data = {
        "names": list(dict.fromkeys(one.name for one in alignments)),
        "shown": [
            asdict(one) | {"score": asdict(one.score) | {"flags": sorted(one.score.flags)}}
            for one in alignments
        ],
        "page": page,
        "served": False,
        "try": [],
    }
    return _element(data, inside)


def viewer_style() -> str:
    """Return the style sheet of alignments; all rules are scoped to one class."""
    return _read_asset("style.css")


def scroll_region(content: str, name: str) -> str:
    """Wrap content that may be wider than the window, so that it scrolls, also by keyboard."""
    label = escape(name, quote=True)
    return f'<div class="wide" role="region" tabindex="0" aria-label="{label}">{content}</div>'


@cache
def viewer_script() -> str:
    """Return the component's script in its own scope; a notebook repeats it in each output."""
    style = json.dumps(_read_asset("style.css") + _read_asset("component/component.css"))
    parts = "\n".join(_read_asset(f"component/{name}") for name in _SCRIPTS)
    return f"<script>\n(() => {{\nconst STYLE = {style};\n{parts}}})();\n</script>"


def align_all(
    metrics: Sequence[tuple[str, Metric]], candidates: Sequence[str], reference: str
) -> list[AlignmentData]:
    """Align every candidate with the reference by every metric."""
    return [
        alignment_data_with_trees(
            align_texts(candidate, reference, metric), metric, candidate, reference, name=name
        )
        for name, metric in metrics
        for candidate in candidates
    ]


def alternative_metrics(metric: Metric) -> Iterator[tuple[str, Metric]]:
    """Yield the metric with other alignment methods for the same units, by name."""
    if isinstance(metric, AlignMetric):
        for name, solver in (("greedy", Greedy()), ("one-to-one", Lsa()), ("transport", Emd())):
            if metric.alignment != solver:
                yield f"same metric, {name} alignment", replace(metric, alignment=solver)


def alignment_data_with_trees(
    aligned: Aligned, metric: Metric, candidate: str, reference: str, *, name: str
) -> AlignmentData:
    """Collect the data of an alignment by a metric, with trees if the metric aligns subtrees."""
    trees = metric_trees(metric, candidate, reference, aligned)
    return alignment_data(aligned, name, (candidate, reference), trees)


def alignment_data(
    aligned: Aligned, name: str, texts: tuple[str, str], trees: TreePair | None = None
) -> AlignmentData:
    """Collect the data of an alignment as plain lists."""
    similarity = np.asarray(aligned.similarity, dtype=np.float64)
    rows, cols = (np.asarray(a) for a in (aligned.alignment.rows, aligned.alignment.cols))
    shape = len(aligned.candidate_units), len(aligned.reference_units)
    return AlignmentData(
        name,
        *texts,
        *aligned.labels,
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
    """Lay out the two trees if the metric aligns subtrees, else return None."""
    if isinstance(metric, AlignMetric) and isinstance(metric.units, Subtrees | Constituents):
        return lay_out_trees(metric.units, candidate, reference, aligned)
    return None


def _html_page(title: str, element: str, head: str = "") -> str:
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{head}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{_PAGE_STYLE}</style>\n"
        f"</head>\n<body>\n<main>\n<h1>Alignment</h1>\n{element}\n"
        f"{viewer_script()}\n</main>\n</body>\n</html>\n"
    )


def _hash_source(content: str) -> str:
    """Return the source expression of a policy that allows an inline element with this content."""
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def _element(data: Mapping[str, Any], inside: str) -> str:
    # Inside a script element, only "<" could end the element early.
    content = json.dumps(data).replace("<", "\\u003c")
    return (
        '<evenmatch-viewer><script type="application/json">'
        f"{content}</script>\n{inside}\n</evenmatch-viewer>"
    )


def _static_fallback(aligned: Aligned, trees: TreePair | None) -> str:
    """Static HTML with style: score, trees if any, links, similarities and signature."""
    tree_figure = ""
    if trees:
        picture = scroll_region(tree_svg(trees), "trees")
        tree_figure = f"<figure><figcaption>{TREE_CAPTION}</figcaption>\n{picture}</figure>\n"
    return (
        f'<div class="evenmatch">\n<style>\n{_read_asset("style.css")}</style>\n'
        f"{_score_html(aligned.score)}\n{tree_figure}"
        "<figure><figcaption>Lines connect matched units: wider lines have a larger weight, "
        "fainter lines a lower similarity. Dashed boxes are unmatched.</figcaption>\n"
        f"{scroll_region(link_diagram(aligned), 'pairs of units')}</figure>\n"
        f"{scroll_region(similarity_table(aligned), 'similarities of units')}\n"
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


def _only_alignment(aligned: Aligned, trees: TreePair | None) -> AlignmentData:
    """Collect the data of an alignment whose texts and metric are not known."""
    texts = " ".join(aligned.candidate_units), " ".join(aligned.reference_units)
    return alignment_data(aligned, "this metric", texts, trees)


def _round_weights(weights: Array, count: int) -> list[float]:
    rounded = np.round(np.asarray(weights, dtype=np.float64), _DIGITS)
    return rounded.tolist() if len(rounded) else [1.0] * count


@cache
def _read_asset(name: str) -> str:
    return files("evenmatch.viewer").joinpath(name).read_text("utf-8")
