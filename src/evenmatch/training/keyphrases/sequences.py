"""Documents and keyphrases as token sequences, vocabularies and padded batches of token ids.

Tokens are words, or the word pieces of a pretrained encoder; a piece that continues a word begins
with `##`. A target sequence holds the present phrases, then the absent ones. Tokens outside the
vocabulary can only be copied from the document; they get temporary ids above the vocabulary.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, groupby, pairwise, takewhile
from typing import Any, TypeAlias

import numpy as np

from evenmatch.data.documents import Document
from evenmatch.errors import InputError
from evenmatch.training.loop import length_grouped_batches
from evenmatch.types import Array
from evenmatch.units.keyphrases import get_stemmer

WordSequence: TypeAlias = tuple[str, ...]
TokenSplitter: TypeAlias = Callable[[WordSequence], WordSequence]
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>", "<sep>", "<peos>")
PAD, START, END, UNKNOWN, NEXT, SPLIT = SPECIAL_TOKENS
PAD_ID, START_ID, END_ID, UNKNOWN_ID, NEXT_ID, SPLIT_ID = range(len(SPECIAL_TOKENS))

DIGIT_TOKEN = "<digit>"  # stands for every number
CONTINUATION = "##"
_MAX_TITLE = 40  # tokens; a first sentence longer than this is no title
_WORD = re.compile(r"<\w+>|[^\W_]+(?:'[^\W_]+)?|[.,()]")


@dataclass(frozen=True, slots=True)
class KeyphraseExample:
    """A document's words, its present phrases in order of occurrence, and its absent phrases."""

    words: WordSequence
    present: tuple[WordSequence, ...] = ()
    absent: tuple[WordSequence, ...] = ()

    @property
    def target(self) -> WordSequence:
        """The target sequence: phrases with special tokens between them and at the end.

        >>> " ".join(KeyphraseExample((), (("a", "b"), ("c",)), (("d",),)).target)
        'a b <sep> c <peos> d <eos>'
        """
        present, absent = (
            f" {NEXT} ".join(map(" ".join, phrases)).split()
            for phrases in (self.present, self.absent)
        )
        return (*present, SPLIT, *absent, END)

    @property
    def title_length(self) -> int:
        """The number of tokens up to the end of the first sentence, at most 40.

        >>> KeyphraseExample(("a", "title", ".", "a", "text", ".")).title_length
        3
        """
        start = self.words[:_MAX_TITLE]
        return start.index(".") + 1 if "." in start else len(start)


def make_keyphrase_example(
    document: Document, longest: int, split: TokenSplitter = tuple
) -> KeyphraseExample:
    """Convert a document to an example of at most `longest` tokens.

    A phrase is present if its stems occur consecutively among the stems of the words that these
    tokens make up. `split` splits words into tokens.
    """
    words = split(tokenize_text(document.text))[:longest]
    stems = [get_stemmer().stem(word) for word in join_pieces(words)]
    phrases = dict.fromkeys(
        split(phrase) for phrase in map(tokenize_text, document.keyphrases) if phrase
    )
    places = {phrase: _find_phrase(join_pieces(phrase), stems) for phrase in phrases}
    present = sorted((p for p in phrases if places[p] >= 0), key=places.__getitem__)
    return KeyphraseExample(words, tuple(present), tuple(p for p in phrases if places[p] < 0))


@dataclass(frozen=True, slots=True)
class KeyphraseExamples:
    """Examples to train on, and the number of documents left out for each reason."""

    examples: tuple[KeyphraseExample, ...]
    left_out: Mapping[str, int]

    def __str__(self) -> str:
        """Return how many documents are used, and why others are not."""
        count = len(self.examples) + sum(self.left_out.values())
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.left_out.items())
        return f"{len(self.examples)} of {count} documents used" + (
            f"; left out: {reasons}" if reasons else ""
        )


def make_keyphrase_examples(
    documents: Iterable[Document],
    *,
    longest: int = 400,
    most_phrases: int = 14,
    split: TokenSplitter = tuple,
) -> KeyphraseExamples:
    """Convert documents to training examples, without those too long or with too many phrases.

    Documents without words or phrases are left out too. The default limits are those of Chan et
    al. (2019).
    """
    found = []
    left_out: Counter[str] = Counter()
    for document in documents:
        example = make_keyphrase_example(document, longest + 1, split)
        phrases = len(example.present) + len(example.absent)
        if len(example.words) > longest:
            left_out[f"longer than {longest} tokens"] += 1
        elif not example.words:
            left_out["without words"] += 1
        elif not phrases:
            left_out["without keyphrases"] += 1
        elif phrases > most_phrases:
            left_out[f"with more than {most_phrases} keyphrases"] += 1
        else:
            found.append(example)
    if not found:
        raise InputError(
            f"no document has at most {longest} tokens and 1 to {most_phrases} keyphrases; "
            "give other documents to train on, or raise longest or most_phrases"
        )
    return KeyphraseExamples(tuple(found), left_out)


def tokenize_text(text: str) -> WordSequence:
    """Split a text into lower-case words and . , ( ); every number becomes <digit>.

    >>> tokenize_text("Fast 3-D parsing, e.g. by GPU (2x)")
    ('fast', '<digit>', 'd', 'parsing', ',', 'e', '.', 'g', '.', 'by', 'gpu', '(', '2x', ')')
    """
    found = (word for word in _WORD.findall(text.lower()) if word not in SPECIAL_TOKENS)
    return tuple(DIGIT_TOKEN if word.isdigit() else word for word in found)


@lru_cache(maxsize=1 << 14)
def mark_present_phrases(example: KeyphraseExample) -> tuple[bool, ...]:
    """Return for each token whether it is in an occurrence of a present phrase.

    >>> mark_present_phrases(KeyphraseExample(("a", "net", "of", "nets"), (("nets",),)))
    (False, True, False, True)
    """
    words = join_pieces(example.words)
    stems = [get_stemmer().stem(word) for word in words]
    marked = [False] * len(words)
    for phrase in example.present:
        wanted = [get_stemmer().stem(word) for word in join_pieces(phrase)]
        for start in range(len(stems) - len(wanted) + 1):
            if stems[start : start + len(wanted)] == wanted:
                marked[start : start + len(wanted)] = [True] * len(wanted)
    word, found = -1, []
    for token in example.words:
        word += word < 0 or not token.startswith(CONTINUATION)
        found.append(marked[word])
    return tuple(found)


def join_pieces(tokens: Iterable[str]) -> WordSequence:
    """Return the words that tokens make up.

    >>> join_pieces(("token", "##s", "to", "##ken"))
    ('tokens', 'token')
    """
    words: list[str] = []
    for token in tokens:
        if token.startswith(CONTINUATION) and words:
            words[-1] += token.removeprefix(CONTINUATION)
        else:
            words.append(token.removeprefix(CONTINUATION))
    return tuple(words)


def doubles_word(phrase: Sequence[str]) -> bool:
    """Return whether a word of a phrase, other than a number, follows itself: "wave wave".

    >>> [doubles_word(p.split()) for p in ("wave wave", "point to point", "<digit> <digit> trees")]
    [True, False, False]
    """
    return any(one == other != DIGIT_TOKEN for one, other in pairwise(phrase))


def parse_phrases(
    words: Iterable[str],
) -> tuple[tuple[WordSequence, ...], tuple[WordSequence, ...]]:
    """Return the present and absent phrases of an output; without `<peos>` all are present.

    A second `<peos>` only ends a phrase; empty phrases are dropped.

    >>> parse_phrases("a b <sep> c <peos> d <eos>".split())
    ((('a', 'b'), ('c',)), (('d',),))
    >>> parse_phrases("a <sep> <sep> b".split())
    ((('a',), ('b',)), ())
    """
    output = list(takewhile(lambda word: word != END, words))
    split = output.index(SPLIT) if SPLIT in output else len(output)
    return _split_phrases(output[:split]), _split_phrases(output[split:])


def _split_phrases(words: Sequence[str]) -> tuple[WordSequence, ...]:
    runs = groupby(words, key=lambda word: word in (NEXT, SPLIT))
    return tuple(join_pieces(phrase) for is_separator, phrase in runs if not is_separator)


@dataclass(frozen=True)
class Vocabulary:
    """Words by id, special tokens first.

    Out-of-vocabulary words of a document get temporary ids above the vocabulary.
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.words[: len(SPECIAL_TOKENS)] != SPECIAL_TOKENS or len(set(self.words)) != len(
            self.words
        ):
            raise InputError(
                f"a vocabulary starts with {' '.join(SPECIAL_TOKENS)} and has no duplicates; "
                "make one with build_vocabulary"
            )

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: index for index, word in enumerate(self.words)}

    def unknown_words(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the distinct words of a document outside the vocabulary, in order."""
        return tuple(dict.fromkeys(word for word in words if word not in self.word_ids))

    def encode(self, words: Sequence[str], unknown: Sequence[str] = ()) -> list[int]:
        """Return the ids of words, temporary ones for `unknown`, that of `<unk>` for others."""
        temporary = {word: len(self) + index for index, word in enumerate(unknown)}
        return [self.word_ids.get(word, temporary.get(word, UNKNOWN_ID)) for word in words]

    def word(self, index: int, unknown: Sequence[str]) -> str:
        """Return the word of an id, which may be a temporary one."""
        return self.words[index] if index < len(self) else unknown[index - len(self)]


def build_vocabulary(examples: Sequence[KeyphraseExample], size: int) -> Vocabulary:
    """Return a vocabulary of `size` entries: special tokens and the most frequent words."""
    if size <= len(SPECIAL_TOKENS):
        raise InputError(
            f"a vocabulary must be larger than its {len(SPECIAL_TOKENS)} special tokens, got {size}"
        )
    counts: Counter[str] = Counter()
    for each in examples:
        counts.update(each.words)
        counts.update(chain.from_iterable((*each.present, *each.absent)))
    # Ties are broken alphabetically, so that the order of documents does not matter.
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return Vocabulary((*SPECIAL_TOKENS, *ranked[: size - len(SPECIAL_TOKENS)]))


@dataclass(frozen=True, slots=True, eq=False)
class CatSeqBatch:
    """Encoded documents, each with a closing token, and their targets, as padded tensors.

    Out-of-vocabulary words have the id of `<unk>` in `source_ids`, temporary ids in `extended_ids`.
    """

    vocabulary: Vocabulary
    examples: tuple[KeyphraseExample, ...]
    unknown_words: tuple[tuple[str, ...], ...]
    source_ids: Any  # (documents, words)
    extended_ids: Any
    lengths: Any  # closing token included
    targets: Any  # (documents, steps)


def make_catseq_batch(examples: Sequence[KeyphraseExample], vocabulary: Vocabulary) -> CatSeqBatch:
    """Encode examples as one batch."""
    import torch

    sources = [(*each.words, END) for each in examples]
    targets = [each.target for each in examples]
    unknown = tuple(map(vocabulary.unknown_words, sources))
    known_only = [()] * len(examples)
    padded = (
        torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(vocabulary.encode(*each)) for each in zip(texts, others, strict=True)],
            batch_first=True,
            padding_value=PAD_ID,
        )
        for texts, others in ((sources, known_only), (sources, unknown), (targets, unknown))
    )
    source_ids, extended_ids, target_ids = padded
    lengths = torch.tensor([len(words) for words in sources])
    return CatSeqBatch(
        vocabulary, tuple(examples), unknown, source_ids, extended_ids, lengths, target_ids
    )


def epoch_batches(lengths: Sequence[int], size: int, *, seed: int, number: int) -> list[Array]:
    """Return the batches of epoch `number`, which depend on the arguments alone."""
    epoch_seed = int(np.random.default_rng((seed, number)).integers(2**31))
    return list(length_grouped_batches(lengths, size, np.random.default_rng(epoch_seed)))


def _find_phrase(phrase: WordSequence, stems: Sequence[str]) -> int:
    """Return the position of the phrase's first occurrence, or -1."""
    wanted = [get_stemmer().stem(word) for word in phrase]
    starts = range(len(stems) - len(wanted) + 1)
    return next((i for i in starts if stems[i : i + len(wanted)] == wanted), -1)
