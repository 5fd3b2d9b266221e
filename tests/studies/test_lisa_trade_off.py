from __future__ import annotations

from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.studies.lisa.trade_off import (
    AssignmentQuality,
    AssignmentSpeed,
    TradeOff,
    TradeOffSettings,
    measure_trade_off,
    quality_table,
    recommendations,
    speed_table,
    trade_off_report,
)
from evenmatch.studies.sentences import SentencePairs
from tests.support.rated_sets import rated_sets

SENTENCES = SentencePairs(
    "three", ("the cat sat", "a dog ran off", "rain fell"), ("the cat slept", "a dog ran", "rain")
)
MEASURES = TradeOffSettings(("row_mask", "topk"), (4, 6), (1, 2), rounds=1, seconds=0.0)


def measured(folder: Path) -> TradeOff:
    return measure_trade_off(SENTENCES, [], em.Hashed(dim=32), folder, MEASURES)


def test_every_kind_of_matrix_every_size_and_batch_is_measured(tmp_path: Path) -> None:
    result = measured(tmp_path)
    assert [[row.solver for row in rows] for rows in result.qualities.values()] == [
        ["row_mask", "topk"]
    ] * 4
    assert next(iter(result.qualities)) == "sentences"
    assert len(result.speeds) == 2 * 2 * 3
    assert len(quality_table(result)) == 1 + 8
    assert len(speed_table(result)) == 1 + 3 * 2


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    first = measured(tmp_path)
    assert measured(tmp_path).speeds == first.speeds  # timings would differ


def test_advice_says_what_each_solver_loses_and_costs(tmp_path: Path) -> None:
    lines = recommendations(measured(tmp_path))
    assert [line.split(":")[0] for line in lines] == ["row_mask", "topk"]
    assert "of the optimal total on sentences, one-to-one;" in lines[0]


@pytest.mark.parametrize(
    ("times", "said"),
    [(0.5, "clearly faster at 8 units in batches of 1"), (0.9, "nowhere clearly faster")],
)
def test_advice_calls_faster_only_what_is_clearly_so(times: float, said: str) -> None:
    quality = AssignmentQuality("topk", 1, 1.0, 1.0, 0.5, 0.5)
    result = TradeOff({"sentences": [quality]}, [], [AssignmentSpeed("topk", 8, 1, 10.0, times)], 1)
    assert recommendations(result)[0].endswith(said)


def test_the_page_leaves_out_agreement_where_there_is_none(tmp_path: Path) -> None:
    assert list(trade_off_report(measured(tmp_path)).tables) == ["quality", "speed"]


@pytest.mark.model
def test_agreement_of_the_exact_metric_with_itself_is_whole(tmp_path: Path) -> None:
    sets = rated_sets(tmp_path, "news")
    result = measure_trade_off(SENTENCES, sets, em.Hashed(dim=32), tmp_path / "out", MEASURES)
    found = {row.solver: row for row in result.agreements}
    assert list(found) == ["greedy", "lsa", "row_mask", "topk"]
    assert found["lsa"].with_exact == pytest.approx(1.0)
    wanted = em.correlate(["f_disc"], sets, "segment", "kendall", resamples=10).entries[0]
    assert found["lsa"].with_people == pytest.approx(wanted.value)
    assert "agreement" in trade_off_report(result).tables
