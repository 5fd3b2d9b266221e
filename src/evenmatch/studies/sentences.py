"""Sentence pairs for studies: WMT17 translations, a user's file, or the bundled sample."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
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
    """Candidates and the text each is paired with; no text occurs twice."""

    name: str
    candidates: tuple[str, ...]
    others: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def digest(self) -> str:
        """A hash of all texts."""
        joined = "\0".join((*self.candidates, *self.others))
        return hashlib.sha256(joined.encode()).hexdigest()[:16]

    def make_negatives(self, seed: int) -> SentencePairs:
        """Pair each candidate with the text of another one: in-batch negatives."""
        order = np.random.default_rng(seed).permutation(len(self))
        others = [""] * len(self)
        for own, foreign in zip(order, np.roll(order, 1), strict=True):
            others[own] = self.others[foreign]
        return SentencePairs(self.name, self.candidates, tuple(others))


def load_sentence_pairs(
    data: str, count: int, seed: int, *, sources: bool = False
) -> SentencePairs:
    """Sample at most `count` pairs of a file, of WMT17 or of the bundled sample.

    Without `data`, they are WMT17's references with system translations if that data set is
    installed, else the bundled sample. With `sources`, candidates are paired with their sources.
    """
    pairs: Iterable[Pair]
    if data:
        name, pairs = data, open_pair_file(data)
    elif data_set(WMT17).present:
        name, pairs = WMT17, read_translations()
    else:
        name, pairs = "the sample", read_everyday_sample()["good"]
    return sample_sentence_pairs(name, pairs, count, seed, sources=sources)


def read_translations() -> list[Pair]:
    """Return one translation of each segment of WMT17 into English, from its systems in turn."""
    return [
        Pair(candidate, rated.references[i], rated.sources[i])
        for rated in read_ratings(WMT17)
        for i in range(len(rated.segments))
        if (candidate := rated.candidates[i % len(rated.systems)][i]) and rated.references[i]
    ]


def sample_sentence_pairs(
    name: str, pairs: Iterable[Pair], count: int, seed: int, *, sources: bool = False
) -> SentencePairs:
    """Sample pairs at random, in their order; pairs that repeat a text are dropped."""
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    for number, pair in enumerate(pairs, 1):
        if sources and pair.source is None:
            raise InputError(
                f"pair {number} of {name} has no source; add one or do not use sources"
            )
        other = pair.source if sources and pair.source is not None else pair.references[0]
        if pair.candidate and other and not {pair.candidate, other} & seen:
            found.append((pair.candidate, other))
            seen |= {pair.candidate, other}
    if len(found) < 2:
        raise InputError(f"{name} has {len(found)} distinct pairs; negatives need at least 2")
    random = np.random.default_rng(seed)
    sampled = np.sort(random.choice(len(found), min(count, len(found)), replace=False))
    candidates, others = zip(*(found[i] for i in sampled), strict=True)
    return SentencePairs(name, candidates, others)
