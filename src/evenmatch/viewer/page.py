"""Alignments as HTML: a whole page, or the part of one that a notebook shows.

Where scripts run, one web component shows them; where none run, what it stands for is there as
plain tables and drawings.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from html import escape
from importlib.resources import files

from evenmatch.scoring.aligned import Aligned
from evenmatch.types import Score
from evenmatch.viewer.links import links
from evenmatch.viewer.shown import Shown, plain
from evenmatch.viewer.table import heat_table
from evenmatch.viewer.tree_layout import TreePair
from evenmatch.viewer.tree_picture import CAPTION, tree_part

_SCRIPTS = ("writing.js", "drawing.js", "comparing.js", "element.js", "showing.js")
_TRY = ("the the cat sat on the mat", "a cat was sitting on the mat")


def alignment_page(
    aligned: Aligned, trees: TreePair | None = None, *, also: Sequence[Shown] = ()
) -> str:
    """A page that stands alone: no other file, no request, light and dark.

    `also` are more alignments to switch to: by other metrics, of a second candidate.
    """
    own = also or [plain(aligned, "this metric", _texts(aligned), trees)]
    title = f"Alignment, score {aligned.score.value:.3f}"
    part = _component(own, _static(aligned, trees), page=True)
    return _page(title, part, "'none'")


def served_page(names: Sequence[str]) -> str:
    """The page of a server that aligns with these metrics; it asks nobody else."""
    element = _element([], names, "<p>This page needs a script to ask the server.</p>", served=True)
    return _page("evenmatch", f"{element}\n{viewer_script()}", "'self'")


def alignment_part(aligned: Aligned, trees: TreePair | None = None) -> str:
    """What a notebook shows: the component, and the same without a script inside it."""
    own = [plain(aligned, "this metric", _texts(aligned), trees)]
    return _component(own, _static(aligned, trees), page=False)


def _texts(aligned: Aligned) -> tuple[str, str]:
    return " ".join(aligned.candidate_units), " ".join(aligned.reference_units)


def _page(title: str, part: str, connect: str) -> str:
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


def _component(own: Sequence[Shown], static: str, *, page: bool) -> str:
    names = list(dict.fromkeys(one.name for one in own))
    return f"{_element(own, names, static, page=page)}\n{viewer_script()}"


def _element(
    own: Sequence[Shown],
    names: Sequence[str],
    inside: str,
    *,
    page: bool = True,
    served: bool = False,
) -> str:
    given = {
        "names": list(names),
        "shown": [asdict(one) | {"score": _plain_score(one.score)} for one in own],
        "page": page,
        "served": served,
        "try": _TRY if served else [],
    }
    # Inside a script element only "<" could end it early.
    data = json.dumps(given).replace("<", "\\u003c")
    return (
        '<evenmatch-viewer style="display:block"><script type="application/json">'
        f"{data}</script>\n{inside}\n</evenmatch-viewer>"
    )


def _plain_score(score: Score) -> dict[str, object]:
    return asdict(score) | {"flags": sorted(score.flags)}


def _static(aligned: Aligned, trees: TreePair | None) -> str:
    """The score, the trees if any, the links, the similarities and the recipe, with their style."""
    drawn = ""
    if trees:
        picture = _scrolled(tree_part(trees), "trees")
        drawn = f"<figure><figcaption>{CAPTION}</figcaption>\n{picture}</figure>\n"
    return (
        f'<div class="evenmatch">\n<style>\n{_file("style.css")}</style>\n'
        f"{_score(aligned.score)}\n{drawn}"
        "<figure><figcaption>Lines join the pairs: broader for a larger weight, fainter for a "
        "lower similarity. A dashed box has no partner.</figcaption>\n"
        f"{_scrolled(links(aligned), 'pairs of units')}</figure>\n"
        f"{_scrolled(heat_table(aligned), 'similarities of units')}\n"
        f'<p class="recipe">Metric: <code>{escape(aligned.signature)}</code></p>\n</div>'
    )


def _score(score: Score) -> str:
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


def _scrolled(content: str, name: str) -> str:
    """Content that may be wider than the window, reachable by keyboard."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{name}">{content}</div>'


def viewer_element(own: Sequence[Shown], inside: str) -> str:
    """The component as one of several parts of a page; what is `inside` shows without a script."""
    return _element(own, list(dict.fromkeys(one.name for one in own)), inside, page=False)


def viewer_style() -> str:
    """The style of what alignments are drawn with; all of it under one class."""
    return _file("style.css")


@cache
def viewer_script() -> str:
    """The component, in a scope of its own: a notebook holds it once per output."""
    style = json.dumps(_file("style.css") + _file("component/component.css"))
    parts = "\n".join(_file(f"component/{name}") for name in _SCRIPTS)
    return f"<script>\n(() => {{\nconst STYLE = {style};\n{parts}}})();\n</script>"


@cache
def _file(name: str) -> str:
    return files("evenmatch.viewer").joinpath(name).read_text("utf-8")
