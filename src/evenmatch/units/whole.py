"""whole_text: a text as one unit."""

from __future__ import annotations

from dataclasses import dataclass

from evenmatch.registry import register
from evenmatch.types import Units


@register("splitter", "whole_text")
@dataclass(frozen=True)
class Whole:
    """The text uncut; an encoder with pool='mean' gives it the mean of its pieces.

    >>> Whole()("  two words ").items
    ('two words',)
    """

    def __call__(self, text: str) -> Units:
        """One unit, or none where there is nothing but spaces."""
        inner = text.strip()
        if not inner:
            return Units(text)
        start = text.index(inner)
        return Units(text, (inner,), ((start, start + len(inner)),), ((0,),))
