"""Metrics as filters and re-rankers, against counts made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import evenmatch as em
from evenmatch.evaluation.selection import (
    best_threshold,
    f1_of_counts,
    filter_counts,
    measure_selection,
    rerank_counts,
)

NAN = float("nan")


def test_a_filter_is_counted_by_hand() -> None:
    kept = np.array([[True, False], [True, True], [False, True]])
    good = np.array([[True, True], [False, True], [False, True]])
    known = np.array([[True, True], [True, True], [True, False]])
    counts = filter_counts(kept, good, known)
    assert counts.tolist() == [[1, 2, 1], [1, 1, 2]]
    # precision 2/3, recall 2/3
    assert f1_of_counts(counts.sum(0)) == pytest.approx(2 / 3)


def test_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    assert f1_of_counts(np.array([2.0, 4.0, 5.0])) == pytest.approx(2 / (4 / 2 + 5 / 2))
    assert f1_of_counts(np.zeros(3)) == 0


def test_the_best_threshold_keeps_equal_scores_together() -> None:
    scores, good = np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False])
    assert best_threshold(scores, good) == 0.5  # F1 .8, against 2/3 for 0.9 alone
    assert best_threshold(scores, np.array([True, False, False, False])) == 0.9


def test_a_re_ranker_is_counted_by_hand() -> None:
    x = np.array([[3.0, 1.0, 5.0, NAN, 1.0], [2.0, 1.0, 4.0, 1.0, 2.0], [1.0, 0.0, NAN, NAN, 3.0]])
    y = np.array([[9.0, 7.0, 1.0, NAN, 4.0], [9.0, 7.0, 8.0, 2.0, 4.0], [1.0, 8.0, NAN, NAN, 4.0]])
    counts, random = rerank_counts(x, y)
    # segment 1: the choice is one of two best; 2: two are chosen and none is right; 3: wrong. The
    # fourth has one output and the fifth only equal ratings.
    assert counts.tolist() == [[1, 1, 2], [0, 2, 1], [0, 1, 1]]
    assert random.tolist() == [[2 / 3, 1, 2], [1 / 3, 1, 1], [1 / 2, 1, 1]]


def write_ratings(path: Path) -> Path:
    rng = np.random.default_rng(0)
    words = "rain fell on the long road to a town by the sea last year".split()
    with path.open("w") as file:
        for segment in range(30):
            reference = " ".join(rng.choice(words, 8))
            for system, wrong in enumerate((0, 2, 5)):
                output = reference.split()
                for at in rng.choice(8, wrong, replace=False):
                    output[at] = "x"
                row = {"system": f"s{system}", "segment": segment, "candidate": " ".join(output)}
                row |= {"references": [reference], "rating": -wrong}
                print(json.dumps(row), file=file)
    return path


def test_a_metric_that_sees_every_error_selects_perfectly_and_chance_does_not(
    tmp_path: Path,
) -> None:
    table = write_ratings(tmp_path / "mine.jsonl")
    found = em.correlate(["rouge1", "sentinel_random"], table, "segment", resamples=50)
    entries = {(e.metric, e.task): e for e in measure_selection(found, good=0.33)}
    for task in ("filter", "rerank"):
        right = entries["rouge1", task]
        assert (right.precision, right.recall, right.value, right.n) == (1, 1, 1, 30)
        assert entries["sentinel_random", task].value < 0.75
    assert entries["rouge1", "rerank"].chance == pytest.approx(1 / 3)
    assert entries["rouge1", "filter"].chance == pytest.approx(0.5)
    with pytest.raises(em.InputError, match="share of good outputs must be between 0 and 1, got 1"):
        measure_selection(found, good=1.0)
