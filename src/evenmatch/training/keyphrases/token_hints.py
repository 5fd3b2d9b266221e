"""What a candidate ranker knows of the tokens of a document, for catSeq's reader.

A generator that sees a few thousand documents cannot learn from them which words are rare or are
often in keyphrases. `TokenHints` tells it: for each token, its counts and the log-odds of the
candidates that it begins, ends or is part of. A document that was counted is hinted at without its
own keyphrases.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from evenmatch.data.documents import Document
from evenmatch.training.keyphrases.candidate_ranker import (
    MAX_WORDS,
    CorpusCounts,
    LogisticScorer,
    candidate_features,
    count_corpus,
    find_candidates,
    fit_scorer,
    stem_phrases,
)
from evenmatch.training.keyphrases.sequences import (
    CONTINUATION,
    KeyphraseExample,
    WordSequence,
    join_pieces,
)
from evenmatch.types import Array
from evenmatch.units.keyphrases import get_stemmer

HINT_COUNT = 11  # numbers per token
_FLOOR = -8.0  # the log-odds of a token that is part of no candidate
_BEST = 10  # candidates of a document that count as its best ones


@dataclass(frozen=True, eq=False)
class TokenHints:
    """Hints at the tokens of documents; they are kept, since they never change.

    `own` are the stemmed keyphrases of the documents that were counted, by a hash of their words.
    """

    counts: CorpusCounts
    scorer: LogisticScorer
    in_keyphrase: Mapping[str, int]  # documents with the stem both in text and in a keyphrase
    own: Mapping[str, frozenset[WordSequence]]
    kept: dict[WordSequence, Array] = field(default_factory=dict)

    def __call__(self, tokens: WordSequence) -> Array:
        """Return the hints at each token and zeros for the closing one: (tokens + 1, hints)."""
        if tokens not in self.kept:
            self.kept[tokens] = self._compute(tokens)
        return self.kept[tokens]

    def _compute(self, tokens: WordSequence) -> Array:
        words = join_pieces(tokens)
        own = self.own.get(_hash_words(words), frozenset())
        own_stems = {stem for phrase in own for stem in phrase}
        stem = get_stemmer().stem
        stems = tuple(map(stem, words))
        title, count = KeyphraseExample(words).title_length, Counter(stems)
        seen: set[str] = set()
        rows = np.zeros((len(words), HINT_COUNT))
        for place, each in enumerate(stems):
            known = self.in_keyphrase.get(each, 0) - (each in own_stems)
            rows[place, :6] = (
                self.counts.idf(each) / 4,
                math.log(count[each]),
                place < title,
                math.log(1 + place) / 4,
                each not in seen,
                math.log((known + 0.5) / (self.counts.with_stem[each] + 5)) / 2,
            )
            seen.add(each)
        rows[:, 6:] = self._candidate_hints(words, stems, own)
        begins = [not token.startswith(CONTINUATION) for token in tokens]
        word_of = np.cumsum(begins, dtype=int) - 1
        padded = np.vstack([rows[np.maximum(word_of, 0)], np.zeros((1, HINT_COUNT))])
        return padded.astype(np.float32)

    def _candidate_hints(
        self, words: WordSequence, stems: WordSequence, own: frozenset[WordSequence]
    ) -> Array:
        """Return the best log-odds of candidates that begin, cover and end at each word.

        The last two columns say whether one of the best candidates begins here, or covers it.
        """
        hints = np.full((len(words), 5), _FLOOR)
        hints[:, 3:] = 0.0
        found = find_candidates(words, self.counts)
        if found:
            scores = self.scorer(candidate_features(found, self.counts, own))
            score = dict(zip((each.stems for each in found), scores.tolist(), strict=True))
            best = {found[i].stems for i in np.argsort(-scores, kind="stable")[:_BEST]}
            for start in range(len(stems)):
                for end in range(start + 1, min(start + MAX_WORDS, len(stems)) + 1):
                    phrase = stems[start:end]
                    if phrase in score:
                        value = max(score[phrase], _FLOOR)
                        hints[start, 0] = max(hints[start, 0], value)
                        hints[start:end, 1] = np.maximum(hints[start:end, 1], value)
                        hints[end - 1, 2] = max(hints[end - 1, 2], value)
                        if phrase in best:
                            hints[start, 3] = hints[start:end, 4] = 1.0
        hints[:, :3] /= 2
        return hints

    def to_dict(self) -> dict[str, Any]:
        """Return the hints as stored with a generator."""
        counts, scorer = self.counts, self.scorer
        phrases = (counts.with_phrase, counts.as_keyphrase)
        return {
            "documents": counts.documents,
            "with_stem": counts.with_stem,
            "phrases": [{" ".join(p): n for p, n in each.items()} for each in phrases],
            "keyphrase_stems": sorted(counts.keyphrase_stems),
            "scorer": {name: value.tolist() for name, value in vars(scorer).items()},
            "in_keyphrase": self.in_keyphrase,
            "own": {key: sorted(map(" ".join, each)) for key, each in self.own.items()},
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> TokenHints:
        """Return the hints that were stored with a generator."""
        with_phrase, as_keyphrase = (
            Counter({tuple(p.split()): n for p, n in each.items()}) for each in stored["phrases"]
        )
        counts = CorpusCounts(
            stored["documents"],
            Counter(stored["with_stem"]),
            with_phrase,
            as_keyphrase,
            frozenset(stored["keyphrase_stems"]),
        )
        scorer = LogisticScorer(**{k: np.array(v) for k, v in stored["scorer"].items()})
        own = {key: frozenset(tuple(p.split()) for p in v) for key, v in stored["own"].items()}
        return cls(counts, scorer, stored["in_keyphrase"], own)


@lru_cache(maxsize=1)
def parse_token_hints(stored: str) -> TokenHints:
    """Return stored hints; generators with the same ones share the hints that are kept."""
    return TokenHints.from_dict(json.loads(stored))


def fit_token_hints(examples: Sequence[KeyphraseExample]) -> TokenHints:
    """Count training examples and fit the ranker of their candidates."""
    documents, golds = [], []
    in_keyphrase: Counter[str] = Counter()
    for example in examples:
        words = join_pieces(example.words)
        phrases = [" ".join(join_pieces(p)) for p in (*example.present, *example.absent)]
        documents.append(Document(" ".join(words), tuple(phrases)))
        golds.append(stem_phrases(phrases))
    counts = count_corpus(documents)
    stem = get_stemmer().stem
    for document, gold in zip(documents, golds, strict=True):
        text = set(map(stem, document.text.split()))
        in_keyphrase.update(text & {each for phrase in gold for each in phrase})
    own = {_hash_words(d.text.split()): gold for d, gold in zip(documents, golds, strict=True)}
    return TokenHints(counts, fit_scorer(documents, counts), in_keyphrase, own)


def _hash_words(words: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:16]
