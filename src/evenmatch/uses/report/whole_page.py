"""What every page has around its parts: head, style, script, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path

from evenmatch.errors import InputError
from evenmatch.viewer.page import viewer_script, viewer_style

_SUFFIXES = (".html", ".htm")
# Whatever a text in it says, a page that was mailed asks nobody for anything.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)


def whole_page(title: str, parts: Iterable[str], *, viewer: bool = False) -> str:
    """One page that loads nothing from elsewhere; empty parts are left out.

    With `viewer`, alignments in it can be looked at.
    """
    said = escape(title)
    style = _text("page.css") + viewer_style()
    script = f"<script>\n{_text('sorting.js')}</script>\n" + (viewer_script() if viewer else "")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{said}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{said}</h1>\n" + "\n".join(filter(None, parts)) + f"\n</main>\n{script}\n"
        "</body>\n</html>\n"
    )


def section(heading: str, said: str, inside: str) -> str:
    """A part of a page; nothing where there is nothing inside."""
    about = f"<p>{escape(said)}</p>\n" if said else ""
    return f"<section>\n<h2>{escape(heading)}</h2>\n{about}{inside}\n</section>" if inside else ""


def notes_part(notes: Iterable[str], command: str = "") -> str:
    """What the numbers rest on, signatures among it, and the command that made them."""
    lines = "".join(f"<li>{escape(note)}</li>\n" for note in notes)
    made = f'<p>Made by <code class="command">{escape(command)}</code></p>\n' if command else ""
    listed = f'<ul class="notes">\n{lines}</ul>' if lines else ""
    return section("What this rests on", "", made + listed)


def scrolled(content: str, name: str) -> str:
    """Content that may be wider than the window, reachable by keyboard."""
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(name, quote=True)}">'
        f"{content}</div>"
    )


def check_page(path: str | Path) -> Path:
    """The path of a page; refused before any work is done where it is none."""
    place = Path(path)
    if place.suffix.lower() not in _SUFFIXES:
        raise InputError(
            f"a page's name ends in {' or '.join(_SUFFIXES)}, got {place.name!r}; rename it"
        )
    if not place.absolute().parent.is_dir():
        raise InputError(f"there is no folder {place.parent} for {place.name}; make it first")
    return place


def write_page(page: str, path: str | Path) -> Path:
    """Write a page and give its path."""
    place = check_page(path)
    try:
        place.write_text(page, "utf-8")
    except OSError as error:
        raise InputError(f"cannot write {place}: {error.strerror}") from None
    return place


@cache
def _text(name: str) -> str:
    return files("evenmatch.uses.report").joinpath(name).read_text("utf-8")
