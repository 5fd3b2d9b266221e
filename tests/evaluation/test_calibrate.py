from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.errors import InputError
from evenmatch.evaluation.calibrate import (
    DEFAULT_PARTS,
    cross_validated_correlation,
    fit_monotone,
    ridge_weights,
    select_parts,
    solve_ridge,
    sum_products,
)
from evenmatch.scoring.ensembles import Blend, Monotone
from evenmatch.scoring.metric import read_metric
from tests.support.small_training import save_tiny

HASHED = "align(vectors=hashed)"
WORDS = "the a cat dog sat ran on under mat tree red blue house rain sun".split()


def make(subset: str, seed: int, weights: tuple[float, float], count: int = 40) -> RatedSet:
    """Outputs that drop words of their references, rated by a blend of two metrics."""
    draw = np.random.default_rng(seed)
    references = [" ".join(draw.choice(WORDS, 8)) for _ in range(count)]
    candidates = [
        " ".join(w for w in r.split() if draw.random() < 0.7) or "nothing" for r in references
    ]
    scores = em.score(candidates, references, ["chrf", HASHED])
    parts = np.array([[s.value for s in each.segments] for each in scores.values()])
    return RatedSet(
        name="made",
        subset=subset,
        systems=("one",),
        segments=tuple(f"{subset}{i}" for i in range(count)),
        candidates=(tuple(candidates),),
        references=tuple((r,) for r in references),
        sources=(None,) * count,
        ratings=(5 + np.array(weights) @ parts)[None],
        system_ratings=np.array([np.nan]),
    )


@pytest.fixture(scope="module")
def sets() -> list[RatedSet]:
    return [make(subset, seed, (2.0, -1.0)) for seed, subset in enumerate("abc")]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The folder of a BERT with four small blocks and random weights."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    return Path(save_tiny(tmp_path / "tiny"))


def test_a_blend_finds_the_weights_ratings_were_made_with(
    sets: list[RatedSet], tmp_path: Path
) -> None:
    made = em.calibrate(sets, tmp_path / "m", ["chrf", HASHED], test=[make("d", 9, (2.0, -1.0))])
    metric = read_metric(str(made.folder))
    assert isinstance(metric, Blend)
    weights = dict(zip(map(em.spec, metric.parts), metric.weights, strict=True))
    assert weights["chrf"] == pytest.approx(2, abs=0.1)
    assert weights[HASHED] == pytest.approx(-1, abs=0.1)
    assert metric.bias == pytest.approx(5, abs=0.1)


def test_the_judgement_is_on_other_ratings_and_tells_the_gain(
    sets: list[RatedSet], tmp_path: Path
) -> None:
    made = em.calibrate(sets, tmp_path / "m", ["chrf", HASHED], test=[make("d", 9, (2.0, -1.0))])
    rows = {row["metric"]: row for row in made.document["rows"]}
    assert rows["calibrated"]["value"] > 0.99
    gain = rows["calibrated"]["value"] - rows["chrf"]["value"]
    assert rows["difference"]["value"] == pytest.approx(gain)
    assert rows["difference"]["low"] <= gain <= rows["difference"]["high"]


def test_a_part_that_adds_nothing_is_not_taken(sets: list[RatedSet], tmp_path: Path) -> None:
    ratings = [make(each.subset, seed, (1.0, 0.0)) for seed, each in enumerate(sets)]
    made = em.calibrate(ratings, tmp_path / "m", ["chrf", HASHED, "reference_length"])
    metric = read_metric(str(made.folder))
    assert list(map(em.spec, metric.parts)) == ["chrf"]


def test_one_metric_gets_a_monotone_map(sets: list[RatedSet], tmp_path: Path) -> None:
    made = em.calibrate(sets, tmp_path / "m", "chrf", test=sets)
    metric = read_metric(str(made.folder))
    assert isinstance(metric, Monotone)
    low, high = metric.bounds
    ratings = np.concatenate([each.ratings.ravel() for each in sets])
    assert ratings.min() <= low < high <= ratings.max()


def test_a_metric_that_is_better_low_maps_to_high_ratings(
    sets: list[RatedSet], tmp_path: Path
) -> None:
    metric = read_metric(str(em.calibrate(sets, tmp_path / "m", "ter").folder))
    assert metric.to[0] > metric.to[-1]


def test_one_subset_is_held_out_in_parts(sets: list[RatedSet], tmp_path: Path) -> None:
    made = em.calibrate(sets[:1], tmp_path / "m", ["chrf", HASHED])
    assert "(5 folds)" in made.facts["how"]


def test_the_card_says_what_the_blend_is_made_of(sets: list[RatedSet], tmp_path: Path) -> None:
    made = em.calibrate(sets, tmp_path / "m", ["chrf", HASHED])
    card = (made.folder / "README.md").read_text()
    assert "| part | weight |" in card
    assert "fitted on: made (120 rated outputs)" in card


def test_a_blend_takes_along_what_it_is_made_of(
    sets: list[RatedSet], tiny: Path, tmp_path: Path
) -> None:
    part = f"f_disc(model={str(tiny)!r}, layer=2)"
    made = em.calibrate(sets, tmp_path / "m", [part, "reference_length"])
    pairs = ["the cat sat"], ["a cat sat"]
    before = em.score(*pairs, str(made.folder))
    shutil.rmtree(tiny)
    made.folder.rename(tmp_path / "moved")
    assert em.score(*pairs, str(tmp_path / "moved")) == before
    assert "sha256:" in before.signature
    for text in ("README.md", "metric.json"):
        assert str(tiny) not in (tmp_path / "moved" / text).read_text()


def test_stand_ins_give_the_last_metrics_scores(sets: list[RatedSet], tmp_path: Path) -> None:
    # The last metric alone is uninformative; its stand-ins determine the ratings.
    mute = "align(vectors=hashed, similarity=floor(low=2.0))"
    stand_ins = dict.fromkeys("abc", HASHED)
    made = em.calibrate(sets, tmp_path / "m", ["chrf", mute], stand_ins=stand_ins)
    metric = read_metric(str(made.folder))
    weights = dict(zip(map(em.spec, metric.parts), metric.weights, strict=True))
    assert weights[mute] == pytest.approx(-1, abs=0.1)


def test_a_subset_without_a_stand_in_is_refused(sets: list[RatedSet], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"stand-in for every subset .* check c; "):
        em.calibrate(sets, tmp_path / "m", ["chrf", HASHED], stand_ins={"a": "ter", "b": "ter"})


def test_what_is_left_out_is_left_out() -> None:
    draw = np.random.default_rng(0)
    scores, ratings = draw.normal(size=(60, 2)), draw.normal(size=60)
    cells = np.repeat([0, 1, 2], 20)
    sums = sum_products(scores, ratings, cells)
    kept = cells != 1
    rest = sum_products(scores[kept], ratings[kept], np.repeat([0, 1], 20))
    some = solve_ridge(sums, (0, 1), 0.01, np.array([1.0, 0.0, 1.0])) / sums.scale
    only = solve_ridge(rest, (0, 1), 0.01, np.ones(2)) / rest.scale
    np.testing.assert_allclose(some, only, rtol=0.05, atol=0.01)


def test_the_agreement_is_the_correlation_with_what_was_left_out() -> None:
    draw = np.random.default_rng(1)
    scores = draw.normal(size=(80, 1))
    ratings = scores[:, 0] + draw.normal(size=80)
    cells = np.repeat([0, 1], 40)
    sums = sum_products(scores, ratings, cells)
    wanted = np.mean(
        [np.corrcoef(scores[cells == c, 0], ratings[cells == c])[0, 1] for c in (0, 1)]
    )
    assert cross_validated_correlation(sums, (0,), 0.01) == pytest.approx(wanted)


def test_scores_that_hardly_differ_are_not_taken() -> None:
    draw = np.random.default_rng(3)
    scores = draw.normal(size=(60, 2)) * [1, 1e-5]
    sums = sum_products(scores, scores @ [1, 1e5], np.repeat([0, 1], 30))
    assert select_parts(sums, 2).parts == (0,)


def test_no_more_parts_are_taken_than_allowed() -> None:
    draw = np.random.default_rng(2)
    scores = draw.normal(size=(90, 4))
    sums = sum_products(scores, scores.sum(1), np.repeat([0, 1, 2], 30))
    assert len(select_parts(sums, 4).parts) == 4
    assert len(select_parts(sums, 2).parts) == 2
    np.testing.assert_allclose(ridge_weights(sums, select_parts(sums, 4)), 1, rtol=0.01)


def test_scores_that_go_against_ratings_have_no_map() -> None:
    scores = np.arange(50.0)
    with pytest.raises(InputError, match="are not correlated with the ratings"):
        fit_monotone(em.build("chrf"), scores, -scores)


def test_ratings_all_alike_are_refused(sets: list[RatedSet], tmp_path: Path) -> None:
    import dataclasses

    flat = dataclasses.replace(sets[0], ratings=np.ones_like(sets[0].ratings))
    with pytest.raises(InputError, match="calibration needs at least two different ratings"):
        em.calibrate([flat], tmp_path / "m", "chrf")


def test_too_few_segments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="9 segments are too few for cross-validation"):
        em.calibrate([make("a", 0, (1.0, 1.0), count=9)], tmp_path / "m", ["chrf", HASHED])


def test_metrics_that_tell_nothing_apart_are_refused(sets: list[RatedSet], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="all outputs nearly the same score"):
        em.calibrate(sets, tmp_path / "m", ["reference_length", "reference_length"])


def test_metrics_must_be_named(sets: list[RatedSet], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="calibration needs at least one metric"):
        em.calibrate(sets, tmp_path / "m", [])


@pytest.mark.parametrize("part", DEFAULT_PARTS)
def test_the_parts_to_choose_from_are_metrics(part: str) -> None:
    assert em.build(part).higher_is_better in (True, False)
