"""One alignment as HTML: a whole page, or the part of one that a notebook shows."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

from evenmatch.scoring.aligned import Aligned
from evenmatch.types import Score
from evenmatch.viewer.links import links
from evenmatch.viewer.table import heat_table
from evenmatch.viewer.tree_layout import TreePair
from evenmatch.viewer.tree_picture import CAPTION, tree_part


def alignment_page(aligned: Aligned, trees: TreePair | None = None) -> str:
    """A page that stands alone: no script, no other file, light and dark."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>Alignment, score {aligned.score.value:.3f}</title>\n"
        '</head>\n<body style="margin:0">\n<main>\n'
        f"{alignment_part(aligned, '<h1>Alignment</h1>', trees)}\n</main>\n</body>\n</html>\n"
    )


def alignment_part(aligned: Aligned, heading: str = "", trees: TreePair | None = None) -> str:
    """The score, the trees if any, the links, the similarities and the recipe, with their style."""
    drawn = ""
    if trees:
        picture = _scrolled(tree_part(trees), "trees")
        drawn = f"<figure><figcaption>{CAPTION}</figcaption>\n{picture}</figure>\n"
    return (
        f'<div class="evenmatch">\n<style>\n{_style()}</style>\n{heading}\n'
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


@cache
def _style() -> str:
    return files("evenmatch.viewer").joinpath("style.css").read_text("utf-8")
