from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import evenmatch as em
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.types import Pair, Score, Scores
from tests.support.rated_sets import SHARES, rated_sets, write_rows

GREEDY = "align(vectors=hashed)"
LSA = "align(vectors=hashed, alignment=lsa)"


@dataclasses.dataclass(frozen=True)
class Noted:
    """A metric that remembers what it was asked, and scores a candidate's length."""

    asked: list[Pair]
    signature: str = "noted"
    higher_is_better: bool = True
    bounds: tuple[float, float] = (0.0, 100.0)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        self.asked.extend(pairs)
        return Scores(tuple(Score(float(len(p.candidate))) for p in pairs), self.signature)


@pytest.fixture
def rated(tmp_path: Path) -> RatedSet:
    return rated_sets(tmp_path, "news")[0]


def by_hand(rated: RatedSet, metric: str) -> Any:
    """Scores as systems × segments, without any of what is tested."""
    return np.array(
        [
            [
                s.value
                for s in em.score(list(map(str, texts)), list(rated.references), metric).segments
            ]
            for texts in rated.candidates
        ]
    )


def agreements(found: em.Agreement) -> dict[str, float]:
    return {entry.metric: entry.value for entry in found.entries}


def test_system_agreement_is_that_of_mean_scores_with_mean_ratings(rated: RatedSet) -> None:
    found = em.correlate([GREEDY, LSA], rated, resamples=50)
    for metric, value in agreements(found).items():
        wanted = stats.pearsonr(by_hand(rated, metric).mean(1), rated.ratings.mean(1)).statistic
        assert value == pytest.approx(wanted)
    assert [entry.n for entry in found.entries] == [5, 5]


def test_segment_agreement_pools_all_rated_outputs(rated: RatedSet) -> None:
    some = rated.ratings.copy()
    some[0, :7] = np.nan
    found = em.correlate(LSA, dataclasses.replace(rated, ratings=some), "segment", "spearman")
    known = ~np.isnan(some)
    wanted = stats.spearmanr(by_hand(rated, LSA)[known], some[known]).statistic
    assert found.entries[0].value == pytest.approx(wanted)
    assert found.entries[0].n == known.sum()
    assert found.entries[0].low < wanted < found.entries[0].high


def test_per_item_averages_over_segments_and_per_system_over_systems(rated: RatedSet) -> None:
    scores = by_hand(rated, LSA)
    for level, x, y in (
        ("per_item", scores.T, rated.ratings.T),
        ("per_system", scores, rated.ratings),
    ):
        taus = [stats.kendalltau(a, b).statistic for a, b in zip(x, y, strict=True)]
        found = em.correlate(LSA, rated, level, "kendall", resamples=20)  # type: ignore[arg-type]  # a loop
        assert found.entries[0].value == pytest.approx(np.nanmean(taus))
        assert found.entries[0].n == len(x)


def test_only_rated_outputs_are_scored_at_the_segment_level(rated: RatedSet) -> None:
    some = np.full(rated.ratings.shape, np.nan)
    some[1:3, :4] = rated.ratings[1:3, :4]
    metric = Noted([])
    em.correlate(metric, dataclasses.replace(rated, ratings=some), "segment", resamples=10)
    wanted = [rated.candidates[system][segment] for system in (1, 2) for segment in range(4)]
    assert [pair.candidate for pair in metric.asked] == wanted


def test_criteria_of_the_same_texts_are_scored_once(rated: RatedSet) -> None:
    other = dataclasses.replace(rated, subset="style", ratings=-rated.ratings)
    metric = Noted([])
    found = em.correlate(metric, [rated, other], resamples=10)
    assert len(metric.asked) == rated.ratings.size
    first, second, average = (entry.value for entry in found.entries)
    assert first == pytest.approx(-second)
    assert average == pytest.approx(0.0)


def test_people_and_listed_outliers_are_left_out(rated: RatedSet) -> None:
    marked = dataclasses.replace(
        rated, humans=frozenset({"best"}), outliers=frozenset({"poor"}), name="marked"
    )
    counts = {
        way: em.correlate(LSA, marked, outliers=way, resamples=10).entries[0].n
        for way in ("listed", "keep")
    }
    assert counts == {"listed": 3, "keep": 4}
    assert em.correlate(LSA, marked, "segment", resamples=10).entries[0].n == 4 * 12


def test_the_mad_rule_finds_outliers_itself(rated: RatedSet) -> None:
    far = rated.ratings.copy()
    far[list(SHARES).index("poor")] -= 1000
    found = em.correlate(LSA, dataclasses.replace(rated, ratings=far), outliers="mad", resamples=10)
    assert found.entries[0].n == 4


@pytest.mark.parametrize("metric", ["bleu", "nist"])
def test_a_system_is_scored_by_its_corpus_score_unless_told_otherwise(
    rated: RatedSet, metric: str
) -> None:
    corpus = em.correlate(metric, rated, resamples=10).scored[0].scores[metric].systems
    mean = em.correlate(metric, rated, corpus=False, resamples=10).scored[0].scores[metric].systems
    for row, texts in enumerate(rated.candidates):
        alone = em.score([str(t) for t in texts], list(rated.references), metric)
        assert mean[row] == pytest.approx(alone.mean)
        assert corpus[row] == pytest.approx(alone.mean if alone.corpus is None else alone.corpus)


def test_a_metric_where_lower_is_better_agrees_by_being_low(rated: RatedSet) -> None:
    found = em.correlate("ter", rated, resamples=10)
    assert found.entries[0].value > 0.9
    assert any(note.startswith("↓ lower is better, so the sign is") for note in found.notes())
    assert [row[2] for row in found.table() if row[2].startswith("ter")] == ["ter ↓"]


def test_averages_follow_the_sets_of_each_data_set(tmp_path: Path) -> None:
    found = em.correlate([GREEDY, "rouge1"], rated_sets(tmp_path, "news", "talks"), resamples=50)
    rows = found.rows
    assert [row["subset"] for row in rows] == ["news"] * 2 + ["talks"] * 2 + ["average"] * 2
    for metric in (GREEDY, "rouge1"):
        *each, average = (row for row in rows if row["metric"] == metric)
        assert average["value"] == pytest.approx(np.mean([row["value"] for row in each]))
        assert average["n"] == 2
        halves = [row["value"] - row["low"] for row in each]
        assert average["value"] - average["low"] == pytest.approx(np.hypot(*halves) / 2)


def test_a_metric_that_knows_nothing_is_in_a_later_cluster(rated: RatedSet) -> None:
    length = Noted([])
    found = em.correlate([LSA, length], rated, "segment", resamples=300)
    assert [entry.cluster for entry in found.entries] == [1, 2]
    assert found.tests == ("permutation (PERM-BOTH)",)


@pytest.mark.parametrize(
    ("method", "test"),
    [("pearson", "Williams"), ("spearman", "permutation (PERM-SYSTEMS)")],
)
def test_systems_rated_as_a_whole_are_tested_as_a_whole(
    rated: RatedSet, method: Any, test: str
) -> None:
    official = dataclasses.replace(rated, system_ratings=np.arange(5.0)[::-1])
    found = em.correlate([GREEDY, LSA], official, method=method, resamples=50)
    assert found.tests == (test,)


def test_published_scores_stand_beside_ours(rated: RatedSet) -> None:
    theirs = rated.ratings.mean(1)
    known = dataclasses.replace(rated, published={"rouge1": theirs, "other": theirs**3})
    found = em.correlate(["rouge1"], known, published=True, resamples=10)
    assert found.metrics == ("rouge1", "rouge1 (published)", "other")
    assert agreements(found)["rouge1 (published)"] == pytest.approx(1.0)
    assert "published scores: rouge1 (published), other" in found.notes()


def test_progress_counts_the_pairs_of_all_sets(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    sets = rated_sets(tmp_path, "news", "talks")
    em.correlate(LSA, sets, resamples=10, progress=lambda *now: told.append(now))
    assert told[-1] == (120, 120)
    assert (60, 120) in told


def test_the_same_seed_gives_the_same_table(rated: RatedSet) -> None:
    one, other = (em.correlate([GREEDY, LSA], rated, resamples=40).entries for _ in range(2))
    assert one == other


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": "document"}, "unknown level 'document'; known: system, segment"),
        ({"method": "cosine"}, "unknown method 'cosine'; known: pearson"),
        ({"outliers": "all"}, "unknown outlier rule 'all'; known: listed, mad, keep"),
        ({"level": "segment", "published": True}, "published scores exist only at level 'system'"),
        ({"metrics": []}, "the list of metrics is empty; give at least one"),
    ],
)
def test_what_makes_no_sense_is_refused(
    rated: RatedSet, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(em.EvenmatchError, match=message):
        em.correlate(**{"metrics": LSA, "ratings": rated, **settings})


def test_ratings_of_systems_alone_are_none_of_outputs(rated: RatedSet) -> None:
    bare = dataclasses.replace(
        rated, ratings=np.full(rated.ratings.shape, np.nan), system_ratings=np.arange(5.0)
    )
    with pytest.raises(em.DataError, match=r"mine has no output with .* at level 'system'"):
        em.correlate(LSA, bare, "segment")


def test_official_scores_of_wmt20_give_the_published_correlations(data: Path) -> None:
    sets = em.read_ratings(data / "wmt20-da")
    found = em.correlate([], sets, published=True, resamples=10)
    values = {(e.metric, e.subset): e.value for e in found.entries}
    # as the organisers, and Chousa & Hirao after them, report
    pairs = [f"{source}-en" for source in "cs de iu ja km pl ps ru zh".split()]
    for metric, published in (
        ("sentBLEU", [0.800, 0.786, 0.469, 0.851, 0.969, 0.284, 0.888, 0.833, 0.950]),
        ("COMET", [0.694, 0.773, 0.605, 0.828, 0.971, 0.345, 0.941, 0.836, 0.931]),
        ("prism", [0.720, 0.775, 0.616, 0.869, 0.950, 0.269, 0.966, 0.839, 0.945]),
    ):
        ours = [values[metric, pair] for pair in pairs]
        assert ours == pytest.approx(published, abs=5.1e-4)


def test_ratings_are_read_by_name_and_path(tmp_path: Path) -> None:
    with pytest.raises(em.DataError, match="there is no data set, folder or file 'name'"):
        em.correlate("chrf", "name")
    with pytest.raises(em.InputError, match="correlate's ratings takes a string or a path or"):
        em.correlate("chrf", [7])  # type: ignore[list-item]  # the wrong value is the point


def test_segments_without_a_correlation_are_not_counted(tmp_path: Path) -> None:
    rows = [
        {
            "system": system,
            "segment": str(segment),
            "candidate": text,
            "references": ["the cat sat down"],
            "rating": 3 if segment < 2 else rating,
        }
        for segment in range(5)
        for system, text, rating in (("a", "the cat", 1), ("b", "the cat sat", 2), ("c", "a", 0))
    ]
    found = em.correlate("chrf", write_rows(tmp_path / "r.jsonl", rows), "per_item", resamples=10)
    assert found.rows[0]["n"] == 3
    same = em.correlate(
        "chrf", tmp_path / "r.jsonl", "per_item", "calibrated_accuracy", resamples=10
    )
    assert same.rows[0]["n"] == 5
