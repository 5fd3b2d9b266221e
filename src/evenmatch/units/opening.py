"""opening: the token a model puts before a text, as the text's only unit."""

from __future__ import annotations

from dataclasses import dataclass

from evenmatch.registry import register
from evenmatch.types import Units


@register("splitter", "opening")
@dataclass(frozen=True)
class Opening:
    """Leave the cutting to the encoder, and of its tokens keep the first one before the text.

    In BERT and its kin it gathers what the model makes of the whole text.
    """

    def __call__(self, text: str) -> Units:
        """The whole text, marked as the encoder's to cut."""
        return Units(text, by_model=True, opening=True)
