from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import ArrayLike

from evenmatch.stats.paired import (
    ResampledScore,
    approximate_randomisation,
    bootstrap_p_value,
    compare_pairs,
    mean_counts,
    mean_score,
    randomisation_p_value,
    resample_scores,
)
from evenmatch.stats.panel import Floats

WORDS = "the a cat dog sat ran on mat sofa slowly".split()


def resampled(*systems: ArrayLike, resamples: int = 1000) -> list[ResampledScore]:
    """Means of systems with shared resamples."""
    counts = dict(enumerate(map(mean_counts, systems)))
    scores = dict.fromkeys(counts, mean_score)
    return [*resample_scores(counts, scores, resamples=resamples, trials=100, seed=0).values()]


def swap_p(first: ArrayLike, second: ArrayLike) -> float:
    return approximate_randomisation(
        mean_counts(first), mean_counts(second), mean_score, resamples=10_000, seed=0
    )


def test_the_score_of_mean_counts_is_the_mean() -> None:
    assert [each.value for each in resampled([1.0, 2.0, 4.5], [1.0, 1.0, 1.0])] == [2.5, 1.0]


def test_random_swaps_come_near_to_all_swaps() -> None:
    first, second = np.array([3.0, 2.0, 4.0, 0.5, 1.0]), np.array([1.0, 1.5, 2.0, 1.0, 0.0])
    difference = first - second
    all_sums = [abs((difference * s).sum()) for s in product([1, -1], repeat=5)]
    exact = np.mean(np.array(all_sums) >= abs(difference.sum()) - 1e-12)
    assert swap_p(first, second) == pytest.approx(exact, abs=0.02)


def test_systems_that_do_not_differ_have_p_one() -> None:
    same = [0.1, 0.5, 0.3]
    one, two = resampled(same, same)
    assert bootstrap_p_value(one, two) == randomisation_p_value(one, two) == 1
    assert swap_p(same, same) == 1


def test_the_interval_comes_near_to_the_normal_one() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(0.3, 1, 400), random.normal(0, 1, 400)
    scores = dict(zip("ba", resampled(second, first, resamples=5000), strict=True))
    ((_, _, _, low, high, p, *_),) = compare_pairs(scores, [0.5], 0.95)
    spread = 1.96 * (first - second).std() / 20
    centre = (first - second).mean()
    assert_allclose([low, high], [centre - spread, centre + spread], atol=0.02)
    assert p < 0.01


def test_any_function_of_totals_can_be_compared() -> None:
    def product_of(totals: Floats) -> Floats:
        found: Floats = totals.prod(-1)
        return found

    counts = {"a": np.array([[1.0, 1, 2], [3, 1, 2]]), "b": np.array([[1.0, 1, 1], [1, 1, 1]])}
    scores = dict.fromkeys(counts, product_of)
    found = resample_scores(counts, scores, resamples=10, trials=0, seed=0)
    assert (found["a"].value, found["b"].value) == (4 * 2 * 4, 8)


@pytest.mark.parametrize(("noise", "more_noise"), [(0.3, 0.32), (0.3, 0.4)])
def test_randomisation_equals_sacrebleus_for_bleu(
    noise: float, more_noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    significance = pytest.importorskip("sacrebleu.significance")
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    random = np.random.default_rng(0)
    references = random.choice(WORDS, (30, 8))
    first, second = (
        np.where(random.random((30, 8)) < share, random.choice(WORDS, (30, 8)), references)
        for share in (noise, more_noise)
    )
    one, two = ([" ".join(words) for words in texts] for texts in (first, second))
    metric = sacrebleu.BLEU(references=[[" ".join(words) for words in references]])
    systems = [("one", one), ("two", two)]
    test = significance.PairedTest(systems, {"BLEU": metric}, None, "ar", 500, 0, 1)
    theirs = test()[1]["BLEU"][1].p_value

    def bleu(totals: Floats) -> Floats:
        rows = totals.reshape(-1, totals.shape[-1]).astype(int).tolist()
        scores = [metric._compute_score_from_stats(row).score for row in rows]
        return np.reshape(scores, totals.shape[:-1])

    counts = [
        np.array(metric._extract_corpus_statistics(texts, None), dtype=float)
        for texts in (one, two)
    ]
    found = approximate_randomisation(counts[0], counts[1], bleu, resamples=500, seed=7)
    # ours counts the one draw that equals the difference, sacrebleu's does not
    assert -1e-12 <= found - theirs <= 1 / 501 + 1e-12
    assert 1 / 501 < found < 1
