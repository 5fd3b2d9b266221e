"""Sentence pairs to study metrics on: translations, a user's own, or the sample."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.data.catalogue.catalogue import data_set
from evenmatch.data.pairs import open_pair_file, read_everyday_sample
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.errors import InputError
from evenmatch.types import Pair

WMT17 = "wmt17-da"


@dataclass(frozen=True, slots=True)
class SentencePairs:
    """Candidates with the text each belongs to, no text twice on a side."""

    name: str
    candidates: tuple[str, ...]
    others: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def digest(self) -> str:
        """The texts by content."""
        joined = "\0".join((*self.candidates, *self.others))
        return hashlib.sha256(joined.encode()).hexdigest()[:16]

    def make_negatives(self, seed: int) -> SentencePairs:
        """The candidates, each with the text of another: in-batch negatives."""
        order = np.random.default_rng(seed).permutation(len(self))
        others = [""] * len(self)
        for own, foreign in zip(order, np.roll(order, 1), strict=True):
            others[own] = self.others[foreign]
        return SentencePairs(self.name, self.candidates, tuple(others))


def load_sentence_pairs(
    data: str, count: int, seed: int, *, sources: bool = False
) -> SentencePairs:
    """Pairs of a file or of WMT17, at most `count`, drawn with `seed`.

    Without `data` they are WMT17's references with systems' translations where that set is here,
    else the sample. With `sources` a candidate is paired with what it was made from.
    """
    if data:
        return sample_sentence_pairs(data, open_pair_file(data), count, seed, sources=sources)
    if data_set(WMT17).present:
        return sample_sentence_pairs(WMT17, read_translations(), count, seed, sources=sources)
    return sample_sentence_pairs(
        "the sample", read_everyday_sample()["good"], count, seed, sources=sources
    )


def read_translations(subsets: Sequence[str] = ()) -> list[Pair]:
    """A translation of each segment of WMT17 into English, by its systems in turn."""
    return [
        Pair(candidate, rated.references[i], rated.sources[i])
        for rated in read_ratings(WMT17, subsets=subsets)
        for i in range(len(rated.segments))
        if (candidate := rated.candidates[i % len(rated.systems)][i]) and rated.references[i]
    ]


def sample_sentence_pairs(
    name: str, pairs: Iterable[Pair], count: int, seed: int, *, sources: bool = False
) -> SentencePairs:
    """Some of the pairs at random, in their order; those with a text seen before are left out."""
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    for number, pair in enumerate(pairs, 1):
        if sources and pair.source is None:
            raise InputError(
                f"pair {number} of {name} has no source; give one or leave out sources"
            )
        other = pair.source if sources and pair.source is not None else pair.references[0]
        if pair.candidate and other and not {pair.candidate, other} & seen:
            found.append((pair.candidate, other))
            seen |= {pair.candidate, other}
    if len(found) < 2:
        raise InputError(f"{name} has {len(found)} different pairs; negatives need at least 2")
    random = np.random.default_rng(seed)
    some = np.sort(random.choice(len(found), min(count, len(found)), replace=False))
    candidates, others = zip(*(found[i] for i in some), strict=True)
    return SentencePairs(name, candidates, others)
