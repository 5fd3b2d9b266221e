"""Documents as a keyphrase generator reads and writes them: words, present phrases, absent ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evenmatch.data.documents import Document
from evenmatch.errors import InputError
from evenmatch.units.stemming import stemmer

Words: TypeAlias = tuple[str, ...]

PAD, START, END, UNKNOWN, NEXT, SPLIT = "<pad>", "<bos>", "<eos>", "<unk>", "<sep>", "<peos>"
MARKS = (PAD, START, END, UNKNOWN, NEXT, SPLIT)
_WORD = re.compile(r"<\w+>|[^\W_]+(?:'[^\W_]+)?|[.,()]")
_NUMBER = "<digit>"


@dataclass(frozen=True, slots=True)
class Example:
    """A document's words, its phrases that stand in it, by place, and those that do not."""

    words: Words
    present: tuple[Words, ...] = ()
    absent: tuple[Words, ...] = ()

    @property
    def target(self) -> Words:
        """What is to be written: phrases with marks between them, and one at the end.

        >>> " ".join(Example((), (("a", "b"), ("c",)), (("d",),)).target)
        'a b <sep> c <peos> d <eos>'
        """
        return (*_between(self.present), SPLIT, *_between(self.absent), END)


def words_of(text: str) -> Words:
    """Words in lower case, numbers as one word, and the signs that part sentences.

    >>> words_of("Fast 3-D parsing, e.g. by GPU (2x)")
    ('fast', '<digit>', 'd', 'parsing', ',', 'e', '.', 'g', '.', 'by', 'gpu', '(', '2x', ')')
    """
    found = (word for word in _WORD.findall(text.lower()) if word not in MARKS)
    return tuple(_NUMBER if word.isdigit() else word for word in found)


def example_of(document: Document, longest: int) -> Example:
    """A document to read; words beyond the longest are not read.

    A phrase is present when its stems stand in a row among those of the words that are read.
    """
    words = words_of(document.text)[:longest]
    stems = [stemmer().stem(word) for word in words]
    phrases = dict.fromkeys(filter(None, map(words_of, document.keyphrases)))
    places = {phrase: _place(phrase, stems) for phrase in phrases}
    present = sorted((p for p in phrases if places[p] >= 0), key=places.__getitem__)
    return Example(words, tuple(present), tuple(p for p in phrases if places[p] < 0))


def examples_of(
    documents: Iterable[Document], *, longest: int = 400, most_phrases: int = 14
) -> list[Example]:
    """Documents to learn from: those too long, with too many phrases or without any are left out.

    The limits are those of Chan et al. (2019).
    """
    found = []
    for document in documents:
        example = example_of(document, longest + 1)
        phrases = len(example.present) + len(example.absent)
        if example.words and len(example.words) <= longest and 0 < phrases <= most_phrases:
            found.append(example)
    if not found:
        raise InputError(
            f"there is no document with at most {longest} words and 1 to {most_phrases} keyphrases "
            "to learn from; give others, or raise longest or most_phrases"
        )
    return found


def groups_of(words: Iterable[str]) -> tuple[tuple[Words, ...], tuple[Words, ...]]:
    """The present and the absent phrases in what was written; all are present without a mark.

    A second mark between present and absent only ends a phrase; phrases without a word are none.

    >>> groups_of("a b <sep> c <peos> d <eos>".split())
    ((('a', 'b'), ('c',)), (('d',),))
    >>> groups_of("a <sep> <sep> b".split())
    ((('a',), ('b',)), ())
    """
    groups: list[list[Words]] = [[], []]
    phrase: list[str] = []
    group = 0
    for word in (*words, END):
        if word in (NEXT, SPLIT, END):
            if phrase:
                groups[group].append(tuple(phrase))
            phrase = []
            group = 1 if word == SPLIT else group
            if word == END:
                break
        else:
            phrase.append(word)
    return tuple(groups[0]), tuple(groups[1])


def _between(phrases: Sequence[Words]) -> Iterator[str]:
    for number, phrase in enumerate(phrases):
        if number:
            yield NEXT
        yield from phrase


def _place(phrase: Words, stems: Sequence[str]) -> int:
    """Where the phrase first stands, or -1."""
    wanted = [stemmer().stem(word) for word in phrase]
    starts = range(len(stems) - len(wanted) + 1)
    return next((i for i in starts if stems[i : i + len(wanted)] == wanted), -1)
