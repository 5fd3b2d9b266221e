from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tools.pages import agreement

import evenmatch as em
from evenmatch.evaluation.agreement import agreement_differences
from tests.support.rated_sets import rated_rows, rated_sets, write_rows

GREEDY = "align(vectors=hashed)"
LSA = "align(vectors=hashed, alignment=lsa)"


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script that makes the page, with one small set to work on."""
    data = write_rows(tmp_path / "mine.jsonl", rated_rows(("news", "talks")))
    task = agreement.Task(
        "wmt17-segments", str(data), "segment", "pearson", (GREEDY, LSA), apart=True
    )
    monkeypatch.setattr(agreement, "TASKS", [task])
    monkeypatch.setattr(agreement, "CONTESTS", [(LSA, GREEDY)])
    return agreement


def run(results: Any, monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> str:
    page = folder / "agreement.md"
    monkeypatch.setattr(
        sys, "argv", ["agreement.py", "--results", str(folder), "--page", str(page), *options]
    )
    results.main()
    return page.read_text("utf-8")


def test_differences_are_those_of_the_agreements(tmp_path: Path) -> None:
    found = em.correlate([GREEDY, LSA], rated_sets(tmp_path, "news"), "segment", resamples=50)
    ((difference,),) = agreement_differences(found, [(LSA, GREEDY)])
    greedy, lsa = (entry.value for entry in found.entries)
    assert difference.metric == f"{LSA} - {GREEDY}"
    assert difference.value == pytest.approx(lsa - greedy)
    assert difference.low < difference.value < difference.high
    with pytest.raises(em.InputError, match="'chrf' is not in this agreement; known: align"):
        agreement_differences(found, [("chrf", GREEDY)])


def test_the_page_has_our_values_beside_papers_and_a_verdict(
    results: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = run(results, monkeypatch, tmp_path / "out")
    found = em.correlate([GREEDY, LSA], em.read_ratings(tmp_path / "mine.jsonl"), "segment")
    assert "| metric | news (n 60) | talks (n 60) | average |" in page
    for row in found.rows:
        assert f"{row['value']:.3f}".removeprefix("0") in page
    assert "| greedy, layer 4 | .666 | another run of the same encoder |" in page
    assert f"- {LSA} - {GREEDY}, average: " in page


def test_a_finished_piece_is_not_computed_again(
    results: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    page = run(results, monkeypatch, folder)
    assert sorted(path.name for path in (folder / "agreement").iterdir()) == [
        "wmt17-segments.news.json",
        "wmt17-segments.talks.json",
    ]
    (folder / "agreement" / "wmt17-segments.news.json").unlink()
    asked: list[str] = []
    compute = results.compute

    def noted(task: Any, sets: list[em.RatedSet], segments: int) -> Any:
        asked.append(sets[0].subset)
        return compute(task, sets, segments)

    monkeypatch.setattr(results, "compute", noted)
    assert run(results, monkeypatch, folder) == page
    assert asked == ["news"]


def test_pieces_are_json_without_nan(
    results: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run(results, monkeypatch, tmp_path / "out")
    text = (tmp_path / "out" / "agreement" / "wmt17-segments.news.json").read_text()
    piece = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert [entry["metric"] for entry in piece["entries"]] == [GREEDY, LSA]
    assert piece["recipe"]["level"] == "segment"
