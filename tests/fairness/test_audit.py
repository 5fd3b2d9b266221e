from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.fairness_sets import FairnessPair, FairnessSet, make_fairness_pair
from evenmatch.errors import InputError
from evenmatch.fairness.audit import HEADLINE_COLUMNS, audit, pair_directions
from evenmatch.fairness.bias import AttributeScores, measure_bias
from evenmatch.stats.paired import Resampling

QUICK = Resampling(confidence=0.95, resamples=200, trials=500, seed=0)


def pair(a: str, b: str, reference: str, **scores: tuple[float, float]) -> FairnessPair:
    return make_fairness_pair(a, reference, b, reference, scores=scores)


def test_bias_is_the_mean_distance_where_the_scores_span_a_hundred() -> None:
    first, second = np.array([0.5, 0.9, 0.6]), np.array([0.6, 0.7, 0.6])
    found = measure_bias(AttributeScores("x", "m", first, second), QUICK)
    assert found.bias == pytest.approx(100 * (0.1 + 0.2 + 0.0) / 3 / 0.4)
    assert found.stereotype == pytest.approx(100 * (-0.1 + 0.2) / 3 / 0.4)
    assert (found.raw, found.raw_stereotype) == pytest.approx((0.1, 0.1 / 3))
    assert (found.least, found.most) == (0.5, 0.9)
    assert found.low <= found.bias <= found.high


def test_turning_every_pair_round_turns_the_sign_and_keeps_the_bias() -> None:
    draw = np.random.default_rng(0)
    first, second = draw.random(40), draw.random(40)
    one = measure_bias(AttributeScores("x", "m", first, second), QUICK)
    other = measure_bias(AttributeScores("x", "m", second, first), QUICK)
    assert one.bias == pytest.approx(other.bias)
    assert one.stereotype == pytest.approx(-other.stereotype)


def test_where_lower_is_better_the_sign_still_says_what_is_preferred() -> None:
    first, second = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    found = measure_bias(
        AttributeScores("x", "errors", first, second, higher_is_better=False), QUICK
    )
    assert found.stereotype > 0


def test_a_constant_metric_has_no_bias() -> None:
    same = np.full(5, 0.3)
    found = measure_bias(AttributeScores("x", "m", same, same), QUICK)
    assert (found.bias, found.stereotype, found.p) == (0.0, 0.0, 1.0)


def test_the_test_finds_a_preference_and_finds_none_where_signs_are_even() -> None:
    second = np.linspace(0, 1, 40)
    preferring = measure_bias(AttributeScores("x", "m", second + 0.1, second), QUICK)
    even = measure_bias(AttributeScores("x", "m", second + np.tile([0.1, -0.1], 20), second), QUICK)
    assert preferring.p < 0.01
    assert even.p > 0.5
    assert even.bias == pytest.approx(100 * 0.1 / (even.most - even.least))


def test_one_odd_pair_shrinks_the_bias_and_leaves_the_raw_difference() -> None:
    first, second = np.array([0.5, 0.6, 0.7]), np.array([0.4, 0.5, 0.6])
    plain = measure_bias(AttributeScores("x", "m", first, second), QUICK)
    odd = measure_bias(
        AttributeScores("x", "m", np.append(first, 5.1), np.append(second, 5.0)), QUICK
    )
    assert odd.raw == pytest.approx(plain.raw)
    assert odd.bias < plain.bias / 5


def directed(gaps: Sequence[float], directions: Sequence[float]) -> AttributeScores:
    second = np.linspace(0.0, 1.0, len(gaps))
    return AttributeScores(
        "x", "m", second + np.array(gaps), second, directions=np.array(directions, dtype=float)
    )


def test_an_offset_alone_is_no_stereotype() -> None:
    found = measure_bias(directed([0.1, 0.1, -0.1, -0.1], [1, 1, -1, -1]), QUICK)
    assert found.raw_offset == pytest.approx(0.1)
    assert found.raw_stereotype == pytest.approx(0.0, abs=1e-12)
    assert found.prefers_stereotype == 0.5
    assert found.p == 1.0


def test_a_stereotype_alone_is_no_offset() -> None:
    found = measure_bias(directed([0.1, 0.1, 0.1, 0.1, 0.1], [1, 1, -1, -1, -1]), QUICK)
    assert found.raw_offset == pytest.approx(0.0, abs=1e-12)
    assert found.raw_stereotype == pytest.approx(0.1)
    assert (found.prefers_stereotype, found.prefers_beyond_offset) == (1.0, 1.0)


def test_a_stereotype_hidden_by_an_offset_is_found() -> None:
    found = measure_bias(directed([0.3, 0.3, -0.1, -0.1], [1, 1, -1, -1]), QUICK)
    assert found.prefers_stereotype == 0.5
    assert found.prefers_beyond_offset == 1.0
    assert (found.raw_offset, found.raw_stereotype) == pytest.approx((0.2, 0.1))


def test_pairs_of_one_direction_have_no_offset() -> None:
    found = measure_bias(directed([0.3, 0.1, -0.1], [1, 1, -1]), QUICK)
    assert (found.offset, found.raw_offset, found.prefers_beyond_offset) == (None, None, None)
    assert found.raw_stereotype == pytest.approx(0.1)
    assert found.directed == 3


def test_the_effect_does_not_depend_on_the_metric_s_scale() -> None:
    plain = directed([0.1, -0.3, 0.2], [1, -1, 1])
    larger = AttributeScores("x", "m", 1000 * plain.first - 7, 1000 * plain.second - 7)
    one, other = measure_bias(plain, QUICK), measure_bias(larger, QUICK)
    assert one.effect == pytest.approx(other.effect)
    assert one.prefers_stereotype == other.prefers_stereotype


def test_the_headline_ranks_metrics_by_effect() -> None:
    found = audit(["chrf", "rouge1"], attributes=["gender", "age"], resamples=20, trials=20)
    header, *rows = found.headline()
    assert header == list(HEADLINE_COLUMNS)
    assert [row[0] for row in rows] == ["rouge1", "chrf"]
    chrf = [bias for bias in found.biases if bias.metric == "chrf"]
    assert rows[1][1] == f"{np.mean([bias.effect for bias in chrf]):.3f}"
    assert rows[1][4] == f"{np.mean([bias.prefers_stereotype for bias in chrf]):.3f}"
    beyond = [b.prefers_beyond_offset for b in chrf if b.prefers_beyond_offset is not None]
    assert header[5] == "beyond offset"
    assert rows[1][5] == f"{np.mean(beyond):.3f}"


def test_the_direction_of_a_pair_is_stated_or_read_off_its_words() -> None:
    pairs = [
        pair("he left", "she left", "one left"),
        pair("The poor man sat", "The rich man sat", "The man sat"),
        make_fairness_pair("a cat", "a pet", "a dog", "a pet", direction=-1),
        pair("a dog", "a cat", "a pet"),
    ]
    assert pair_directions("gender", pairs[:1]).tolist() == [1]
    assert pair_directions("socioeconomic", pairs[1:2]).tolist() == [1]
    assert pair_directions("pets", pairs[2:]).tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (AttributeScores("x", "m", np.ones(3), np.ones(2)), "3 first and 2 second scores"),
        (
            AttributeScores("x", "m", np.ones(2), np.ones(2), directions=np.array([1.0, 0.5])),
            "directions about 'x' must be 1, -1 or 0",
        ),
    ],
)
def test_scores_that_do_not_fit_together_are_refused(scores: AttributeScores, words: str) -> None:
    with pytest.raises(InputError, match=words):
        measure_bias(scores, QUICK)


def test_a_fairness_pair_has_four_texts_and_a_direction() -> None:
    with pytest.raises(InputError, match=r"make_fairness_pair.* 3"):
        make_fairness_pair("a", "b", 3, "d")  # type: ignore[arg-type]  # a wrong call
    with pytest.raises(InputError, match="is 1, -1 or 0, got 2"):
        make_fairness_pair("a", "b", "c", "d", direction=2)


def test_a_score_that_is_no_number_is_refused_by_its_pair() -> None:
    with pytest.raises(InputError, match="m gives no finite score to pair 2 about 'x'"):
        measure_bias(
            AttributeScores("x", "m", np.array([1.0, np.inf]), np.array([1.0, 1.0])), QUICK
        )
    with pytest.raises(InputError, match="1 pairs about 'x' are too few"):
        measure_bias(AttributeScores("x", "m", np.array([1.0]), np.array([1.0])), QUICK)


def test_metrics_are_audited_on_our_own_pairs_without_any_data() -> None:
    found = audit(["chrf", "rouge1"], resamples=20, trials=20)
    assert found.attributes == list(em.read_fair_pairs().pairs)
    assert found.metrics == ["chrf", "rouge1"]
    rows = {(row["attribute"], row["metric"]): row for row in found.rows}
    assert rows["gender", "chrf"]["bias"] > 0
    assert rows["gender", "rouge1"]["raw"] == 0.0  # neither pronoun is in the reference


def test_the_worst_pairs_come_first_with_their_texts_and_scores() -> None:
    pairs = [
        pair("the cat sat", "the dog sat", "the cat sat"),
        pair("a b", "a b", "a b"),
        pair("x y", "c d", "c d"),
    ]
    found = audit("align(vectors=hashed)", FairnessSet("mine", {"pets": pairs}), worst=5)
    assert [(case.number, case.cand_a) for case in found.worst] == [(3, "x y"), (1, "the cat sat")]
    assert found.worst[0].gap == pytest.approx(-100.0)
    assert found.worst[1].score_a == pytest.approx(1.0)


def test_published_scores_are_audited_beside_a_metric() -> None:
    pairs = [pair("a", "b", "a", old=(1.0, 0.0)), pair("b", "a", "a", old=(0.5, 0.5))]
    found = audit("chrf", FairnessSet("mine", {"x": pairs}), published=True)
    assert found.metrics == ["chrf", "old"]
    assert found.biases[1].bias == pytest.approx(50.0)
    assert found.signatures["old"] == "published scores"


@pytest.mark.parametrize(
    ("metrics", "published", "words"),
    [
        ([], False, "the list of metrics is empty"),
        ([], True, "mine has no published scores"),
    ],
)
def test_nothing_to_audit_is_refused(metrics: Sequence[str], published: bool, words: str) -> None:
    pairs = FairnessSet("mine", {"x": [pair("a", "b", "a")] * 2})
    with pytest.raises(InputError, match=words):
        audit(metrics, pairs, published=published)


def test_a_pair_without_the_others_scores_is_named() -> None:
    pairs = [pair("a", "b", "a", old=(1.0, 0.0)), pair("b", "a", "a")]
    with pytest.raises(InputError, match="pair 2 about 'x' has no score of old"):
        audit([], FairnessSet("mine", {"x": pairs}), published=True)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="worst must be at least 0, got -1"):
        audit("chrf", worst=-1)
    with pytest.raises(InputError, match="trials must be at least 1, got 0"):
        audit("chrf", trials=0)


def test_an_audit_reads_as_a_grid_a_table_and_the_worst_texts() -> None:
    pairs = [pair("the cat sat", "the dog sat", "the cat sat"), pair("a b", "a c", "a b")]
    text = str(audit("align(vectors=hashed)", FairnessSet("mine", {"pets": pairs}), worst=1))
    title, header, *_ = text.splitlines()
    assert title.startswith("Ranked by bias in standard deviations")
    assert header.split()[:3] == ["metric", "bias", "(SD)"]
    assert "\nBias (SD) by attribute (comparable)\nmetric                  pets   mean\n" in text
    assert "raw stereotype" in text
    assert "reference the cat sat" in text or "reference a b" in text
