from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Command

LINES = [
    {"cand_a": "he left", "ref_a": "one left", "cand_b": "she left", "ref_b": "one left"},
    {"cand_a": "she came", "ref_a": "one came", "cand_b": "he came", "ref_b": "one came"},
]
PROMISED = {"attribute", "metric", "pairs", "bias", "stereotype", "low", "high", "raw"}
PROMISED |= {"offset", "prefers_stereotype"}


def test_a_file_of_pairs_is_audited_as_json(command: Command) -> None:
    Path("mine.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    done = command("audit", "mine.jsonl", "-m", "chrf", "-m", "rouge1", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    rows, [group] = document["rows"], document["groups"]
    assert (group["paradigm"], group["metrics"]) == ("n-grams, edits", ["chrf", "rouge1"])
    assert [(row["attribute"], row["metric"]) for row in rows] == [
        ("mine", "chrf"),
        ("mine", "rouge1"),
    ]
    assert rows[0].keys() >= PROMISED
    assert rows[1]["bias"] == 0.0


def test_without_data_the_pairs_of_evenmatch_are_used(command: Command) -> None:
    done = command("audit", "-m", "chrf", "-a", "age", "--format", "tsv", "--resamples", "10")
    assert done.code == 0, done.err
    header, row = done.out.splitlines()
    assert header.split("\t")[:3] == ["attribute", "metric", "pairs"]
    assert row.split("\t")[:3] == ["age", "chrf", "62"]


def test_the_grid_prints_as_latex(command: Command) -> None:
    done = command("audit", "-m", "chrf", "-a", "age", "-a", "race", "--format", "latex")
    assert "prefers stereotype" in done.out
    assert r"metric & age & race & mean \\" in done.out


def test_attributes_have_the_short_names_of_debias(command: Command) -> None:
    options = ("-m", "chrf", "-f", "tsv", "--resamples", "10", "--trials", "10")
    short, full = (
        command("audit", "-a", name, *options).out for name in ("status", "socioeconomic")
    )
    assert short == full != ""


def test_few_pairs_are_noted(command: Command) -> None:
    Path("mine.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    done = command("audit", "mine.jsonl", "-m", "chrf", "--resamples", "10", "--trials", "10")
    assert "fewer than 20 pairs, so uncertain: mine" in done.out
    assert "on the scale 0-100\n" in done.out
    included = command("audit", "-m", "chrf", "-a", "age", "--resamples", "10", "--trials", "10")
    assert "fewer than 20" not in included.out


def test_an_unknown_attribute_is_one_line_of_trouble(command: Command) -> None:
    done = command("audit", "-m", "chrf", "-a", "height")
    assert done.code == 1
    assert "has no pairs about 'height'" in done.err
