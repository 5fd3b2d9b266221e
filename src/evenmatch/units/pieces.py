"""pieces: the sub-words of whatever model encodes the text, which is BERTScore's unit."""

from __future__ import annotations

from dataclasses import dataclass

from evenmatch.registry import register
from evenmatch.types import Units


@register("splitter", "pieces")
@dataclass(frozen=True)
class Pieces:
    """Leave the cutting to the encoder's own tokenizer.

    With `marks`, its opening and closing tokens are units too: others can be matched to them, but
    they carry no weight of their own (bert_score's way).
    """

    marks: bool = False

    def __call__(self, text: str) -> Units:
        """The whole text, marked as the encoder's to cut."""
        return Units(text, by_model=True, marks=self.marks)
