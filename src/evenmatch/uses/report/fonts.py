"""Fonts for any script, and what to draw where a machine has no font for a character."""

from __future__ import annotations

from functools import cache

# Where a machine has them; the first is matplotlib's own and always there.
_FAMILIES = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Noto Sans JP",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Microsoft YaHei",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "Malgun Gothic",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Nirmala UI",
    "Noto Emoji",
    "Symbola",
    "Segoe UI Emoji",
    "Arial Unicode MS",
)


@cache
def families() -> tuple[str, ...]:
    """The families of this machine to try, in order."""
    from matplotlib import font_manager

    here = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(family for family in _FAMILIES if family in here)


@cache
def _characters(family: str) -> frozenset[int]:
    from matplotlib import font_manager

    path = font_manager.findfont(family)
    return frozenset(font_manager.get_font(path).get_charmap())


def drawable(text: str) -> str:
    """The text, each character that no font here can draw replaced by its code point.

    A picture of pixels would show an empty box there, the same one for every such character.

    >>> drawable("naïve \\U000f0000")
    'naïve [F0000]'
    """
    known = [_characters(family) for family in families()]
    return "".join(
        c if any(ord(c) in characters for characters in known) else f"[{ord(c):04X}]" for c in text
    )
