"""Units as they are written in pictures and pages: on one line, printable, short."""

from __future__ import annotations

import unicodedata

LONGEST_LABEL = 18


def label(unit: str) -> str:
    """A unit on one line, without control characters, cut where it is long.

    >>> label("an extraordinarily long unit"), label("\\t")
    ('an extraordinaril…', '(blank)')
    """
    return shorten(printable(unit), LONGEST_LABEL)


def printable(unit: str) -> str:
    """A unit on one line, without control characters, and never nothing at all."""
    clean = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in unit)
    return " ".join(clean.split()) or "(blank)"


def shorten(text: str, longest: int) -> str:
    """The text, cut to so many characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def width(text: str) -> float:
    """How wide a text is drawn, in sizes of its font, roughly.

    >>> width("cat"), width("猫")
    (1.8, 1.0)
    """
    return round(sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.6 for c in text), 1)
