"""Limits, ties, empty sides and rounding: where a formula is easily wrong by one step."""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import evenmatch as em
from evenmatch.alignment import batching
from evenmatch.alignment.batching import _split_group
from evenmatch.data.documents import Document
from evenmatch.errors import DataError, InputError, MissingExtraError, UnknownNameError
from evenmatch.metrics.keyphrases.phrase_reducers import TokenMatch
from evenmatch.metrics.ngram.nltk import BleuNltk, Nist
from evenmatch.metrics.ngram.sacrebleu import Chrf
from evenmatch.models.adapters import find_adapter
from evenmatch.models.tokenizer import HiddenStates
from evenmatch.registry import CallContext
from evenmatch.scoring.ensembles import Monotone
from evenmatch.scoring.reducers import Nearness, PartialPrf, Rescale
from evenmatch.stats.bootstrap import _bca_interval, correlation_intervals
from evenmatch.stats.correlation import centre_and_scale
from evenmatch.stats.levels import correlation
from evenmatch.stats.p_values import holm, rank_clusters
from evenmatch.stats.panel import make_panel
from evenmatch.stats.partial import partial_matrix
from evenmatch.stats.permutation import _swap_masks
from evenmatch.stats.soft_accuracy import prepare_soft_accuracy
from evenmatch.training.keyphrases.sequences import epoch_batches, make_keyphrase_examples
from evenmatch.types import NO_FLAGS, Alignment, Array, Embedded, Problem, Units
from evenmatch.units.subtrees import Subtrees
from evenmatch.units.trees import read_conllu
from evenmatch.vectors.mover import Mover, _MoverSide
from evenmatch.vectors.pooling import pool_tokens
from evenmatch.vectors.weighting import IdfTable, Uniform, count_documents


def embedded(*weights: float, flags: frozenset[str] = NO_FLAGS) -> Embedded:
    count = len(weights)
    words = tuple("abcdef"[:count])
    spans = tuple((2 * i, 2 * i + 1) for i in range(count))
    units = Units(" ".join(words), words, spans, tuple((i,) for i in range(count)))
    return Embedded(units, np.eye(max(count, 1))[:count], np.array(weights), np.ones(count), flags)


# Alignment


@pytest.mark.parametrize(
    ("shapes", "max_cells", "groups"),
    [
        ([(2, 3), (3, 2), (3, 3)], 18, [[0, 1], [2]]),  # 2 · 3 · 2 fit, 3 · 3 · 3 do not
        ([(2, 3), (3, 2), (3, 3)], 27, [[0, 1, 2]]),
        ([(2, 3), (3, 2), (3, 3)], 26, [[0, 1], [2]]),
        ([(8, 1), (4, 1), (3, 1)], 99, [[0, 1], [2]]),  # 3 is less than half of 8, 4 is not
        ([(5, 5)], 1, [[0]]),  # a matrix above the limit is a group of its own
        ([], 1, []),
    ],
)
def test_matrices_are_grouped_by_padded_size(
    shapes: Sequence[tuple[int, int]], max_cells: int, groups: list[list[int]]
) -> None:
    assert list(_split_group(range(len(shapes)), shapes, max_cells)) == groups


def test_compiled_loops_take_matrices_of_numpy_once_they_pay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(batching, "_solve_with_loops", lambda problems, loop: ["loops"])
    monkeypatch.setattr(batching, "_solve_with_arrays", lambda problems, solve: ["arrays"])
    own, other = (Problem(s, np.ones(2), np.ones(2)) for s in (np.eye(2), torch.eye(2)))
    solve: Any = batching.solve_in_batches
    for pays, solver in ((True, "loops"), (False, "arrays")):
        monkeypatch.setattr(batching, "should_use_loops", partial(bool, pays))
        assert solve([own], len, len) == [solver]
        assert solve([own], len) == solve([own, other], len, len) == ["arrays"]


@pytest.mark.parametrize("solver", ["sinkhorn(epsilon=0.3)", "unbalanced"])
def test_single_precision_is_solved_in_double_precision(solver: str) -> None:
    similarity = np.array([[0.9, 0.8, 0.1], [0.85, 0.2, 0.3]], dtype=np.float32)
    masses = np.ones(2), np.ones(3)
    part = em.build(solver)
    [single] = part([Problem(similarity, *masses)])
    [double] = part([Problem(similarity.astype(np.float64), *masses)])
    assert_allclose(single.rows, double.rows, rtol=1e-12, atol=0)
    assert_allclose(single.cols, double.cols, rtol=1e-12, atol=0)


# Scoring


def test_a_side_without_weight_matches_nothing() -> None:
    one = Alignment(np.ones((1, 1)), np.ones((1, 1)), exact=True)
    half = np.array([[0.5]])
    for reducer, value in ((Nearness(), 1 / 1.5), (PartialPrf(), None)):
        for x, y in (((0.0,), (1.0,)), ((1.0,), (0.0,))):
            found = reducer(half, one, embedded(*x), embedded(*y))
            assert found.value == 0
            assert found.flags == {"no_match"}
        small = reducer(-half if value else half, one, embedded(0.25), embedded(0.5))
        assert small.value > 0
        if value:
            assert small.value == pytest.approx(value)


def test_a_penalty_of_one_is_the_least() -> None:
    assert PartialPrf(penalty=1.0).penalty == 1
    with pytest.raises(InputError, match="penalty"):
        PartialPrf(penalty=0.99)


@pytest.mark.parametrize(("candidate", "reference"), [("", "a"), ("a", ""), ("", "")])
def test_empty_texts_are_not_rescaled(candidate: str, reference: str) -> None:
    plain = em.AlignMetric(vectors=em.Hashed())
    metric = em.AlignMetric(vectors=em.Hashed(), scoring=Rescale(low=0.5))
    pair = [em.Pair(candidate, (reference,))]
    assert metric(pair).segments[0].value == plain(pair).segments[0].value
    unlike = [em.Pair("a b", ("a c",))]
    expected = (plain(unlike).segments[0].value - 0.5) / 0.5
    assert metric(unlike).segments[0].value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("at", "to", "fits"),
    [((0.0, 1.0), (0.0, 2.0), True), ((0.0,), (0.0,), False), ((0.0, 1.0), (0.0, 1.0, 2.0), False)],
)
def test_a_calibration_map_has_two_knots_at_least(at: Any, to: Any, fits: bool) -> None:
    if fits:
        assert Monotone(em.build("bleu"), at, to).bounds == (0.0, 2.0)
    else:
        with pytest.raises(InputError, match="as many values in `at` as in `to`, at least 2"):
            Monotone(em.build("bleu"), at, to)


# N-grams and keyphrases


def test_orders_and_betas_have_limits() -> None:
    for metric in (Nist, BleuNltk):
        assert metric(order=1000).order == 1000
        with pytest.raises(InputError, match="order must be at most 1000, got 1001"):
            metric(order=1001)
    assert Chrf(beta=0.5).beta == 0.5
    with pytest.raises(InputError, match="beta"):
        Chrf(beta=0.0)


@pytest.mark.parametrize(
    ("package", "names"),
    [
        ("sacrebleu", ("bleu", "chrf", "ter")),
        ("rouge-score", ("rouge1", "rouge2")),
        ("nltk", ("chrf_nltk", "meteor")),
    ],
)
def test_a_missing_library_is_named(
    monkeypatch: pytest.MonkeyPatch, package: str, names: tuple[str, ...]
) -> None:
    def fail(module: str) -> None:
        raise ImportError(module)

    monkeypatch.setattr(importlib, "import_module", fail)
    for name in names:
        with pytest.raises(MissingExtraError, match=f"this metric needs {package}; install it"):
            em.build(name).open(CallContext())


def test_the_random_sentinel_is_a_hash_of_seed_and_texts() -> None:
    def draw(text: str) -> float:
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")

    found = em.score(["a", "b"], [["c"], ["c", "d"]], "sentinel_random(seed=3)").segments
    assert found[0].value == draw("3\0a\0c") / 2**64
    assert found[1].value == max(draw("3\0b\0c"), draw("3\0b\0d")) / 2**64


@pytest.mark.parametrize(("x", "y", "value"), [((), (), 1.0), ((), (1.0,), 0.0), ((1.0,), (), 0.0)])
def test_token_match_of_two_empty_lists_is_one(x: Any, y: Any, value: float) -> None:
    empty = np.zeros((len(x), len(y)))
    found = TokenMatch()(empty, Alignment(empty, empty, exact=True), embedded(*x), embedded(*y))
    assert (found.value, found.precision, found.recall) == (value, value, value)


def test_a_metric_s_flags_and_those_of_both_lists_are_kept() -> None:
    """Flags of an empty side, of the candidate and of the reference."""
    empty = np.zeros((0, 1))
    x, y = embedded(flags=frozenset({"one"})), embedded(1.0, flags=frozenset({"other"}))
    found = TokenMatch()(empty, Alignment(empty, empty, exact=True), x, y)
    assert found.flags == {"empty_candidate", "one", "other"}


def test_documents_that_are_left_out_are_counted_by_reason() -> None:
    texts = ("a cat", "a cat sat here", "a cat sat there", "", "the cat sat")
    found = make_keyphrase_examples([Document(t, ("cat",)) for t in texts], longest=3)
    assert found.left_out == {"longer than 3 tokens": 2, "without words": 1}
    assert [example.words for example in found.examples] == [("a", "cat"), ("the", "cat", "sat")]


def test_an_epoch_s_batches_depend_on_seed_and_number_alone() -> None:
    lengths = [1 + i % 7 for i in range(40)]

    def batches(seed: int, number: int) -> list[list[int]]:
        return [b.tolist() for b in epoch_batches(lengths, 4, seed=seed, number=number)]

    first = batches(1, 0)
    assert sorted(i for batch in first for i in batch) == list(range(40))
    assert first == batches(1, 0)
    assert first not in (batches(1, 1), batches(2, 0))


# Statistics


def test_rows_are_centred_and_scaled_one_by_one() -> None:
    """(1, 3, 5) lies within 3 ± 2; (10, 20, 60) within 35 ± 25, with the mean -1/5 after that."""
    nan = float("nan")
    x = np.array([[1.0, 3.0, 5.0], [10.0, 20.0, 60.0], [nan, 2.0, 2.0], [nan, 4.0, 6.0]])
    expected = np.array([[-1, 0, 1], [-0.8, -0.4, 1.2], [0, 0, 0], [0, -1, 1]])
    assert_allclose(centre_and_scale(x), expected, atol=1e-12)
    huge = centre_and_scale(np.array([[-1.7e308, 1.7e308]]))
    assert_allclose(huge, [[-1, 1]])


def test_correlations_of_huge_and_tiny_numbers_are_those_of_scaled_ones() -> None:
    x, y = np.array([1.0, 3.0, 2.0, 5.0]), np.array([1.0, 2.0, 4.0, 4.0])
    expected = np.corrcoef(x, y)[0, 1]
    assert correlation(x * 1e200, y * 1e-200, "pearson") == pytest.approx(expected)
    assert correlation([x, x * 1e9 + 1], y, "pearson") == pytest.approx([expected] * 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda bad: correlation(bad, [1.0], "pearson"), "x is not an array"),
        (lambda bad: correlation([1.0], bad, "pearson"), "y is not an array"),
        (holm, "p is not an array"),
        (lambda bad: rank_clusters(bad, [[1.0]]), "values is not an array"),
        (lambda bad: rank_clusters([1.0], bad), "p is not an array"),
        (lambda bad: make_panel(bad, [1.0]), "metrics is not an array"),
        (lambda bad: make_panel([1.0], bad), "human is not an array"),
    ],
)
def test_what_is_no_array_is_named(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call(["text"])
    with pytest.raises(UnknownNameError, match="no correlation is called 'pearsen'"):
        correlation([1.0], [1.0], "pearsen")  # type: ignore[arg-type]  # the wrong name


def test_an_interval_is_95_percent_by_default() -> None:
    panel = make_panel([[1.0, 4.0], [2.0, 6.0], [6.0, 5.0]], [[1.0, 2.0], [2.0, 4.0], [3.0, 3.0]])
    asked = correlation_intervals(
        panel, level="system", method="pearson", confidence=0.95, resamples=1000, seed=0
    )
    assert correlation_intervals(panel, level="system", method="pearson") == asked


@pytest.mark.parametrize("confidence", [0.95, 0.6])
def test_bca_bounds_follow_the_formula_of_efron(confidence: float) -> None:
    """3 of 8 resamples lie below 4 and one on it; leaving out an item gives 3, 4 and 8."""
    draws, left_out = np.array([1.0, 2, 3, 4, 5, 7, 8, 9]), np.array([3.0, 4, 8])
    bias = norm.ppf(3.5 / 8)
    influence = 5 - left_out  # (2, 1, -3)
    acceleration = (8 + 1 - 27) / (6 * (4 + 1 + 9) ** 1.5)
    assert (influence**3).sum() == -18
    expected = []
    for edge in ((1 - confidence) / 2, (1 + confidence) / 2):
        z = bias + norm.ppf(edge)
        expected.append(np.quantile(draws, norm.cdf(bias + z / (1 - acceleration * z))))
    found = _bca_interval(4.0, draws, left_out, confidence)
    assert (found.value, found.low, found.high) == pytest.approx((4.0, *expected))
    # a value beyond all resamples has the bias of half a resample
    beyond = _bca_interval(99.0, draws, np.ones(3), confidence)
    bias = norm.ppf(1 - 0.5 / 8)
    edges = [norm.cdf(2 * bias + norm.ppf(e)) for e in ((1 - confidence) / 2, (1 + confidence) / 2)]
    assert (beyond.low, beyond.high) == pytest.approx(tuple(np.quantile(draws, edges)))


@pytest.mark.parametrize(("swap", "together"), [("both", 4), ("systems", 1)])
def test_swaps_are_drawn_for_outputs_or_for_systems(swap: Any, together: int) -> None:
    [found] = _swap_masks((3, 4), swap, 5, 7)
    drawn = np.random.default_rng(7).integers(2, size=(5, 3, together), dtype=np.uint8)
    assert (found == np.broadcast_to(drawn.astype(bool), (5, 3, 4))).all()


def test_soft_accuracy_is_not_a_number_without_pairs_of_systems() -> None:
    panel = make_panel([[1.0, 2.0], [2.0, 3.0], [5.0, 5.0]], [[1.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    weights = np.array([[3.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    found = prepare_soft_accuracy(panel)(weights, np.ones((1, 2)))
    assert found.dtype == np.float64
    assert np.isnan(found[0, 0])
    # each pair of systems has the same p-value by the metric as by the humans
    assert found[1, 0] == pytest.approx(1.0)


def test_partial_correlations_without_a_complete_point_are_not_numbers() -> None:
    nan = float("nan")
    found = partial_matrix([[nan, 1.0], [1.0, nan]], [1.0, 2.0])
    assert np.isnan(found).all()
    assert found.shape == (2, 2)


# Units and vectors


def conllu(*heads: int) -> list[str]:
    return [f"{i}\tw{i}\t_\t_\tNN\t_\t{head}\tdep\t_\t_" for i, head in enumerate(heads, 1)]


@pytest.mark.parametrize("head", [-1, 3])
def test_heads_outside_of_a_sentence_are_refused(head: int) -> None:
    with pytest.raises(DataError, match="has a head outside the sentence"):
        list(read_conllu(conllu(0, head)))
    assert [s.tree.words for s in read_conllu(conllu(0, 1))] == [(0, 1)]


@pytest.mark.parametrize("kind", ["nodes", "paths", "descendants"])
def test_one_kind_of_subtree_is_enough(kind: str) -> None:
    kinds = dict.fromkeys(("nodes", "paths", "descendants"), False)
    assert getattr(Subtrees(**kinds | {kind: True}), kind)  # type: ignore[arg-type]  # by name
    with pytest.raises(InputError, match="needs at least one of nodes, paths and descendants"):
        Subtrees(**kinds)  # type: ignore[arg-type]  # by name


def test_idf_of_keys_beyond_the_vocabulary_is_looked_up() -> None:
    """Hashes of words are larger than token ids and are found by bisection."""
    keys = np.array([-5, 3, 1 << 40])
    table = IdfTable(7, keys, np.array([1, 3, 7]))
    expected = [math.log(8 / 2), math.log(8 / 4), 0.0, math.log(8), math.log(8)]
    assert table.idf(np.array([-5, 3, 1 << 40, 4, 1 << 41])) == pytest.approx(expected)
    nothing = count_documents([])
    assert (nothing.documents, nothing.keys.dtype, nothing.counts.dtype) == (0, np.int64, np.int64)


def test_the_bundled_adapter_is_found_by_its_name() -> None:
    found = find_adapter("gender")
    assert found.name == "gender"
    assert found.path.parts[-3:-1] == ("shipped_adapters", "gender")
    assert found.path.is_file()
    with pytest.raises(UnknownNameError, match=r"or one that comes with evenmatch: .*gender"):
        find_adapter("nosuch")


def test_a_token_over_the_last_two_words_counts_once_for_a_unit_of_both() -> None:
    """Tokens are "ab", "cd e" and "f"; the unit "cd ef" has the second and the third."""
    spans = np.array([(0, 2), (3, 7), (7, 8)])
    states = HiddenStates("ab cd ef", np.array([5, 6, 7]), spans, {})
    words = ((0, 2), (3, 5), (6, 8))
    units = Units("ab cd ef", ("ab", "cd", "ef"), words, ((0,), (1,), (2,), (1, 2)))
    vectors = np.array([[1.0], [2.0], [4.0]])
    found = pool_tokens(units, states, vectors, "mean", Uniform(), Uniform())
    assert found.vectors.tolist() == [[1.0], [2.0], [3.0], [3.0]]


def test_a_token_without_a_direction_keeps_its_zeros() -> None:
    side = _MoverSide(None, (0, 1), 1, Uniform(), np.zeros(9, bool))  # type: ignore[arg-type]  # no model
    layers: dict[int, Array] = {0: np.zeros((1, 2)), 1: np.array([[3.0, 4.0]])}
    states = HiddenStates("a", np.array([3]), np.array([(0, 1)]), {}, layers)
    assert_allclose(side._combine_layers(states), [[0, 0, 0.3, 0.4, 0.6, 0.8]])


def test_mover_reads_at_most_a_thousand_layers_and_tokens() -> None:
    for name in ("layers", "n_gram"):
        assert getattr(Mover(**{name: 1000}), name) == 1000  # type: ignore[arg-type]  # by name
        with pytest.raises(InputError, match=name):
            Mover(**{name: 1001})  # type: ignore[arg-type]  # by name
