"""Published correlations of the WMT20 metrics task, reproduced."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from evenmatch.stats.levels import correlate_panel
from evenmatch.stats.panel import find_outliers, make_panel

Scores = dict[tuple[str, str], dict[str, float]]

# Pearson without outliers and human references, as the task published it and Chousa & Hirao
# reprint it: cs de iu ja km pl ps ru zh to English.
PUBLISHED = {
    "sentBLEU": ".800 .786 .469 .851 .969 .284 .888 .833 .950",
    "COMET": ".694 .773 .605 .828 .971 .345 .941 .836 .931",
    "prism": ".720 .775 .616 .869 .950 .269 .966 .839 .945",
}
PAIRS = "cs-en de-en iu-en ja-en km-en pl-en ps-en ru-en zh-en".split()


def rows(path: Path) -> Iterator[dict[str, str]]:
    packed = path.read_bytes()
    text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode()
    yield from csv.DictReader(text.splitlines(), delimiter="\t")


def by_pair(read: Iterable[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    found = defaultdict(list)
    for row in read:
        found[row["lp"]].append(row)
    return found


@pytest.fixture(scope="module")
def human(data: Path) -> dict[str, list[dict[str, str]]]:
    return by_pair(rows(data / "wmt20-da" / "system_scores.tsv"))


@pytest.fixture(scope="module")
def metrics(data: Path) -> Scores:
    found: Scores = defaultdict(dict)
    for row in rows(data / "wmt20-da" / "metric_system_scores.tsv.gz"):
        if row["testset"] == row["ref"] == "newstest2020":
            found[row["metric"], row["lp"]][row["system"]] = float(row["score"])
    return found


def without_outliers(
    scores: dict[str, float], people: list[dict[str, str]]
) -> tuple[list[float], list[float]]:
    kept = [r for r in people if r["outlier"] == r["human"] == "0" and r["system"] in scores]
    return [scores[r["system"]] for r in kept], [float(r["z"]) for r in kept]


def test_published_correlations_come_out_to_three_decimals(
    metrics: Scores, human: dict[str, list[dict[str, str]]]
) -> None:
    wrong = []
    for metric, line in PUBLISHED.items():
        for pair, expected in zip(PAIRS, line.split(), strict=True):
            both = make_panel(*without_outliers(metrics[metric, pair], human[pair]))
            found = float(correlate_panel(both, level="system", method="pearson")[0])
            if abs(found - float(expected)) > 5e-4 + 1e-9:
                wrong.append((metric, pair, expected, found))
    assert not wrong


def test_every_cell_of_the_task_equals_numpys_correlation(
    metrics: Scores, human: dict[str, list[dict[str, str]]]
) -> None:
    assert len(metrics) == 300
    for (_, pair), scores in metrics.items():
        x, y = without_outliers(scores, human[pair])
        found = correlate_panel(make_panel(x, y), level="system", method="pearson")
        assert found[0] == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-12)


def test_the_rule_finds_the_listed_outliers_of_half_the_pairs(
    human: dict[str, list[dict[str, str]]],
) -> None:
    """The organisers' list differs from the rule applied to the published scores."""
    same = set()
    for pair, people in human.items():
        systems = [r for r in people if r["human"] == "0"]
        flags = find_outliers([float(r["z"]) for r in systems])
        if flags.tolist() == [r["outlier"] == "1" for r in systems]:
            same.add(pair)
    assert same == {"de-en", "km-en", "ps-en", "ru-en", "zh-en"}
