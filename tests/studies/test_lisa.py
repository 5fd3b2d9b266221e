from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.pairs import read_everyday_sample
from evenmatch.errors import InputError
from evenmatch.scoring.metric import score_metrics
from evenmatch.studies.lisa.findings import describe_claims, grid_table, lisa_report, summarize_grid
from evenmatch.studies.lisa.grid import ALIGNED, SHUFFLED, Grid, GridCell, GridScores, run_lisa_grid
from evenmatch.studies.sentences import SentencePairs, sample_sentence_pairs
from tests.reports.test_meta_page import Tags

pytestmark = pytest.mark.model

GRID = Grid(lengths=(0, 48), algorithms=("greedy", "lsa", "recursive"))


@pytest.fixture(scope="module")
def sentences() -> SentencePairs:
    return sample_sentence_pairs("the sample", read_everyday_sample()["good"], 8, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def runs(sentences: SentencePairs, folder: Path) -> GridScores:
    return run_lisa_grid(sentences, GRID, folder)


def test_every_cell_of_the_grid_is_scored(runs: GridScores) -> None:
    assert runs.encoders == ("minilm layer 4", "minilm layer 6")
    assert (runs.algorithms, runs.lengths) == (GRID.algorithms, GRID.lengths)
    assert len(runs.cells) == 2 * 2 * (1 + 3 * 2)
    assert all(values.shape == (8,) for values in runs.cells.values())
    assert len(runs.token_counts) == 16


@pytest.mark.parametrize(
    ("algorithm", "length", "spec"),
    [
        ("greedy", 0, "bertscore"),
        ("eot", 0, "eot(layer=4)"),
        ("recursive", 48, "lisa_recursive(include_padding=48)"),
    ],
)
def test_a_cell_holds_the_scores_of_its_metric(
    runs: GridScores, sentences: SentencePairs, algorithm: str, length: int, spec: str
) -> None:
    for side, texts in ((ALIGNED, sentences), (SHUFFLED, sentences.make_negatives(0))):
        wanted = em.score(list(texts.candidates), list(texts.others), spec)
        found = runs.cells[GridCell("minilm layer 4", algorithm, length, side)]
        assert found == pytest.approx([s.value for s in wanted.segments], abs=2e-6)


def test_a_study_goes_on_where_it_was_stopped(
    sentences: SentencePairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def stopped(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return score_metrics(*given)

    monkeypatch.setattr("evenmatch.studies.lisa.grid.score_metrics", stopped)
    grid = Grid(layers=(1,), lengths=(0,), algorithms=("greedy", "lsa"))
    with pytest.raises(KeyboardInterrupt):
        run_lisa_grid(sentences, grid, tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 3
    run_lisa_grid(sentences, grid, tmp_path)
    assert calls == 4 + 3  # what was lost is the one cell that was being scored
    run_lisa_grid(sentences, grid, tmp_path)
    assert calls == 4 + 3


def test_other_texts_are_scored_anew(sentences: SentencePairs, tmp_path: Path) -> None:
    grid = Grid(layers=(1,), lengths=(0,), algorithms=("greedy",))
    first = run_lisa_grid(sentences, grid, tmp_path)
    fewer = SentencePairs("fewer", sentences.candidates[:4], sentences.others[:4])
    second = run_lisa_grid(fewer, grid, tmp_path)
    assert {len(v) for v in first.cells.values()} == {8}
    assert {len(v) for v in second.cells.values()} == {4}


def test_progress_rises_to_all_pairs_of_all_cells(sentences: SentencePairs, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    grid = Grid(layers=(1,), lengths=(0,), algorithms=("greedy",))
    run_lisa_grid(sentences, grid, tmp_path, progress=lambda *pair: told.append(pair))
    assert told == sorted(told)
    assert told[-1] == (32, 32)


def test_rows_compare_with_greedy_and_with_no_padding(runs: GridScores) -> None:
    rows = {(r.encoder, r.algorithm, r.length): r for r in summarize_grid(runs)}
    assert len(rows) == 14
    lsa = rows["minilm layer 4", "lsa", 0]
    greedy = rows["minilm layer 4", "greedy", 0]
    assert lsa.lowered is not None
    assert lsa.lowered.value == pytest.approx(greedy.aligned - lsa.aligned)
    assert (greedy.lowered, greedy.inflated, lsa.inflated) == (None, None, None)
    padded = rows["minilm layer 4", "lsa", 48]
    assert padded.inflated is not None
    assert padded.inflated.value == pytest.approx(padded.aligned - lsa.aligned)
    assert lsa.wider is not None
    gaps = [row.aligned - row.shuffled for row in (lsa, greedy)]
    assert lsa.wider.value == pytest.approx(gaps[0] - gaps[1])
    assert lsa.beyond_greedy is not None
    assert lsa.beyond_greedy.value == pytest.approx(lsa.effect.value - greedy.effect.value)


def test_claims_name_who_separates_most_by_either_measure(runs: GridScores) -> None:
    rows = summarize_grid(runs)
    own = [r for r in rows if (r.encoder, r.length) == ("minilm layer 6", 0)]
    own = [r for r in own if r.algorithm != "eot"]
    best = max(own, key=lambda r: r.effect.value).algorithm
    widest = max(own, key=lambda r: r.aligned - r.shuffled).algorithm
    claim = next(c for c in describe_claims(rows) if c.startswith("minilm layer 6, no padding:"))
    assert f": {best} separates pairs from negatives best by effect size" in claim
    assert f"and {widest} by difference of means" in claim


def test_the_folder_has_a_table_figures_and_a_page_that_loads_nothing(
    runs: GridScores, tmp_path: Path
) -> None:
    rows = summarize_grid(runs)
    page = lisa_report(runs, rows).write(tmp_path)
    tags = Tags()
    tags.feed(page.read_text("utf-8"))
    assert (tags.misplaced, tags.open) == ([], [])
    # figures are embedded; nothing is loaded from elsewhere
    assert all(address.startswith("data:image/svg+xml;base64,") for address in tags.addresses)
    assert len(tags.addresses) == len(list(tmp_path.glob("*.svg")))
    lines = (tmp_path / "table.tsv").read_text("utf-8").splitlines()
    assert len(lines) == len(grid_table(rows)) == 15
    names = {path.stem for path in tmp_path.glob("*.svg")}
    assert {"lengths", "baseline", "models", "algorithms", "padding-1", "effects-2"} <= names
    assert "separation-2-48" in names


def test_a_grid_without_lengths_is_refused() -> None:
    with pytest.raises(InputError, match="the study has no lengths; give at least one"):
        Grid(lengths=())


def test_repeating_by_padding_does_not_touch_the_baseline(runs: GridScores) -> None:
    own = [cell for cell in runs.cells if cell.algorithm == "eot"]
    assert {cell.length for cell in own} == {0}
    assert np.mean(runs.cells[own[0]]) > np.mean(runs.cells[own[2]])
