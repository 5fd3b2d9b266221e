"""Documents as a keyphrase generator reads and writes them: words, present phrases, absent ones.

The words a generator can write by itself; others it can copy from the document.

Examples side by side as tensors, padded to one length.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeAlias

import numpy as np

from evenmatch.data.documents import Document
from evenmatch.errors import InputError
from evenmatch.training.loop import FitSettings, length_grouped_batches
from evenmatch.types import Array
from evenmatch.units.keyphrases import get_stemmer

WordSequence: TypeAlias = tuple[str, ...]


PAD, START, END, UNKNOWN, NEXT, SPLIT = "<pad>", "<bos>", "<eos>", "<unk>", "<sep>", "<peos>"


SPECIAL_TOKENS = (PAD, START, END, UNKNOWN, NEXT, SPLIT)


_WORD = re.compile(r"<\w+>|[^\W_]+(?:'[^\W_]+)?|[.,()]")


_DIGIT_TOKEN = "<digit>"


@dataclass(frozen=True, slots=True)
class KeyphraseExample:
    """A document's words, its phrases that stand in it, by place, and those that do not."""

    words: WordSequence
    present: tuple[WordSequence, ...] = ()
    absent: tuple[WordSequence, ...] = ()

    @property
    def target(self) -> WordSequence:
        """What is to be written: phrases with marks between them, and one at the end.

        >>> " ".join(KeyphraseExample((), (("a", "b"), ("c",)), (("d",),)).target)
        'a b <sep> c <peos> d <eos>'
        """
        return (*_join_with_separator(self.present), SPLIT, *_join_with_separator(self.absent), END)


def tokenize_text(text: str) -> WordSequence:
    """Words in lower case, numbers as one word, and the signs that part sentences.

    >>> tokenize_text("Fast 3-D parsing, e.g. by GPU (2x)")
    ('fast', '<digit>', 'd', 'parsing', ',', 'e', '.', 'g', '.', 'by', 'gpu', '(', '2x', ')')
    """
    found = (word for word in _WORD.findall(text.lower()) if word not in SPECIAL_TOKENS)
    return tuple(_DIGIT_TOKEN if word.isdigit() else word for word in found)


def make_keyphrase_example(document: Document, longest: int) -> KeyphraseExample:
    """A document to read; words beyond the longest are not read.

    A phrase is present when its stems stand in a row among those of the words that are read.
    """
    words = tokenize_text(document.text)[:longest]
    stems = [get_stemmer().stem(word) for word in words]
    phrases = dict.fromkeys(filter(None, map(tokenize_text, document.keyphrases)))
    places = {phrase: _find_phrase(phrase, stems) for phrase in phrases}
    present = sorted((p for p in phrases if places[p] >= 0), key=places.__getitem__)
    return KeyphraseExample(words, tuple(present), tuple(p for p in phrases if places[p] < 0))


def make_keyphrase_examples(
    documents: Iterable[Document], *, longest: int = 400, most_phrases: int = 14
) -> list[KeyphraseExample]:
    """Documents to learn from: those too long, with too many phrases or without any are left out.

    The limits are those of Chan et al. (2019).
    """
    found = []
    for document in documents:
        example = make_keyphrase_example(document, longest + 1)
        phrases = len(example.present) + len(example.absent)
        if example.words and len(example.words) <= longest and 0 < phrases <= most_phrases:
            found.append(example)
    if not found:
        raise InputError(
            f"there is no document with at most {longest} words and 1 to {most_phrases} keyphrases "
            "to learn from; give others, or raise longest or most_phrases"
        )
    return found


def parse_phrases(
    words: Iterable[str],
) -> tuple[tuple[WordSequence, ...], tuple[WordSequence, ...]]:
    """The present and the absent phrases in what was written; all are present without a mark.

    A second mark between present and absent only ends a phrase; phrases without a word are none.

    >>> parse_phrases("a b <sep> c <peos> d <eos>".split())
    ((('a', 'b'), ('c',)), (('d',),))
    >>> parse_phrases("a <sep> <sep> b".split())
    ((('a',), ('b',)), ())
    """
    groups: list[list[WordSequence]] = [[], []]
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


def _join_with_separator(phrases: Sequence[WordSequence]) -> Iterator[str]:
    for number, phrase in enumerate(phrases):
        if number:
            yield NEXT
        yield from phrase


def _find_phrase(phrase: WordSequence, stems: Sequence[str]) -> int:
    """Where the phrase first stands, or -1."""
    wanted = [get_stemmer().stem(word) for word in phrase]
    starts = range(len(stems) - len(wanted) + 1)
    return next((i for i in starts if stems[i : i + len(wanted)] == wanted), -1)


PAD_ID, START_ID, END_ID, UNKNOWN_ID, NEXT_ID, SPLIT_ID = (
    SPECIAL_TOKENS.index(mark) for mark in (PAD, START, END, UNKNOWN, NEXT, SPLIT)
)


@dataclass(frozen=True)
class Vocabulary:
    """Words by number, marks first.

    Other words of a document get numbers above these for as long as it is read.
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.words[: len(SPECIAL_TOKENS)] != SPECIAL_TOKENS or len(set(self.words)) != len(
            self.words
        ):
            raise InputError(
                f"a vocabulary starts with {' '.join(SPECIAL_TOKENS)} and has no word twice; "
                "make one with vocabulary_of"
            )

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def encode(self, words: Sequence[str]) -> list[int]:
        """The numbers of words, that of `<unk>` for one that has none."""
        return [self.word_ids.get(word, UNKNOWN_ID) for word in words]

    def unknown_words(self, words: Sequence[str]) -> tuple[str, ...]:
        """The words of a document that have no number, each once, in order."""
        return tuple(dict.fromkeys(word for word in words if word not in self.word_ids))

    def encode_extended(self, words: Sequence[str], strange: Sequence[str]) -> list[int]:
        """The numbers of words, where those strange to us have numbers for the time being."""
        own = {word: len(self) + place for place, word in enumerate(strange)}
        return [self.word_ids.get(word, own.get(word, UNKNOWN_ID)) for word in words]

    def word(self, number: int, strange: Sequence[str]) -> str:
        """The word of a number, which may be one for the time being."""
        return self.words[number] if number < len(self) else strange[number - len(self)]


def build_vocabulary(examples: Sequence[KeyphraseExample], size: int) -> Vocabulary:
    """The most frequent words of documents and phrases, so many with the marks."""
    if size <= len(SPECIAL_TOKENS):
        raise InputError(
            f"a vocabulary needs more than its {len(SPECIAL_TOKENS)} marks, got {size} words"
        )
    counts: Counter[str] = Counter()
    for each in examples:
        counts.update(each.words)
        counts.update(chain.from_iterable((*each.present, *each.absent)))
    # Ties by the alphabet, so that the order of documents settles nothing.
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return Vocabulary((*SPECIAL_TOKENS, *ranked[: size - len(SPECIAL_TOKENS)]))


@dataclass(frozen=True, slots=True, eq=False)
class CatSeqBatch:
    """Documents with their closing marks, and what to write.

    `known` has `<unk>` where `copied` has a document's own number for a strange word.
    """

    examples: tuple[KeyphraseExample, ...]
    unknown_words: tuple[tuple[str, ...], ...]
    source_ids: Array  # (documents, words)
    extended_ids: Array
    lengths: Array  # closing mark included
    targets: Array  # (documents, steps)


def make_catseq_batch(examples: Sequence[KeyphraseExample], vocabulary: Vocabulary) -> CatSeqBatch:
    """Examples as one batch."""
    sources = [(*each.words, END) for each in examples]
    strange = tuple(map(vocabulary.unknown_words, sources))
    copied = [
        vocabulary.encode_extended(words, own) for words, own in zip(sources, strange, strict=True)
    ]
    targets = [
        vocabulary.encode_extended(each.target, own)
        for each, own in zip(examples, strange, strict=True)
    ]
    return CatSeqBatch(
        tuple(examples),
        strange,
        pad_token_ids([vocabulary.encode(words) for words in sources]),
        pad_token_ids(copied),
        np.array([len(words) for words in sources]),
        pad_token_ids(targets),
    )


def pad_token_ids(rows: Sequence[Sequence[int]]) -> Array:
    """Rows of numbers, made as long as the longest."""
    found = np.full((len(rows), max(map(len, rows))), PAD_ID, dtype=np.int64)
    for place, row in enumerate(rows):
        found[place, : len(row)] = row
    return found


def epoch_batches(lengths: Sequence[int], size: int, *, seed: int, number: int) -> list[Array]:
    """The batches of one pass over examples, the same whenever it is asked for."""
    own = numpy_generator(seed, number).integers(2**31)
    return list(length_grouped_batches(lengths, FitSettings(batch=size, seed=int(own))))


def numpy_generator(*numbers: int) -> np.random.Generator:
    """Random numbers that some numbers settle: no state has to be kept to go on with them."""
    return np.random.default_rng(np.random.SeedSequence(numbers))
