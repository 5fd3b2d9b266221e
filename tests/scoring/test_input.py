"""What a user hands in: every wrong shape is refused, in words, with the row it is in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.errors import InputError, UnknownNameError
from evenmatch.types import Pair

METRIC = "align(vectors=hashed)"


@pytest.mark.parametrize(
    ("candidates", "references", "words"),
    [
        ("a text", ["a text"], r"candidates must be a list of texts, got one string; write \[cand"),
        (["a text"], "a text", r"references must be a list of texts, got one string"),
        (b"bytes", ["a"], "candidates must be a list of texts, got bytes"),
        (None, ["a"], "candidates must be a list of texts, got NoneType"),
        ({"a": 1}, ["a"], "candidates must be a list of texts, got dict"),
        ({"a"}, ["a"], "candidates must be a list of texts, got set"),
        (iter(["a"]), ["a"], "candidates must be a list of texts, got list_iterator"),
        (np.array(["a"]), ["a"], "candidates must be a list of texts, got ndarray"),
        (["a", None], ["a", "b"], "the candidate of row 1 must be a string, got None"),
        (["a", 3.5], ["a", "b"], r"the candidate of row 1 must be a string, got 3\.5"),
        ([b"a", "b"], ["a", "b"], "the candidate of row 0 must be a string, got b'a'"),
        ([["a"], "b"], ["a", "b"], r"must be a string, got \['a'\]; join keyphrases with em.join_"),
        (["a", "b"], ["a", None], r"references mix strings and lists: row 1 differs"),
        (["a", "b"], ["a", 7], r"references mix strings and lists: row 1 differs"),
        (["a"], [None], "the reference of row 0 must be a string or a list .*, got NoneType"),
        (["a"], [b"a"], "the reference of row 0 must be a string or a list .*, got bytes"),
        (["a"], [{"a": "b"}], "the reference of row 0 must be a string or a list .*, got dict"),
        (["a", "b"], [["a"], ["b", None]], "the reference of row 1 must be a string, got None"),
        (["a", "b"], [["a"], [b"b"]], "the reference of row 1 must be a string, got b'b'"),
        (["a", "b"], [["a"], []], "row 1 has no reference; give at least one"),
        (["a", "b"], ["a", ["b"]], "references mix strings and lists: row 1 differs from row 0"),
        (["a", "b"], [["a"], "b"], "references mix strings and lists: row 1 differs from row 0"),
        (["a", "b"], ["a"], "2 candidates but 1 reference; give one per candidate"),
        (["a"], [], "1 candidate but 0 references; give one per candidate"),
        (["a", "b"], [["a"]], "2 candidates but 1 list of references"),
        (["a", "b"], [["r1", "r2"]], "these look transposed"),
        (
            ["a", "b", "c"],
            [["x"] * 3, ["y"] * 3],
            "these look transposed: give one list per candidate",
        ),
    ],
)
def test_a_wrong_shape_is_refused_in_words(candidates: Any, references: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        em.score(candidates, references, METRIC)
    assert "\n" not in str(raised.value)


PHRASES = r"several references without ';', .* join them with ';', as em.join_phrases does"


@pytest.mark.parametrize(
    "metric", ["fg", "f1_at_m", "sem_f1", "keyphrase_map", "align(units=phrases, vectors=hashed)"]
)
def test_phrases_given_as_references_are_warned_of(metric: str) -> None:
    candidates, references = ["a", "neural net; parsing"], [["a"], ["neural net", "parsing"]]
    with pytest.warns(UserWarning, match=PHRASES):
        em.score(candidates, references, ["bleu", metric])
    with pytest.warns(UserWarning, match=PHRASES):
        em.reward(metric)([Pair(c, tuple(r)) for c, r in zip(candidates, references, strict=True)])
    joined = em.score(candidates, [em.join_phrases(each) for each in references], metric)
    assert list(joined.values) == [1, 1]


def test_alternative_lists_of_phrases_have_a_separator() -> None:
    found = em.score(["net", "net"], [["net;", "parsing;"], ["net; parsing", "net"]], "f1_at_m")
    assert list(found.values) == [1, 1]
    barred = "keyphrases(units=phrases(separator='|'))"
    with pytest.warns(UserWarning, match=r"several references without '\|'"):
        em.score(["net"], [["net;", "parsing;"]], barred)


def test_references_may_differ_in_number() -> None:
    candidates = ["the cat", "the dog", "a bird"]
    references = [["the cat", "x"], ["x y", "the", "the dog"], ["a bird"]]
    assert [s.value for s in em.score(candidates, references, METRIC).segments] == pytest.approx(
        [1, 1, 1]
    )


def test_tuples_are_lists_too() -> None:
    assert em.score(("a",), (("b", "a"),), METRIC) == em.score(["a"], [["b", "a"]], METRIC)


def test_the_best_reference_counts_in_any_position() -> None:
    plain = em.score(["the cat"] * 2, ["the cat sat", "a dog"], METRIC).segments
    for order in (["the cat sat", "a dog"], ["a dog", "the cat sat"]):
        assert em.score(["the cat"], [order], METRIC).segments[0] == max(
            plain, key=lambda score: score.value
        )


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        (["a"], "2 candidates but 1 sources"),
        ("ab", "sources must be a list of texts, got one string"),
        (["a", 3], "the source of row 1 must be a string, got 3"),
    ],
)
def test_wrong_sources_are_refused(sources: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        em.score(["a", "b"], ["a", "b"], METRIC, sources=sources)


@pytest.mark.parametrize(
    ("metric", "error", "words"),
    [
        ("bertscor", UnknownNameError, "did you mean 'bertscore'"),
        ("lsa", InputError, "expected a metric, got the alignment part lsa"),
        (3, InputError, "expected a metric, got int"),
        (None, InputError, "expected a metric, got NoneType"),
        (em.AlignMetric, InputError, r"got a class; create an instance: AlignMetric\(\.\.\.\)"),
        (em.Lsa(), InputError, "expected a metric, got the alignment part lsa"),
        ([], InputError, "the list of metrics is empty"),
        (["bertscore", 3], InputError, "expected a metric, got int"),
    ],
)
def test_what_is_no_metric_is_refused(metric: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        em.score(["a"], ["a"], metric)


def test_a_metric_that_is_only_shaped_like_one_is_taken() -> None:
    class Constant:
        signature = "constant"
        higher_is_better = True
        bounds = (0.0, 1.0)

        def __call__(self, pairs: Any) -> em.Scores:
            return em.Scores(tuple(em.Score(0.5) for _ in pairs), self.signature)

    assert em.score(["a"], ["b"], Constant()).mean == 0.5
    assert em.score(["a"], ["b"], [Constant(), METRIC])["constant"].mean == 0.5


def test_several_metrics_are_named_as_they_were_given() -> None:
    part = em.AlignMetric(vectors=em.Hashed(dim=8))
    found = em.score(["a"], ["a"], [METRIC, part])
    assert list(found) == [METRIC, "align(vectors=hashed(dim=8))"]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"batch_size": 8}, "a run has no setting 'batch_size'; .*known: device, threads"),
        ({"batch_tokens": 0}, "batch_tokens must be at least 1, got 0"),
        ({"batch_tokens": "8"}, "a run's batch_tokens takes a whole number, got '8'"),
        ({"threads": -1}, "threads must be at least 0, got -1"),
        ({"threads": 1.5}, r"a run's threads takes a whole number, got 1\.5"),
        ({"threads": True}, "a run's threads takes a whole number, got True"),
    ],
)
def test_wrong_run_settings_are_refused(run: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        em.score(["a"], ["a"], METRIC, **run)


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (Pair("a", ()), "row 1 has no reference"),
        (Pair("a", "reference"), "must be a tuple of strings, got one string"),  # type: ignore[arg-type]  # the point
        (Pair("a", (None,)), "the reference of row 1 must be a string, got None"),  # type: ignore[arg-type]  # the point
        (Pair(None, ("a",)), "the candidate of row 1 must be a string, got None"),  # type: ignore[arg-type]  # the point
    ],
)
def test_pairs_by_hand_are_checked_too(pair: Pair, words: str) -> None:
    with pytest.raises(InputError, match=words):
        em.build(METRIC)([Pair("fine", ("fine",)), pair])


@pytest.mark.parametrize(
    ("candidate", "reference", "words"),
    [
        (None, "a", "the candidate must be a string, got NoneType"),
        ("a", ["a"], "the reference must be a string, got list"),
    ],
)
def test_only_texts_are_aligned(candidate: Any, reference: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        em.align(candidate, reference, METRIC)


@pytest.mark.parametrize(
    ("similarity", "words"),
    [
        (None, "similarity must have 2 dimensions, got shape"),
        ([1.0, 2.0], r"similarity must have 2 dimensions, got shape \(2,\)"),
        ([[1.0], [1.0, 2.0]], "must contain only numbers, in rows of equal length"),
        ([["a"]], "must contain only numbers"),
    ],
)
def test_only_a_matrix_of_numbers_is_solved(similarity: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        em.solve(similarity, "lsa")
    with pytest.raises(InputError, match=words):
        em.solve_batch([[[1.0]], similarity], "lsa")


@pytest.mark.parametrize(
    ("row_mass", "words"),
    [
        ([1.0], r"row_mass needs 2 non-negative numbers, got \[1\.0\]"),
        ([1.0, -1.0], "row_mass needs 2 non-negative numbers"),
        ([1.0, np.nan], "row_mass contains a value that is not finite"),
        ([[1.0, 1.0]], "row_mass must have 1 dimensions"),
    ],
)
def test_a_mass_must_fit_its_side(row_mass: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        em.solve(np.eye(2), "emd", row_mass)


@pytest.mark.parametrize("solver", ["bertscore", 3, em.Lsa, em.Hashed()])
def test_what_is_no_solver_is_refused(solver: Any) -> None:
    with pytest.raises(InputError, match="expected a solver, got"):
        em.solve([[1.0]], solver)


def test_texts_that_were_cut_are_counted_in_one_warning() -> None:
    candidates, metrics = ["a; b; c", "a", "a; b; c; d"], ["fg(most=2)", "f1_at_m(most=2)", "bleu"]
    with pytest.warns(UserWarning, match="2 of 3 pairs have a text that was truncated") as caught:
        found = em.score(candidates, ["a"] * 3, metrics)
    assert len(caught) == 1
    assert found["bleu"].segments[0].flags == frozenset()
    em.score(["a"], ["a; b; c"], "fg(most=2)")  # nothing was cut: no warning


def test_as_many_streams_as_candidates_are_told_from_lists_of_references() -> None:
    candidates = ["the cat sat down", "a dog ran away"]
    streams = [["a cat sat down", "the dog ran away"], ["the cat sat", "one dog ran off"]]
    with pytest.warns(UserWarning, match=r"the references look transposed: each of the 2 lists"):
        em.score(candidates, streams, METRIC)
    em.score(candidates, list(zip(*streams, strict=True)), METRIC)
    em.score(candidates, [["cat", "feline"], ["dog", "hound"]], METRIC)
    em.score(["a b"], [["a b"]], METRIC)


def test_nothing_to_score_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to score: the lists of candidates and ref"):
        em.score([], [], METRIC)


@pytest.mark.parametrize("row", [("a", "b"), "a", None, ["a", ("b",)]])
def test_what_is_no_pair_is_refused_with_its_row(row: Any) -> None:
    pairs: Any = [Pair("a", ("b",)), row]
    with pytest.raises(InputError, match=r"row 1 must be a Pair, got .*; write em\.Pair"):
        em.build(METRIC)(pairs)
    with pytest.raises(InputError, match="expected a list of pairs, got str"):
        em.build(METRIC)("ab")
