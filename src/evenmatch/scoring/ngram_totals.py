"""Corpus BLEU, chrF and TER of many totals at once: sacrebleu's formulas over arrays.

Significance tests score thousands of resampled corpora, each a row of counts summed over segments
in the order sacrebleu counts them. Scores are on the scale from 0 to 1.
"""

from __future__ import annotations

import numpy as np

from evenmatch.types import Array

_FLOOR = 0.1  # what 'floor' puts in the place of no match
_TINY = 1e-16  # what eps smoothing puts in the place of an order that a text does not have


def bleu_of(totals: Array, *, order: int, smoothing: str) -> Array:
    """BLEU of (…, counts): candidate length, reference length, matches and n-grams by order.

    >>> bleu_of(np.array([3.0, 3.0, 3.0, 2.0, 3.0, 2.0]), order=2, smoothing="none").item()
    1.0
    """
    length, wanted = totals[..., 0], totals[..., 1]
    matches, ngrams = totals[..., 2 : 2 + order], totals[..., 2 + order :]
    found = matches.any(-1)
    if smoothing == "add-k":
        added = (np.arange(order) > 0).astype(np.float64)
        matches, ngrams = matches + added, ngrams + added
    unmatched = (matches == 0) & (ngrams > 0)
    if smoothing == "exp":
        # Each further order without a match counts half as much as the one before.
        matches = np.where(unmatched, 0.5 ** np.cumsum(unmatched, -1), matches)
    elif smoothing == "floor":
        matches = np.where(unmatched, _FLOOR, matches)
    brief = np.minimum(1.0, np.exp(1 - _ratio(wanted, length)))
    score = brief * np.exp(_log(_ratio(matches, ngrams)).mean(-1))
    return np.where(found & (length > 0), np.minimum(1.0, score), 0.0)


def chrf_of(totals: Array, *, beta: float, eps_smoothing: bool) -> Array:
    """The chrF of (…, counts): n-grams of candidate and reference, and matches, by order.

    >>> chrf_of(np.array([4.0, 4.0, 2.0]), beta=2.0, eps_smoothing=False).item()
    0.5
    """
    candidate, reference, matches = (totals[..., start::3] for start in range(3))
    if eps_smoothing:
        precision = np.where(candidate > 0, _ratio(matches, candidate), _TINY)
        recall = np.where(reference > 0, _ratio(matches, reference), _TINY)
        each = _weighted_f(precision, recall, beta)
        return np.where(precision + recall > 0, each, _TINY).mean(-1)
    there = (candidate > 0) & (reference > 0)
    orders = there.sum(-1)
    precision = _ratio(np.where(there, _ratio(matches, candidate), 0.0).sum(-1), orders)
    recall = _ratio(np.where(there, _ratio(matches, reference), 0.0).sum(-1), orders)
    return np.minimum(1.0, _weighted_f(precision, recall, beta))


def ter_of(totals: Array) -> Array:
    """TER of (…, 2): edits and mean reference length; 1 for edits of nothing.

    >>> ter_of(np.array([[1.0, 4.0], [2.0, 0.0], [0.0, 0.0]]))
    array([0.25, 1.  , 0.  ])
    """
    edits, length = totals[..., 0], totals[..., 1]
    return np.where(length > 0, _ratio(edits, length), (edits > 0).astype(np.float64))


def _weighted_f(precision: Array, recall: Array, beta: float) -> Array:
    return _ratio((1 + beta**2) * precision * recall, beta**2 * precision + recall)


def _ratio(part: Array, whole: Array) -> Array:
    """The quotient, and 0 where there is nothing to divide by."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)


def _log(share: Array) -> Array:
    """The logarithm, without a remark on that of 0."""
    return np.where(share > 0, np.log(np.where(share > 0, share, 1.0)), -np.inf)
