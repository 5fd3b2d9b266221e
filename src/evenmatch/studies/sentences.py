"""Sentence pairs for studies: public translations, adversarial texts, a user's file or a sample.

Pairs may be divided into groups, such as languages, and may have hard negatives: texts that
resemble the paired one but are wrong.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.data.catalogue.catalogue import data_set, find_data_set
from evenmatch.data.files import read_json_records
from evenmatch.data.pairs import open_pair_file, read_everyday_sample
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.errors import InputError
from evenmatch.types import Array, Pair

WMT17, ADVERSARIAL = "wmt17-da", "menli-adversarial"
# Source languages, each with the set that has texts translated from it into English.
SOURCE_SETS = {
    **dict.fromkeys(("cs", "de", "fi", "lv", "ru", "tr", "zh"), WMT17),
    "et": "wmt18-da",
    **dict.fromkeys(("gu", "kk", "lt"), "wmt19-da"),
}


@dataclass(frozen=True, slots=True)
class SentencePairs:
    """Candidates and the text each is paired with; no text occurs twice in a group.

    `groups` names the group of each pair, and `hard` has a hard negative for each pair; either may
    be empty.
    """

    name: str
    candidates: tuple[str, ...]
    others: tuple[str, ...]
    groups: tuple[str, ...] = ()
    hard: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def digest(self) -> str:
        """A hash of all paired texts."""
        joined = "\0".join((*self.candidates, *self.others))
        return hashlib.sha256(joined.encode()).hexdigest()[:16]

    @property
    def members(self) -> dict[str, Array]:
        """The indexes of the pairs of each group; one group without a name if there are none."""
        names = self.groups or ("",) * len(self)
        return {name: np.flatnonzero(np.array(names) == name) for name in dict.fromkeys(names)}

    def make_negatives(self, seed: int) -> SentencePairs:
        """Pair each candidate with the text of another one of its group: in-batch negatives.

        A group has the same negatives alone and among others.
        """
        others = [""] * len(self)
        for members in self.members.values():
            order = members[np.random.default_rng(seed).permutation(len(members))]
            for own, foreign in zip(order, np.roll(order, 1), strict=True):
                others[own] = self.others[foreign]
        return SentencePairs(self.name, self.candidates, tuple(others))

    def make_hard_negatives(self) -> SentencePairs:
        """Pair each candidate with its hard negative."""
        return SentencePairs(self.name, self.candidates, self.hard)


def load_sentence_pairs(
    data: str,
    count: int,
    seed: int,
    *,
    sources: bool = False,
    human: bool = False,
    languages: Sequence[str] = (),
    hard: bool = False,
    max_words: int = 0,
) -> SentencePairs:
    """Sample at most `count` pairs of a file, of WMT17, of adversarial texts or of the sample.

    Without `data`, they are WMT17's references with system translations if that data set is
    installed, else the bundled sample. With `sources`, candidates are paired with their sources, or
    references if `human`, and without `data` there are `count` pairs of each of `languages`, all of
    `SOURCE_SETS` by default. With `hard`, pairs have hard negatives. Pairs with a text of more than
    `max_words` words are left out (0 for no limit).
    """
    how: dict[str, Any] = {"sources": sources, "human": human, "hard": hard, "max_words": max_words}
    if data == ADVERSARIAL:
        return load_adversarial_pairs(count, seed, sources=sources)
    if data:
        pairs: Iterable[Pair] = open_pair_file(data)
        return sample_sentence_pairs(data, pairs, count, seed, **how)
    if not data_set(WMT17).present:
        pairs = read_everyday_sample()["good"]
        return sample_sentence_pairs("the sample", pairs, count, seed, **how)
    if not sources:
        return sample_sentence_pairs(WMT17, read_translations(), count, seed, **how)
    if unknown := set(languages) - set(SOURCE_SETS):
        raise InputError(
            f"there are no sources in {min(unknown)!r}; known: {', '.join(SOURCE_SETS)}"
        )
    chosen = {k: s for k, s in SOURCE_SETS.items() if k in languages or not languages}
    return join_sentence_pairs(
        " and ".join(dict.fromkeys(chosen.values())),
        {
            language: sample_sentence_pairs(
                f"{name} {language}-en",
                read_translations(name, [f"{language}-en"]),
                count,
                seed,
                **how,
            )
            for language, name in chosen.items()
            if languages or data_set(name).present
        },
    )


def read_translations(name: str = WMT17, subsets: Sequence[str] = ()) -> list[Pair]:
    """Return one translation of each segment of a set into English, from its systems in turn."""
    return [
        Pair(candidate, rated.references[i], rated.sources[i])
        for rated in read_ratings(name, subsets=subsets)
        for i in range(len(rated.segments))
        if (candidate := rated.candidates[i % len(rated.systems)][i]) and rated.references[i]
    ]


def load_adversarial_pairs(count: int, seed: int, *, sources: bool = False) -> SentencePairs:
    """Sample references with paraphrases; the hard negatives are the same references with an error.

    The groups are kinds of errors. With `sources`, pairs are German sources and translations.
    """
    texts = ("source", "r", "hyp_adv_free") if sources else ("ref", "hyp_para", "hyp_adv_based")
    path = str(find_data_set(ADVERSARIAL) / "wmt20_de.jsonl.gz")
    by_error: dict[str, list[tuple[str, ...]]] = {}
    for _, row in read_json_records(path):
        own = tuple(str(row[name]) for name in texts)
        if all(own) and len(set(own)) == len(own):
            by_error.setdefault(str(row["error"]), []).append(own)
    random = np.random.default_rng(seed)
    size = max(2, count // len(by_error))
    parts = {}
    for error, rows in by_error.items():
        sampled = np.sort(random.choice(len(rows), min(size, len(rows)), replace=False))
        candidates, others, hard = zip(*(rows[i] for i in sampled), strict=True)
        parts[error] = SentencePairs(error, candidates, others, (), hard)
    return join_sentence_pairs(ADVERSARIAL, parts)


def sample_sentence_pairs(
    name: str,
    pairs: Iterable[Pair],
    count: int,
    seed: int,
    *,
    sources: bool = False,
    human: bool = False,
    hard: bool = False,
    max_words: int = 0,
) -> SentencePairs:
    """Sample pairs at random, in their order; pairs that repeat a text are dropped.

    So are pairs with a text of more than `max_words` words, unless that is 0.
    With `sources`, candidates are paired with sources, or references with sources if `human`.
    With `hard`, the hard negative of a pair is the text of the pair, among all, whose candidate
    shares the most rare words with its own.
    """
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    for number, pair in enumerate(pairs, 1):
        if sources and pair.source is None:
            raise InputError(
                f"pair {number} of {name} has no source; add one or do not use sources"
            )
        own = pair.references[0] if sources and human else pair.candidate
        other = pair.source if sources and pair.source is not None else pair.references[0]
        short = not max_words or max(len(own.split()), len(other.split())) <= max_words
        if own and other and short and not {own, other} & seen:
            found.append((own, other))
            seen |= {own, other}
    if len(found) < 2:
        raise InputError(f"{name} has {len(found)} distinct pairs; negatives need at least 2")
    random = np.random.default_rng(seed)
    sampled = np.sort(random.choice(len(found), min(count, len(found)), replace=False))
    candidates, others = zip(*(found[i] for i in sampled), strict=True)
    nearest = _nearest_texts([text for text, _ in found], sampled) if hard else ()
    return SentencePairs(name, candidates, others, (), tuple(found[i][1] for i in nearest))


def join_sentence_pairs(name: str, parts: Mapping[str, SentencePairs]) -> SentencePairs:
    """Return the pairs of all parts, each part as a group."""
    if not parts:
        raise InputError(f"{name} has no pairs; install the data set")

    def join(field: str) -> tuple[str, ...]:
        return tuple(text for part in parts.values() for text in getattr(part, field))

    groups = tuple(group for group, part in parts.items() for _ in part.candidates)
    return SentencePairs(name, join("candidates"), join("others"), groups, join("hard"))


def _nearest_texts(texts: Sequence[str], wanted: Array) -> Array:
    """Return for each wanted text the index of the other text with the highest tf-idf cosine."""
    from scipy.sparse import csr_array

    words = [re.findall(r"\w+", text.lower()) for text in texts]
    numbers = {w: i for i, w in enumerate(dict.fromkeys(w for own in words for w in own))}
    columns = np.array([numbers[w] for own in words for w in own], dtype=np.int64)
    rows = np.repeat(np.arange(len(texts)), [len(own) for own in words])
    counts: Any = csr_array(
        (np.ones(len(columns)), (rows, columns)), (len(texts), max(len(numbers), 1))
    )
    counts.sum_duplicates()
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    counts.data *= np.log(len(texts) / frequency)[counts.indices]
    norms = np.sqrt(counts.multiply(counts).sum(1))
    cosines = (counts[wanted] @ counts.T).toarray() / np.maximum(norms, 1e-9)
    cosines[np.arange(len(wanted)), wanted] = -1
    return cosines.argmax(1)
