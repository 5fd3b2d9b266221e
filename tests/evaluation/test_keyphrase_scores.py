from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.documents import Document, DocumentSet
from evenmatch.errors import InputError
from evenmatch.evaluation.keyphrase_scores import build_keyphrase_metrics, score_keyphrases
from evenmatch.evaluation.keyphrase_table import KeyphraseGap, KeyphraseTable
from evenmatch.stats.bootstrap import percentile_bounds
from evenmatch.stats.paired import (
    approximate_randomisation,
    bootstrap_p_value,
    resample_scores,
)

WORDS = "tree graph net parse model data loss text word code".split()


def documents(count: int = 60, **rates: float) -> DocumentSet:
    """Documents with six gold phrases, of which a system finds each at its rate."""
    draw = np.random.default_rng(0)
    made = []
    for _ in range(count):
        gold = draw.permutation([f"{a} {b}" for a in WORDS for b in WORDS[:3]])[:6].tolist()
        text = " . ".join(gold[:4])
        predictions = {
            name: tuple(p if draw.random() < rate else f"{p} {draw.choice(WORDS)}" for p in gold)
            for name, rate in rates.items()
        }
        made.append(Document(text, tuple(gold), predictions))
    return DocumentSet("made", tuple(made), tuple(rates))


@pytest.fixture(scope="module")
def table() -> KeyphraseTable:
    return score_keyphrases(documents(good=0.7, poor=0.3), resamples=300, trials=500)


def test_there_is_a_row_per_system_and_metric_with_three_columns(table: KeyphraseTable) -> None:
    assert [(row.prediction, row.metric) for row in table.rows] == [
        (system, metric) for system in ("good", "poor") for metric in ("fg", "f1_at_5", "f1_at_m")
    ]
    record = table.rows[0].record()
    assert {"prediction", "metric", "present", "absent", "all", "documents"} <= set(record)
    assert record["documents"] == 60


def test_a_row_is_the_metrics_own_score(table: KeyphraseTable) -> None:
    pairs = [each.to_pair("good") for each in documents(good=0.7, poor=0.3).documents]
    for row in table.rows[:3]:
        for column, cell in row.cells.items():
            scores = em.build(f"{row.metric}(which={column!r})")(pairs)
            wanted = scores.mean if scores.corpus is None else scores.corpus
            assert cell.value == pytest.approx(wanted)
            assert cell.low <= cell.value <= cell.high


def test_intervals_and_the_paired_bootstrap_are_those_of_systems_alone() -> None:
    made = documents(good=0.7, poor=0.6)
    found = score_keyphrases(made, "f1_at_m", resamples=200, trials=10, seed=3)
    metric = em.build("f1_at_m(which='present')")
    alone = resample_scores(
        {s: metric([d.to_pair(s) for d in made.documents]).counts for s in ("good", "poor")},
        dict.fromkeys(("good", "poor"), metric.score_totals),
        resamples=200,
        trials=10,
        seed=3,
    )
    bounds = percentile_bounds(alone["good"].resamples, 0.95)
    cell = found.rows[0].cells["present"]
    assert (cell.value, cell.low, cell.high) == pytest.approx((alone["good"].value, *bounds))
    gap = found.gaps[0]
    assert (gap.system, gap.baseline) == ("poor", "good")
    assert gap.difference == pytest.approx(alone["poor"].value - alone["good"].value)
    assert gap.p_bootstrap == bootstrap_p_value(alone["poor"], alone["good"])


def test_the_randomisation_test_agrees_with_the_single_one() -> None:
    made = documents(80, good=0.62, poor=0.58)
    found = score_keyphrases(made, "f1_at_m", resamples=10, trials=4000)
    metric = em.build("f1_at_m(which='all')")
    one, two = (metric([d.to_pair(s) for d in made.documents]).counts for s in ("poor", "good"))
    alone = approximate_randomisation(one, two, metric.score_totals, resamples=4000, seed=9)
    assert found.gaps[2].p_randomisation == pytest.approx(alone, abs=0.03)


def test_a_clear_difference_is_marked_and_none_is_not(table: KeyphraseTable) -> None:
    clear = next(gap for gap in table.gaps if (gap.metric, gap.column) == ("f1_at_m", "all"))
    assert str(clear).startswith(f"{clear.difference:+.3f}** (")
    assert clear.difference < 0
    same = documents(good=0.5)
    twice = DocumentSet(
        "same",
        tuple(
            Document(d.text, d.keyphrases, {"a": d.predictions["good"], "b": d.predictions["good"]})
            for d in same.documents
        ),
        ("a", "b"),
    )
    (gap, *_) = score_keyphrases(twice, "fg", resamples=50, trials=50).gaps
    assert (gap.p_bootstrap, gap.p_randomisation) == (1, 1)
    assert str(gap) == "+0.000 (+0.000 to +0.000), p = 1.000"


def test_the_text_has_the_interval_and_the_larger_p_value_of_a_difference() -> None:
    gap = KeyphraseGap("d", "fg", "all", "a", "b", 0.1, 0.05, 0.2, 0.01, 0.02, 0.0123, 0.04)
    assert str(gap) == "+0.100* (+0.050 to +0.200), p = .040"
    assert str(replace(gap, holm_randomisation=0.0001)) == "+0.100* (+0.050 to +0.200), p = .012"
    sure = replace(gap, holm_randomisation=0.0001, holm_bootstrap=0.0002)
    assert str(sure) == "+0.100*** (+0.050 to +0.200), p < .001"


def test_one_system_has_nothing_to_be_compared_with() -> None:
    found = score_keyphrases(documents(5, only=0.5), resamples=20)
    assert not found.gaps
    assert "Holm" not in str(found)


def test_seeds_get_a_row_with_their_mean() -> None:
    made = documents(20, **{"net-seed1": 0.4, "net-seed2": 0.6, "other": 0.5})
    found = score_keyphrases(made, "fg", mean_seeds=True, resamples=50, trials=10)
    values = {row.prediction: row.cells["all"].value for row in found.rows}
    mean = values["net (mean of 2 seeds)"]
    assert mean == pytest.approx((values["net-seed1"] + values["net-seed2"]) / 2)


def test_odd_documents_are_counted_by_flag_and_system() -> None:
    many = tuple(f"phrase {i}" for i in range(5000))
    made = DocumentSet(
        "odd",
        (
            Document("", (), {"x": ("a",)}),
            Document("a b", ("a",), {"x": many}),
            Document("Не всё то золото, что блестит, и не всё вода", ("золото",), {"x": ()}),
            Document("a", ("a",), {"x": ()}, frozenset({"malformed"})),
        ),
        ("x",),
        ("odd.jsonl line 9 is not JSON and was left out",),
    )
    found = score_keyphrases(made, "fg", resamples=10)
    assert found.flagged == {
        "odd": {
            "x": {
                "empty_candidate": 2,
                "empty_reference": 1,
                "malformed": 1,
                "not_english": 1,
                "truncated": 1,
            }
        }
    }
    assert "malformed 1, not_english 1, truncated 1" in str(found)
    assert "errors while reading: 1" in str(found)


@pytest.mark.parametrize(
    ("metric", "settings", "words"),
    [
        ("bleu", {}, "bleu is not a keyphrase metric; use fg, fb"),
        ([], {}, "the list of metrics is empty"),
        ("fg", {"resamples": 0}, "resamples must be an integer of at least 1, got 0"),
        ("fg", {"confidence": 2.0}, "confidence 2.0; give a share between 0 and 1"),
    ],
)
def test_what_makes_no_sense_is_refused(
    metric: str | list[str], settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        score_keyphrases(documents(3, a=0.5), metric, **settings)


def test_a_set_without_predictions_is_refused() -> None:
    bare = DocumentSet("bare", (Document("a", ("a",)),), ())
    with pytest.raises(
        InputError, match=r"bare has no predictions; put them in a field pred\.NAME.* --pred$"
    ):
        score_keyphrases(bare)
    with pytest.raises(InputError, match=r"with --pred \(found: text, keyphrases, mine\)$"):
        score_keyphrases(replace(bare, fields=("text", "keyphrases", "mine")))


def test_the_published_table_comes_out_with_the_mean_of_its_seeds(data: Path) -> None:
    seeds = [f"catSeqTG-2RF1-seed{n}" for n in (1234, 5678, 9527)]
    files = [data / "kp-predictions" / f"{name}.jsonl.gz" for name in ("inspec", "krapivin")]
    found = score_keyphrases(files, predictions=seeds, mean_seeds=True, resamples=20, trials=20)
    means = {
        (row.data, row.metric, phrases): round(row.cells[phrases].value, 3)
        for row in found.rows
        if "mean of 3" in row.prediction
        for phrases in ("present", "all")
    }
    # Chan et al. (2019); FG as an independent implementation has it
    assert (
        means.items()
        >= {
            ("inspec", "fg", "present"): 0.440,
            ("inspec", "fg", "all"): 0.383,
            ("inspec", "f1_at_5", "present"): 0.253,
            ("inspec", "f1_at_m", "present"): 0.301,
            ("krapivin", "fg", "present"): 0.356,
            ("krapivin", "fg", "all"): 0.336,
            ("krapivin", "f1_at_5", "present"): 0.300,
            ("krapivin", "f1_at_m", "present"): 0.369,
        }.items()
    )


def test_a_metric_with_another_separator_than_the_documents_is_refused() -> None:
    with pytest.raises(em.InputError, match=r"splits phrases at '\|', but those of documents"):
        build_keyphrase_metrics(["keyphrases(units=phrases(separator='|'))"])
