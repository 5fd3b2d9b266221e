"""Keyphrases without a generator: the phrases of a document, ranked.

Candidates are sequences of up to four words. `fit_candidate_ranker` ranks them by logistic
regression on a few features (frequency, place, length, and how often training documents have them
as keyphrases); `fit_tfidf_ranker` ranks them by TF-IDF. Both choose how many phrases to keep on
validation documents. They are the baselines of the keyphrase study.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from evenmatch.data.documents import Document
from evenmatch.errors import InputError
from evenmatch.training.keyphrases.sequences import (
    DIGIT_TOKEN,
    KeyphraseExample,
    WordSequence,
    tokenize_text,
)
from evenmatch.types import Array
from evenmatch.units.keyphrases import get_stemmer

MAX_WORDS = 4  # of a candidate
MAX_PHRASES = 15  # kept for a document
_PUNCTUATION = frozenset(".,()")
_COMMON = 0.1  # the share of documents from which a word that is in no keyphrase ends no candidate
_RIDGE = 1e-4
_ITERATIONS = 150

Scorer: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A phrase of a document: its words where it first occurs, its stems, count and places."""

    words: WordSequence
    stems: WordSequence
    count: int
    first: int  # the position of its first word
    in_title: bool


@dataclass(frozen=True, slots=True)
class CorpusCounts:
    """What is counted over training documents, by stem or by the stems of a phrase."""

    documents: int
    with_stem: Counter[str]
    with_phrase: Counter[WordSequence]  # documents in which a keyphrase of some document occurs
    as_keyphrase: Counter[WordSequence]  # documents that have it as a keyphrase
    keyphrase_stems: frozenset[str]

    def idf(self, stem: str) -> float:
        """Return the inverse document frequency of a stem."""
        return math.log((self.documents + 1) / (self.with_stem[stem] + 1))

    def may_end(self, stem: str) -> bool:
        """Return whether a candidate may begin or end with this stem."""
        return stem in self.keyphrase_stems or self.with_stem[stem] < _COMMON * self.documents


@dataclass(frozen=True, eq=False)
class CandidateRanker:
    """Predicts the present phrases of a document: candidates whose score reaches `threshold`.

    `score` maps the features of candidates, (candidates, features), to their scores. The best
    candidate is always predicted.
    """

    counts: CorpusCounts
    score: Scorer
    threshold: float = 0.0

    def __call__(self, documents: Iterable[Document]) -> list[tuple[str, ...]]:
        """Predict the phrases of each document, best first."""
        return [
            tuple(
                " ".join(candidate.words)
                for number, (score, candidate) in enumerate(self.rank(document))
                if number == 0 or score >= self.threshold
            )
            for document in documents
        ]

    def rank(self, document: Document) -> list[tuple[float, Candidate]]:
        """Return the best candidates of a document with their scores.

        A candidate that is part of a better one is left out.
        """
        found = find_candidates(tokenize_text(document.text), self.counts)
        if not found:
            return []
        scores = self.score(candidate_features(found, self.counts))
        chosen: list[tuple[float, Candidate]] = []
        for place in np.argsort(-scores, kind="stable"):
            stems = found[place].stems
            if not any(_contains(each.stems, stems) for _, each in chosen):
                chosen.append((float(scores[place]), found[place]))
            if len(chosen) == MAX_PHRASES:
                break
        return chosen


def fit_candidate_ranker(
    documents: Sequence[Document], validation: Sequence[Document]
) -> CandidateRanker:
    """Train a ranker by logistic regression, and choose its threshold on validation documents."""
    counts = count_corpus(documents)
    return choose_threshold(CandidateRanker(counts, fit_scorer(documents, counts)), validation)


@dataclass(frozen=True, eq=False)
class LogisticScorer:
    """Scores candidates by logistic regression on standardised features and their products."""

    mean: Array
    spread: Array
    weights: Array

    def __call__(self, features: Array) -> Array:
        """Return the log-odds of being a keyphrase of each candidate."""
        found: Array = _expand((features - self.mean) / self.spread) @ self.weights
        return found


def fit_scorer(documents: Sequence[Document], counts: CorpusCounts) -> LogisticScorer:
    """Fit a scorer to the documents that were counted, each without its own keyphrases."""
    features, labels = [], []
    for document in documents:
        found = find_candidates(tokenize_text(document.text), counts)
        gold = stem_phrases(document.keyphrases)
        if found and gold:
            features.append(candidate_features(found, counts, gold))
            labels.append(np.array([each.stems in gold for each in found], float))
    if not features:
        raise InputError("no document has both words and keyphrases; give others to train on")
    rows, wanted = np.concatenate(features), np.concatenate(labels)
    mean, spread = rows.mean(0), rows.std(0) + 1e-6
    return LogisticScorer(mean, spread, _fit_logistic(_expand((rows - mean) / spread), wanted))


def fit_tfidf_ranker(
    documents: Sequence[Document], validation: Sequence[Document]
) -> CandidateRanker:
    """Rank by TF-IDF, and choose the threshold on validation documents."""
    ranker = CandidateRanker(count_corpus(documents), lambda features: features[:, _TFIDF])
    return choose_threshold(ranker, validation)


def choose_threshold(ranker: CandidateRanker, documents: Sequence[Document]) -> CandidateRanker:
    """Return the ranker with the threshold that gives the best F1@M of present phrases.

    F1@M is the harmonic mean of mean precision and mean recall over documents.
    """
    ranked = []
    for document in documents:
        found = ranker.rank(document)
        gold = stem_phrases(document.keyphrases) & _all_ngrams(_stems(tokenize_text(document.text)))
        hits = np.cumsum([candidate.stems in gold for _, candidate in found])
        ranked.append((np.array([score for score, _ in found]), hits, len(gold)))
    every = np.concatenate([scores for scores, _, _ in ranked])
    if not len(every):
        raise InputError("no validation document has words; give others to choose a threshold on")

    def f1(threshold: float) -> float:
        precision = recall = 0.0
        for scores, hits, gold in ranked:
            if len(scores) and gold:
                count = max(1, int((scores >= threshold).sum()))
                precision += hits[count - 1] / count
                recall += hits[count - 1] / gold
        total = precision + recall
        return 2 * precision * recall / total / len(ranked) if total else 0.0

    return replace(ranker, threshold=max(np.quantile(every, np.linspace(0, 1, 101)), key=f1))


def count_corpus(documents: Sequence[Document]) -> CorpusCounts:
    """Count stems and keyphrases over documents."""
    texts = [_stems(tokenize_text(document.text)) for document in documents]
    gold = [stem_phrases(document.keyphrases) for document in documents]
    known = {phrase for phrases in gold for phrase in phrases}
    with_phrase: Counter[WordSequence] = Counter()
    for text in texts:
        with_phrase.update(known & _all_ngrams(text))
    return CorpusCounts(
        len(documents),
        Counter(stem for text in texts for stem in set(text)),
        with_phrase,
        Counter(phrase for phrases in gold for phrase in phrases),
        frozenset(stem for phrase in known for stem in (phrase[0], phrase[-1])),
    )


def find_candidates(words: WordSequence, counts: CorpusCounts) -> list[Candidate]:
    """Return the candidates of a document in the order of their first occurrence."""
    stems, title = _stems(words), KeyphraseExample(words).title_length
    places: dict[WordSequence, list[tuple[int, int]]] = {}
    for start in range(len(words)):
        for end in range(start + 1, min(start + MAX_WORDS, len(words)) + 1):
            if words[end - 1] in _PUNCTUATION:
                break
            ends = (stems[start], stems[end - 1])
            if all(counts.may_end(stem) for stem in ends) and DIGIT_TOKEN not in ends:
                places.setdefault(stems[start:end], []).append((start, end))
    return [
        Candidate(
            words[found[0][0] : found[0][1]], key, len(found), found[0][0], found[0][0] < title
        )
        for key, found in places.items()
        if sum(map(len, words[found[0][0] : found[0][1]])) > 1
    ]


_FEATURES = 11
_TFIDF = 0  # the place of TF-IDF among the features


def candidate_features(
    found: Sequence[Candidate], counts: CorpusCounts, own: frozenset[WordSequence] = frozenset()
) -> Array:
    """Return the features of candidates: (candidates, features).

    `own` are the keyphrases of the document itself if it was counted, which are then left out of
    the counts: a document must not tell its own keyphrases.
    """
    rows = np.zeros((len(found), _FEATURES))
    for row, each in zip(rows, found, strict=True):
        idf = [counts.idf(stem) for stem in each.stems]
        known = counts.as_keyphrase[each.stems] - (each.stems in own)
        seen = max(counts.with_phrase[each.stems] - (each.stems in own), known)
        row[:] = (
            each.count * sum(idf),
            math.log(each.count),
            sum(idf) / len(idf),
            min(idf),
            math.log(1 + each.first),
            each.in_title,
            len(each.stems) == 1,
            len(each.stems) == 2,
            len(each.stems) == 3,
            math.log(1 + known),
            (known + 0.1) / (seen + 2),
        )
    return rows


def _fit_logistic(rows: Array, labels: Array) -> Array:
    """Return the weights of a logistic regression with a small ridge penalty."""
    from scipy.optimize import minimize
    from scipy.special import expit

    def loss(weights: Array) -> tuple[float, Array]:
        logits = rows @ weights
        value = np.logaddexp(0, logits).mean() - (labels * logits).mean()
        slope = rows.T @ (expit(logits) - labels) / len(rows)
        return value + _RIDGE / 2 * weights @ weights, slope + _RIDGE * weights

    start = np.zeros(rows.shape[1])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS})
    weights: Array = found.x
    return weights


def _expand(rows: Array) -> Array:
    """Return a constant, the features and all products of two of them."""
    left, right = np.triu_indices(rows.shape[1])
    return np.hstack([np.ones((len(rows), 1)), rows, rows[:, left] * rows[:, right]])


def _stems(words: Iterable[str]) -> WordSequence:
    return tuple(map(get_stemmer().stem, words))


def stem_phrases(phrases: Iterable[str]) -> frozenset[WordSequence]:
    """Return the stems of each phrase."""
    return frozenset(filter(None, (_stems(tokenize_text(phrase)) for phrase in phrases)))


def _all_ngrams(stems: WordSequence) -> frozenset[WordSequence]:
    return frozenset(
        stems[start : start + size]
        for size in range(1, MAX_WORDS + 1)
        for start in range(len(stems) - size + 1)
    )


def _contains(longer: WordSequence, shorter: WordSequence) -> bool:
    sizes = range(len(longer) - len(shorter) + 1)
    return any(longer[i : i + len(shorter)] == shorter for i in sizes)
