"""closing: the token a model puts after a text, as the text's only unit."""

from __future__ import annotations

from dataclasses import dataclass

from evenmatch.registry import register
from evenmatch.types import Units


@register("splitter", "closing")
@dataclass(frozen=True)
class Closing:
    """Leave the cutting to the encoder, and of its tokens keep the one that closes the text.

    It has seen the whole text and stands for it (as the end-of-text token of CLIPScore does).
    """

    def __call__(self, text: str) -> Units:
        """The whole text, marked as the encoder's to cut."""
        return Units(text, by_model=True, closing=True)
