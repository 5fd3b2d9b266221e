"""The words a generator can write by itself; others it can copy from the document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from evenmatch.errors import InputError
from evenmatch.uses.train.catseq_words import END, MARKS, NEXT, PAD, SPLIT, START, UNKNOWN, Example

PAD_ID, START_ID, END_ID, UNKNOWN_ID, NEXT_ID, SPLIT_ID = (
    MARKS.index(mark) for mark in (PAD, START, END, UNKNOWN, NEXT, SPLIT)
)


@dataclass(frozen=True)
class Vocabulary:
    """Words by number, marks first.

    Other words of a document get numbers above these for as long as it is read.
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.words[: len(MARKS)] != MARKS or len(set(self.words)) != len(self.words):
            raise InputError(
                f"a vocabulary starts with {' '.join(MARKS)} and has no word twice; "
                "make one with vocabulary_of"
            )

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def known(self, words: Sequence[str]) -> list[int]:
        """The numbers of words, that of `<unk>` for one that has none."""
        return [self.numbers.get(word, UNKNOWN_ID) for word in words]

    def strange(self, words: Sequence[str]) -> tuple[str, ...]:
        """The words of a document that have no number, each once, in order."""
        return tuple(dict.fromkeys(word for word in words if word not in self.numbers))

    def extended(self, words: Sequence[str], strange: Sequence[str]) -> list[int]:
        """The numbers of words, where those strange to us have numbers for the time being."""
        own = {word: len(self) + place for place, word in enumerate(strange)}
        return [self.numbers.get(word, own.get(word, UNKNOWN_ID)) for word in words]

    def word(self, number: int, strange: Sequence[str]) -> str:
        """The word of a number, which may be one for the time being."""
        return self.words[number] if number < len(self) else strange[number - len(self)]


def vocabulary_of(examples: Sequence[Example], size: int) -> Vocabulary:
    """The most frequent words of documents and phrases, so many with the marks."""
    if size <= len(MARKS):
        raise InputError(f"a vocabulary needs more than its {len(MARKS)} marks, got {size} words")
    counts: Counter[str] = Counter()
    for each in examples:
        counts.update(each.words)
        counts.update(chain.from_iterable((*each.present, *each.absent)))
    # Ties by the alphabet, so that the order of documents settles nothing.
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return Vocabulary((*MARKS, *ranked[: size - len(MARKS)]))
