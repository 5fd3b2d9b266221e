"""Documents with keyphrases, and what systems predicted for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evenmatch.types import NO_FLAGS, Pair

SEPARATOR = ";"


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its text, the keyphrases people gave it, and each system's.

    `flags` has 'malformed' where a field could not be read as phrases or text, and was taken for
    empty.
    """

    text: str
    keyphrases: tuple[str, ...]
    predictions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flags: frozenset[str] = NO_FLAGS

    def pair(self, prediction: str) -> Pair:
        """A system's phrases against people's, as metrics take them."""
        given = self.predictions.get(prediction, ())
        return Pair(_joined(given), (_joined(self.keyphrases),), self.text)


@dataclass(frozen=True, slots=True)
class DocumentSet:
    """The documents of one test set, and what was wrong with the file they came from."""

    name: str
    documents: tuple[Document, ...]
    predictions: tuple[str, ...]
    trouble: tuple[str, ...] = ()


def _joined(phrases: Sequence[str]) -> str:
    return f"{SEPARATOR} ".join(phrases)
