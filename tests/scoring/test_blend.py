from __future__ import annotations

import math
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.scoring.ensembles import Blend, Monotone
from evenmatch.scoring.metric import read_metric, write_metric

ALIGNED = "align(vectors=hashed)"
CANDIDATES = ["the cat sat", "a dog", ""]
REFERENCES = [["the cat sat down", "a cat"], ["the dog"], ["rain"]]


def test_a_blend_is_a_weighted_sum() -> None:
    parts = em.score(["the cat sat"], ["a cat sat"], ["chrf", ALIGNED])
    found = em.score(
        ["the cat sat"], ["a cat sat"], f"blend(parts=[chrf, {ALIGNED}], weights=[2, -0.5], bias=1)"
    )
    chrf, aligned = (scores.mean for scores in parts.values())
    assert found.mean == pytest.approx(1 + 2 * chrf - 0.5 * aligned)


def test_a_blend_takes_the_reference_that_is_best_for_the_sum() -> None:
    metric = f"blend(parts=[chrf, {ALIGNED}], weights=[-1.0, 0.5])"
    singly = [em.score(["the cat sat"], [[r]], metric).mean for r in REFERENCES[0]]
    assert em.score(["the cat sat"], [REFERENCES[0]], metric).mean == max(singly)


def test_a_blend_has_no_match_only_where_no_part_has() -> None:
    some, none = em.score(
        ["abc", "abc"], ["bcd", "xyz"], "blend(parts=[chrf, rouge1], weights=[1.0, 1.0])"
    ).segments
    assert "no_match" not in some.flags
    assert "no_match" in none.flags


def test_the_bounds_of_a_blend_are_those_of_its_parts_weighed() -> None:
    assert em.build("blend(parts=[chrf, rouge1], weights=[2.0, -1.0], bias=3.0)").bounds == (2, 5)
    assert em.build("blend(parts=[chrf, ter], weights=[1.0, -1.0])").bounds == (-math.inf, 1)


def test_idf_of_a_part_is_counted_and_signed() -> None:
    metric = "blend(parts=[align(vectors=hashed(weights=idf))], weights=[1.0])"
    scores = em.score(CANDIDATES, REFERENCES, metric)
    assert "idf(table='sha256:" in scores.signature
    assert em.score(CANDIDATES, REFERENCES, scores.signature.split(" · ")[0]) == scores


@pytest.mark.parametrize(
    "spec", ["blend(parts=[], weights=[])", "blend(parts=[chrf], weights=[1.0, 2.0])"]
)
def test_a_blend_has_a_weight_for_each_part(spec: str) -> None:
    with pytest.raises(InputError, match="one weight for each part and at least one part"):
        em.build(spec)


def test_a_monotone_map_goes_from_knot_to_knot_and_no_further() -> None:
    metric = em.build("monotone(base=chrf, at=[0.2, 0.4], to=[1.0, 5.0])")
    chrf = em.score(["the cat"], ["the cab"], "chrf").mean
    assert metric([em.Pair("the cat", ("the cat",))]).mean == 5.0
    assert metric([em.Pair("the cat", ("zzz",))]).mean == 1.0
    wide = em.build("monotone(base=chrf, at=[0, 1], to=[10, 20])")
    assert wide([em.Pair("the cat", ("the cab",))]).mean == pytest.approx(10 + 10 * chrf)


def test_a_map_of_a_metric_that_is_better_low_turns_it_round() -> None:
    metric = em.build("monotone(base=ter, at=[0, 2], to=[100, 0])")
    assert metric.higher_is_better
    assert metric([em.Pair("the cat", ("the cat",))]).mean == 100


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("monotone(base=chrf, at=[0.5], to=[1])", "at least 2, got 1 and 1"),
        ("monotone(base=chrf, at=[0, 1], to=[1, 0])", "`to` must not change direction"),
        ("monotone(base=ter, at=[0, 1], to=[0, 1])", "`to` must not change direction"),
        ("monotone(base=chrf, at=[1, 1], to=[0, 1])", "`at` must ascend"),
    ],
)
def test_knots_that_are_no_map_are_refused(spec: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        em.build(spec)


def test_a_saved_metric_is_named_by_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write_metric(folder, "monotone(base=chrf, at=[0, 1], to=[0, 5])")
    assert em.score(["a cat"], ["a cat"], str(folder)).mean == 5.0
    assert isinstance(read_metric(str(folder / "metric.json")), Monotone)


def test_a_folder_that_holds_no_metric_is_refused(tmp_path: Path) -> None:
    with pytest.raises(em.DataError, match=r"holds no metric\.json; give a folder"):
        em.score(["a"], ["a"], str(tmp_path))


def test_a_file_that_describes_no_metric_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metric.json").write_text("[]")
    with pytest.raises(em.DataError, match="describes no metric"):
        em.score(["a"], ["a"], str(tmp_path))


def test_worst_scores_the_worst_matched_share() -> None:
    texts = ["a b c d e"], ["a b c d x"]
    fifth = em.score(*texts, "align(vectors=hashed, alignment=lsa, scoring=worst)")
    whole = em.score(*texts, "align(vectors=hashed, alignment=lsa, scoring=worst(share=1))")
    assert whole.mean == pytest.approx(
        em.score(*texts, "align(vectors=hashed, alignment=lsa)").mean
    )
    assert fifth.mean < 0.3


@pytest.mark.parametrize("share", [0, 1.5])
def test_worst_takes_a_share(share: float) -> None:
    with pytest.raises(InputError, match="worst's share must be above 0 and at most 1"):
        em.build(f"worst(share={share})")


def test_the_length_of_the_reference_is_counted_in_words() -> None:
    found = em.score(["x"], [["one", "one two three"]], "reference_length")
    assert found.mean == math.log(4)


@pytest.mark.model
def test_a_whole_text_is_the_mean_of_its_tokens() -> None:
    whole = "align(units=whole_text, vectors=transformer(layer=4, pool='mean'), scoring=average)"
    assert em.score(["The cat sat."], ["the cat sat."], whole).mean == pytest.approx(1)
    assert em.score([" "], ["the cat"], whole).segments[0].flags == {"empty_candidate"}


@pytest.mark.model
def test_the_opening_token_represents_a_text() -> None:
    metric = "align(units=opening, vectors=transformer(layer=6), scoring=average)"
    assert em.align("a cat", "the dog", metric).candidate_units == ["[CLS]"]
    near, far = em.score(["a cat"] * 2, ["the cat", "stocks fell"], metric).segments
    assert near.value > far.value


def test_words_have_no_opening_token() -> None:
    with pytest.raises(InputError, match="words have no opening token"):
        em.score(["a"], ["b"], "align(units=opening, vectors=hashed)")


def test_parts_of_a_blend_are_metrics() -> None:
    with pytest.raises(InputError, match="parts takes a list of a metric"):
        em.build("blend(parts=[greedy], weights=[1.0])")
    assert isinstance(em.build("blend(parts=[chrf], weights=[1])"), Blend)


@pytest.mark.model
def test_the_blend_that_comes_with_evenmatch_is_signed_by_the_hash_of_its_parts() -> None:
    texts = ["the cat sat", "rain fell"], ["a cat sat", "it rained"]
    named = em.score(*texts, "wmt_blend")
    spec, *facts = named.signature.split(" · ")
    assert len(spec) < 60
    assert any(fact.startswith("model minilm@") for fact in facts)
    rebuilt = em.score(*texts, spec)
    assert list(rebuilt.values) == list(named.values)
    assert rebuilt.signature == named.signature
    parts = em.build("wmt_blend").meant
    assert list(em.score(*texts, parts).values) == list(named.values)


def test_a_blend_of_other_content_is_refused() -> None:
    with pytest.raises(em.DataError, match=r"has the content sha256:.*, not sha256:0123; install"):
        em.build("wmt_blend(content='sha256:0123')")
