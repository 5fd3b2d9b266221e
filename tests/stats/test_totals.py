from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenmatch.errors import InputError
from evenmatch.stats.paired import approximate_randomisation, paired_bootstrap, score_interval
from evenmatch.stats.panel import Floats

WORDS = "the a cat dog sat ran on mat sofa slowly".split()


def test_a_mean_difference_is_the_difference_of_means() -> None:
    first, second = [1.0, 2.0, 4.0], [1.0, 1.0, 2.0]
    assert paired_bootstrap(first, second).value == pytest.approx(1)
    assert approximate_randomisation(first, second).statistic == pytest.approx(1)


def test_random_swaps_come_near_to_all_swaps() -> None:
    first, second = np.array([3.0, 2.0, 4.0, 0.5, 1.0]), np.array([1.0, 1.5, 2.0, 1.0, 0.0])
    difference = first - second
    all_sums = [abs((difference * s).sum()) for s in product([1, -1], repeat=5)]
    exact = np.mean(np.array(all_sums) >= abs(difference.sum()) - 1e-12)
    assert approximate_randomisation(first, second).p == pytest.approx(exact, abs=0.02)


def test_systems_that_do_not_differ_have_p_one() -> None:
    same = [0.1, 0.5, 0.3]
    assert paired_bootstrap(same, same).p == 1
    assert approximate_randomisation(same, same).p == 1


def test_the_interval_comes_near_to_the_normal_one() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(0.3, 1, 400), random.normal(0, 1, 400)
    found = paired_bootstrap(first, second, resamples=5000)
    spread = 1.96 * (first - second).std() / 20
    centre = (first - second).mean()
    assert_allclose([found.low, found.high], [centre - spread, centre + spread], atol=0.02)
    assert found.p < 0.01


def test_one_side_asks_whether_the_first_is_better() -> None:
    better, worse = np.arange(10.0) + 1, np.arange(10.0)[::-1]
    forth = approximate_randomisation(better, worse, side="greater").p
    back = approximate_randomisation(worse, better, side="greater").p
    assert forth < 0.5 < back


def test_counts_are_scored_by_their_totals() -> None:
    right, made_ = np.array([1.0, 4.0, 0.0]), np.array([2.0, 4.0, 4.0])
    found = score_interval(np.stack([right, made_], axis=-1))
    assert found.value == pytest.approx(5 / 10)
    assert found.low <= found.value <= found.high


def test_any_function_of_totals_can_be_compared() -> None:
    def product_of(totals: Floats) -> Floats:
        found: Floats = totals.prod(-1)
        return found

    one, two = np.array([[1.0, 1, 2], [3, 1, 2]]), np.array([[1.0, 1, 1], [1, 1, 1]])
    assert paired_bootstrap(one, two, score=product_of).value == 4 * 2 * 4 - 8


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

    counts = [metric._extract_corpus_statistics(texts, None) for texts in (one, two)]
    found = approximate_randomisation(*counts, score=bleu, resamples=500, seed=7)
    # ours counts the one draw that equals the difference, sacrebleu's does not
    assert -1e-12 <= found.p - theirs <= 1 / 501 + 1e-12
    assert 1 / 501 < found.p < 1


def test_segments_that_one_system_lacks_are_left_out() -> None:
    assert paired_bootstrap([1, np.nan, 3], [0, 5, 1]).value == pytest.approx(1.5)


def test_systems_of_different_length_are_refused() -> None:
    with pytest.raises(InputError, match=r"systems have shapes \(2,\), \(3,\); give each the same"):
        paired_bootstrap([1, 2], [1, 2, 3])


def test_counts_without_a_function_are_refused() -> None:
    with pytest.raises(InputError, match="rows of 3 counts need a function that scores their tot"):
        score_interval(np.ones((4, 3)))


def test_no_common_segment_is_refused() -> None:
    with pytest.raises(InputError, match="no segment has a score from every system; give at least"):
        paired_bootstrap([1, np.nan], [np.nan, 1])
