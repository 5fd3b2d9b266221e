from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.evaluation.compare import Gap
from evenmatch.registry import build

LSA = "align(vectors=hashed, alignment=lsa)"
IDF = "align(vectors=hashed(weights=idf))"
WORDS = "the a cat dog rain sun fell rose quickly slowly over under hill house old new".split()


def made_up(count: int) -> tuple[list[str], dict[str, list[str]]]:
    """References, and systems that get fewer of their words right from one to the next."""
    rng = np.random.default_rng(0)
    references = [" ".join(rng.choice(WORDS, rng.integers(4, 12))) for _ in range(count)]
    systems = {
        name: [
            " ".join(w if rng.random() < share else rng.choice(WORDS) for w in text.split())
            for text in references
        ]
        for name, share in (("good", 0.8), ("fair", 0.7), ("poor", 0.2))
    }
    return references, systems


REFERENCES, SYSTEMS = made_up(60)


def compared(metric: Any, **settings: Any) -> em.Comparison:
    return em.compare(SYSTEMS, REFERENCES, metric, **{"trials": 500, **settings})


@pytest.mark.parametrize("metric", [LSA, IDF, "rouge1", "meteor", "bleu", "ter", "nist"])
def test_scores_are_those_of_each_system_alone(metric: str) -> None:
    found = compared(metric, resamples=10)
    for score in found.scores:
        alone = em.score(SYSTEMS[score.system], REFERENCES, metric)
        assert score.mean == pytest.approx(alone.mean, abs=1e-9)
        assert score.corpus == alone.corpus
        assert found.signatures[metric] == alone.signature


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_a_corpus_score_is_what_is_tested_where_totals_give_it(metric: str) -> None:
    for score in compared(metric).scores:
        alone = em.score(SYSTEMS[score.system], REFERENCES, metric).corpus
        assert score.statistic == "corpus"
        assert score.score == pytest.approx(alone)
        assert score.low < score.score < score.high


def test_a_difference_is_that_of_the_scores_with_its_interval() -> None:
    found = compared(["bleu", LSA])
    scores = {(s.metric, s.system): s.score for s in found.scores}
    for gap in found.gaps:
        wanted = scores[gap.metric, gap.system] - scores[gap.metric, gap.baseline]
        assert gap.difference == pytest.approx(wanted)
        assert gap.low < gap.difference < gap.high


def test_every_pair_is_compared_and_the_baseline_comes_first() -> None:
    pairs = [(row["baseline"], row["system"]) for row in compared(LSA).rows]
    assert pairs == [("good", "fair"), ("good", "poor"), ("fair", "poor")]


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter", "bleu(smoothing='floor')"])
def test_randomisation_equals_that_of_sacrebleu(metric: str) -> None:
    theirs = paired_test(metric, "ar", 2000)
    rows = compared(metric, trials=2000, seed=12345).rows
    for row, result in zip(rows, theirs, strict=False):
        assert row["system_score"] == pytest.approx(result.score / 100)
        # a swap that gives the same difference counts here and not there; edits are few, so TER
        # has some of those
        assert row["p_randomisation"] == pytest.approx(result.p_value, abs=4 / 2001)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_intervals_of_systems_are_as_wide_as_those_of_sacrebleu(metric: str) -> None:
    theirs = paired_test(metric, "bs", 1000)
    found = compared(metric, seed=12345, resamples=1000)
    ours = [s for s in found.scores if s.system != "good"]
    for score, result in zip(ours, theirs, strict=True):
        assert (score.high - score.low) / 2 == pytest.approx(result.ci / 100, rel=0.03)


def paired_test(metric: str, kind: str, samples: int) -> list[Any]:
    """The library's results for every system but the baseline."""
    sacrebleu: Any = pytest.importorskip("sacrebleu")
    from sacrebleu.significance import PairedTest

    make: Any = {
        "bleu": sacrebleu.BLEU(force=True),
        "bleu(smoothing='floor')": sacrebleu.BLEU(force=True, smooth_method="floor"),
        "chrf": sacrebleu.CHRF(),
        "ter": sacrebleu.TER(),
    }[metric]
    test = PairedTest(list(SYSTEMS.items()), {"it": make}, [REFERENCES], kind, samples)
    (results,) = [values for name, values in test()[1].items() if name != "System"]
    return list(results[1:])


def test_equal_systems_do_not_differ() -> None:
    texts = SYSTEMS["fair"]
    found = em.compare({"one": texts, "other": list(texts)}, REFERENCES, ["bleu", LSA], trials=99)
    for row in found.rows:
        assert (row["difference"], row["low"], row["high"]) == (0.0, 0.0, 0.0)
        assert row["p_bootstrap"] == row["p_randomisation"] == 1.0
        assert row["better"] is None


def test_the_better_system_is_named_whichever_way_a_metric_points() -> None:
    found = compared([LSA, "ter"])
    for row in found.rows:
        if row["system"] == "poor":
            assert row["better"] == row["baseline"]
            assert (row["difference"] < 0) is (row["metric"] == LSA)


def test_holm_adjusts_for_the_pairs_of_one_metric_only() -> None:
    alone, beside = compared(LSA).rows, compared([LSA, "chrf"]).rows[:3]
    assert alone == beside
    for kind in ("bootstrap", "randomisation"):
        least = min(alone, key=lambda row: row[f"p_{kind}"])
        assert least[f"holm_{kind}"] == pytest.approx(min(1.0, 3 * least[f"p_{kind}"]))
    two = {name: SYSTEMS[name] for name in ("good", "fair")}
    (row,) = em.compare(two, REFERENCES, LSA, trials=99).rows
    assert row["holm_bootstrap"] == row["p_bootstrap"]


@pytest.mark.parametrize(
    ("bootstrap", "randomisation", "mark"),
    [(0.0009, 0.0001, "***"), (0.009, 0.0001, "**"), (0.001, 0.049, "*"), (0.0001, 0.05, "")],
)
def test_marks_want_both_tests_to_agree(bootstrap: float, randomisation: float, mark: str) -> None:
    gap = Gap("m", "a", "b", 0.1, 0.0, 0.2, 0.0, 0.0, bootstrap, randomisation)
    assert gap.stars == mark


def test_the_same_seed_gives_the_same_rows_and_another_does_not() -> None:
    assert compared(LSA, seed=3).rows == compared(LSA, seed=3).rows
    assert compared(LSA, seed=3).rows != compared(LSA, seed=4).rows


def test_two_spellings_of_a_metric_are_both_there() -> None:
    other = "align(vectors=hashed(dim=256), alignment=lsa)"
    assert build(other) == build(LSA)
    found = compared([LSA, other], resamples=20)
    assert [row["metric"] for row in found.rows] == [LSA] * 3 + [other] * 3


seen: list[str] = []


@dataclass(frozen=True)
class Noting:
    """An encoder that notes each text it is given."""

    def __call__(self, batch: Sequence[em.Units]) -> list[em.Embedded]:
        seen.extend(units.text for units in batch)
        return em.Hashed()(batch)


@pytest.mark.usefixtures("registry")
def test_every_text_is_embedded_once_for_all_systems_and_metrics() -> None:
    em.register("vectors", "noting")(Noting)
    seen.clear()
    compared(["align(vectors=noting)", "align(vectors=noting, alignment=lsa)"], resamples=5)
    assert len(seen) == len(set(seen))
    assert set(seen) == {*REFERENCES, *(text for texts in SYSTEMS.values() for text in texts)}


def test_a_comparison_is_frozen_and_pickles() -> None:
    found = compared(LSA, resamples=10, trials=10)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.systems = ()  # type: ignore[misc]  # this is the point
    assert pickle.loads(pickle.dumps(found)) == found


def test_it_prints_as_tables_with_marks_and_recipes() -> None:
    text = str(compared([LSA, "ter"], confidence=0.9))
    scores, gaps, notes = text.split("\n\n")
    assert scores.splitlines()[0].split()[-2:] == ["ter", "↓"]
    assert [line.split()[0] for line in scores.splitlines()[1:]] == list(SYSTEMS)
    assert gaps.splitlines()[2].endswith("good **")
    assert "lower is better: ter" in notes
    assert f"{LSA}: {build(LSA).signature}" in notes


def test_sources_and_several_references_reach_the_metric() -> None:
    systems = {"a": ["the cat", "rain"], "b": ["a dog", "sun"]}
    references = [["the cat", "a dog"], ["snow"]]
    found = em.compare(systems, references, LSA, sources=["x", "y"], trials=9, resamples=9)
    assert [score.mean for score in found.scores] == pytest.approx([0.5, 0.5], abs=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"systems": [["a"], ["b"]]}, "systems must be a dictionary of candidates by name"),
        ({"systems": {"a": ["a"]}}, "a comparison needs at least two systems, got 1"),
        ({"systems": {"a": ["a"], "": ["b"]}}, "name must be a non-empty string, got ''"),
        ({"systems": {"a": ["a"], "b": []}}, "system 'b': 0 candidates but 1 reference"),
        ({"systems": {"a": [], "b": []}, "references": []}, "the test set has no segment"),
        ({"metric": []}, "the list of metrics is empty; give at least one"),
        ({"metric": "lsa"}, "expected a metric, got the alignment part lsa"),
        ({"resamples": 0}, "resamples must be an integer of at least 1, got 0"),
        ({"trials": 2.5}, "trials must be an integer of at least 1, got 2.5"),
        ({"confidence": 95}, "confidence 95; give a share between 0 and 1"),
        ({"quick": True}, "a run has no setting 'quick'"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, Any], message: str) -> None:
    usual = {"systems": {"a": ["a"], "b": ["b"]}, "references": ["a"], "metric": LSA}
    with pytest.raises(em.InputError, match=message.replace("(", r"\(")):
        em.compare(**{**usual, **given})


def test_what_is_done_with_scores_is_loaded_only_when_asked_for() -> None:
    code = "import sys, evenmatch; print('evenmatch.stats' in sys.modules, evenmatch.compare)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False <function compare")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="No evenmatch attribute compere"):
        em.compere  # type: ignore[attr-defined]  # the point


MANY = 60  # segments, so that a large difference has the smallest p-value


@pytest.mark.parametrize("count", [2, 5, 6])
def test_three_stars_can_be_reached_by_default(count: int) -> None:
    references = [f"the cat number {n} sat down" for n in range(MANY)]
    systems = {"base": references} | {
        f"worse{k}": [f"{'dog ' * (n % 3 + 1 + k)}" for n in range(MANY)] for k in range(count - 1)
    }
    found = em.compare(systems, references, LSA)
    assert {gap.stars for gap in found.gaps if gap.baseline == "base"} == {"***"}
    assert (found.testing.resamples, found.testing.trials) == (
        max(10_000, 1000 * pairs(count)),
    ) * 2


def pairs(count: int) -> int:
    return count * (count - 1) // 2


def starred() -> em.Comparison:
    references = [f"the cat number {n} sat down" for n in range(MANY)]
    systems = {"base": ["the cat sat"] * MANY, "good": references, "bad": ["no"] * MANY}
    return em.compare(systems, references, [LSA, "ter"])


def test_the_grid_has_systems_metrics_and_stars() -> None:
    found = starred()
    by_name = {(s.metric, s.system): s.score for s in found.scores}
    header, *rows = found.grid().table()
    assert header == ["system", LSA, "ter ↓"]
    assert [row[0] for row in rows] == ["base", "good", "bad"]
    assert rows[0][1] == f"{by_name[LSA, 'base']:.4f}   "
    assert rows[1][1:] == ["1.0000***", "0.0000***"]
    assert rows[2][2].startswith(f"{by_name['ter', 'bad']:.4f}")


def test_latex_has_rules_bold_best_scores_raised_stars_and_arrows() -> None:
    lines = starred().grid().to_latex().splitlines()
    assert lines[:4] == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"system & align(vectors=hashed, alignment=lsa) & ter $\downarrow$ \\",
        r"\midrule",
    ]
    assert lines[5] == r"good & \textbf{1.0000}$^{***}$ & \textbf{0.0000}$^{***}$ \\"
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]


def test_a_scaled_comparison_has_scaled_scores_and_differences() -> None:
    found, scaled = starred(), starred().scaled(100)
    assert scaled.gaps[0].difference == found.gaps[0].difference * 100
    assert scaled.gaps[0].p_bootstrap == found.gaps[0].p_bootstrap
    assert [s.score for s in scaled.scores] == [s.score * 100 for s in found.scores]
    assert scaled.grid().table()[2][1] == "100.00***"
    assert scaled.signatures["ter"].endswith(" · scale 100")
    assert scaled.rows[0]["better"] == found.rows[0]["better"]
