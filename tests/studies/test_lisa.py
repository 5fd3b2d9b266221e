from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.pairs import read_everyday_sample
from evenmatch.errors import InputError
from evenmatch.scoring.metric import score_metrics
from evenmatch.studies.lisa.findings import (
    BATCH,
    batch_means,
    count_peaks,
    describe_claims,
    grid_document,
    grid_table,
    identify_encoders,
    lisa_report,
    summarize_grid,
)
from evenmatch.studies.lisa.grid import (
    ALIGNED,
    HARD,
    SHUFFLED,
    Grid,
    GridCell,
    GridScores,
    run_lisa_grid,
)
from evenmatch.studies.sentences import SentencePairs, sample_sentence_pairs
from tests.reports.test_meta_page import Tags

pytestmark = pytest.mark.model

GRID = Grid(lengths=(0, 48), algorithms=("greedy", "lsa", "recursive"))


@pytest.fixture(scope="module")
def sentences() -> SentencePairs:
    return sample_sentence_pairs("the sample", read_everyday_sample()["good"], 8, 0, hard=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def runs(sentences: SentencePairs, folder: Path) -> GridScores:
    return run_lisa_grid(sentences, GRID, folder)


def test_every_cell_of_the_grid_is_scored(runs: GridScores) -> None:
    assert runs.encoders == ("minilm layer 4", "minilm layer 6")
    assert (runs.algorithms, runs.lengths) == (GRID.algorithms, GRID.lengths)
    assert len(runs.cells) == 2 * 3 * (1 + 2 * 3 * 2)
    assert all(values.shape == (8,) for values in runs.cells.values())
    assert len(runs.token_counts) == 16


@pytest.mark.parametrize(
    ("algorithm", "length", "counted", "spec"),
    [
        ("greedy", 0, False, "bertscore"),
        ("eot", 0, False, "eot(layer=4)"),
        ("recursive", 48, False, "lisa_recursive(include_padding=48)"),
        (
            *("lsa", 48, True),
            "align(units=pieces(marks=True), vectors=transformer(pad_to=48), alignment=lsa, "
            "scoring=unweighted)",
        ),
    ],
)
def test_a_cell_holds_the_scores_of_its_metric(
    runs: GridScores,
    sentences: SentencePairs,
    algorithm: str,
    length: int,
    counted: bool,
    spec: str,
) -> None:
    sides = {ALIGNED: sentences, SHUFFLED: sentences.make_negatives(0)}
    for side, texts in (*sides.items(), (HARD, sentences.make_hard_negatives())):
        wanted = em.score(list(texts.candidates), list(texts.others), spec)
        found = runs.cells[GridCell("minilm layer 4", algorithm, length, side, counted)]
        assert found == pytest.approx([s.value for s in wanted.segments], abs=2e-6)


def test_a_study_goes_on_where_it_was_stopped(
    sentences: SentencePairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def stopped(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return score_metrics(*given)

    monkeypatch.setattr("evenmatch.studies.experiment.score_metrics", stopped)
    grid = Grid(layers=(1,), lengths=(0, 24), algorithms=("greedy", "lsa"), counted=False)
    with pytest.raises(KeyboardInterrupt):
        run_lisa_grid(sentences, grid, tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 3
    run_lisa_grid(sentences, grid, tmp_path)
    assert calls == 3  # what was lost is the length that was being scored
    run_lisa_grid(sentences, grid, tmp_path)
    assert calls == 3


def test_other_texts_are_scored_anew(sentences: SentencePairs, tmp_path: Path) -> None:
    grid = Grid(layers=(1,), lengths=(0,), algorithms=("greedy",))
    first = run_lisa_grid(sentences, grid, tmp_path)
    fewer = SentencePairs("fewer", sentences.candidates[:4], sentences.others[:4])
    second = run_lisa_grid(fewer, grid, tmp_path)
    assert {len(v) for v in first.cells.values()} == {8}
    assert {len(v) for v in second.cells.values()} == {4}


def test_progress_rises_to_all_pairs_of_all_cells(sentences: SentencePairs, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    grid = Grid(layers=(1,), lengths=(0, 24), algorithms=("greedy",), counted=False)
    run_lisa_grid(sentences, grid, tmp_path, progress=lambda *pair: told.append(pair))
    assert told == sorted(told)
    assert told[-1] == (48, 48)


def test_rows_compare_with_greedy_and_with_no_padding(runs: GridScores) -> None:
    every = summarize_grid(runs)
    rows = {
        (r.encoder, r.algorithm, r.length): r
        for r in every
        if r.negatives == SHUFFLED and not r.counted
    }
    assert (len(rows), len(every)) == (14, 2 * (2 + 24))
    lsa = rows["minilm layer 4", "lsa", 0]
    greedy = rows["minilm layer 4", "greedy", 0]
    assert lsa.lowered is not None
    assert lsa.lowered.value == pytest.approx(greedy.aligned - lsa.aligned)
    assert (greedy.lowered, greedy.inflated, lsa.inflated) == (None, None, None)
    padded = rows["minilm layer 4", "lsa", 48]
    assert padded.inflated is not None
    assert padded.inflated.value == pytest.approx(padded.aligned - lsa.aligned)
    assert lsa.wider is not None
    gaps = [row.aligned - row.negative for row in (lsa, greedy)]
    assert lsa.wider.value == pytest.approx(gaps[0] - gaps[1])
    assert lsa.beyond_greedy is not None
    assert lsa.beyond_greedy.value == pytest.approx(lsa.effect.value - greedy.effect.value)


def test_claims_name_who_separates_most_by_either_measure(runs: GridScores) -> None:
    rows = summarize_grid(runs)
    own = [r for r in rows if (r.encoder, r.length, r.counted) == ("minilm layer 6", 0, False)]
    own = [r for r in own if r.algorithm != "eot" and r.negatives == HARD]
    best = max(own, key=lambda r: r.effect.value).algorithm
    widest = max(own, key=lambda r: r.aligned - r.negative).algorithm
    start = "minilm layer 6, no padding, hard negatives:"
    claim = next(c for c in describe_claims(rows) if c.startswith(start))
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
    assert len(lines) == len(grid_table(rows)) == 53
    names = {path.stem for path in tmp_path.glob("*.svg")}
    assert {"lengths", "baseline", "models", "algorithms", "padding-1", "effects-2"} <= names
    assert {"separation-2-48", "effects-1-hard"} <= names


def test_a_grid_without_lengths_is_refused() -> None:
    with pytest.raises(InputError, match="the study has no lengths; give at least one"):
        Grid(lengths=())


def test_repeating_by_padding_does_not_touch_the_baseline(runs: GridScores) -> None:
    own = [cell for cell in runs.cells if cell.algorithm == "eot"]
    assert {cell.length for cell in own} == {0}
    assert np.mean(runs.cells[own[0]]) > np.mean(runs.cells[own[1]])


def made_runs(groups: tuple[str, ...] = ()) -> GridScores:
    """Scores by formula: two encoders, 40 pairs; the second encoder's are 0.2 higher."""
    texts = tuple(map(str, range(40)))
    random = np.random.default_rng(0)
    cells = {}
    for k, encoder in enumerate(("one", "two")):
        for algorithm, width in (("eot", 0.3), ("greedy", 0.05), ("lsa", 0.02)):
            for side, mean in ((ALIGNED, 0.7), (SHUFFLED, 0.3)):
                scores = mean + 0.2 * k + width * random.normal(size=40)
                cells[GridCell(encoder, algorithm, 0, side)] = scores
    sentences = SentencePairs("made", texts, texts, groups)
    return GridScores(sentences, cells, [1, 2], 0.0, 0)


def test_groups_have_rows_of_their_own_pairs() -> None:
    runs = made_runs(("cs",) * 25 + ("de",) * 15)
    rows = {(r.group, r.encoder, r.algorithm): r for r in summarize_grid(runs)}
    assert len(rows) == 3 * 6
    own = runs.cells[GridCell("two", "lsa", 0, ALIGNED)][25:]
    row = rows["de", "two", "lsa"]
    assert row.pairs == 15
    assert row.aligned == pytest.approx(own.mean())
    assert row.beyond_greedy is not None
    assert (row.lowered, row.wider) == (None, None)
    assert grid_document(runs, list(rows.values()))["rows"][0]["group"] == ""


def test_p_values_are_corrected_for_all_rows() -> None:
    rows = [row for row in summarize_grid(made_runs()) if row.beyond_greedy]
    assert len(rows) == 2
    for row in rows:
        assert row.beyond_greedy is not None
        assert row.p is not None
        assert row.p < 0.05 < abs(row.beyond_greedy.value)
    alone = made_runs(("a", "b") * 20)
    again = [row for row in summarize_grid(alone) if row.beyond_greedy and not row.group]
    assert all((b.p or 0) >= (a.p or 0) for a, b in zip(rows, again, strict=True))


def test_wins_are_paired_and_superiority_is_not() -> None:
    runs = made_runs()
    cell = GridCell("one", "greedy", 0, ALIGNED)
    pairs, negatives = runs.cells[cell], runs.cells[GridCell("one", "greedy", 0, SHUFFLED)]
    negatives[:10] = pairs[:10] + 0.001
    row = next(r for r in summarize_grid(runs) if (r.encoder, r.algorithm) == ("one", "greedy"))
    assert row.wins.value == pytest.approx(0.75)
    assert row.told_apart == pytest.approx(np.mean(pairs[:, None] > negatives))


def test_an_encoder_is_identified_where_its_scores_stand_apart() -> None:
    runs = made_runs()
    found = {each.algorithm: each for each in identify_encoders(runs, 5)}
    assert list(found) == ["eot", "greedy", "lsa"]
    assert found["lsa"].right.value == 1
    assert found["lsa"].peaks == 2  # pairs and negatives; the density does not show encoders
    assert found["eot"].right.value < 1
    assert found["eot"].chance == 0.5
    assert BATCH == 20
    assert "identification" in lisa_report(runs, summarize_grid(runs)).tables


def test_equal_encoders_are_identified_by_chance() -> None:
    runs = made_runs()
    random = np.random.default_rng(1)
    cells = {cell: random.normal(size=40) for cell in runs.cells}
    same = GridScores(runs.sentences, cells, [1], 0.0, 0)
    assert abs(identify_encoders(same, 2)[0].right.value - 0.5) < 0.25


def test_batches_and_peaks_by_hand() -> None:
    assert batch_means(np.arange(7.0), 3).tolist() == [1, 4]
    two = np.concatenate([np.full(50, 0.2), np.full(50, 0.8)]) + np.linspace(-0.02, 0.02, 100)
    assert count_peaks(two) == 2
    assert count_peaks(np.linspace(0.4, 0.5, 50)) == 1
