from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.evaluation.baseline import Baseline, measure_baseline, unrelated_pairs
from evenmatch.files import models_dir
from evenmatch.integrations.bert_score import score as compat_score
from evenmatch.models.backbone import HiddenStates, OpenBackbone

TEXTS = [
    "the cat sat on the mat",
    "prices rose by three per cent last year",
    "nobody expected the minister to resign",
    "rain is forecast for the whole of the north",
    "she plays the violin in a small orchestra",
]
LINES = st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=3), max_size=6)


@given(lines=LINES, count=st.integers(1, 40), seed=st.integers(0, 5))
def test_paired_texts_come_from_different_lines(
    lines: list[list[str]], count: int, seed: int
) -> None:
    first = {text: number for number, line in reversed([*enumerate(lines)]) for text in line}
    if len(set(first.values())) < 2:
        with pytest.raises(em.InputError, match="give at least two"):
            unrelated_pairs(lines, count, seed)
        return
    pairs = unrelated_pairs(lines, count, seed)
    assert all(first[a] != first[b] for a, b in pairs)
    possible = {(a, b) for a in first for b in first if first[a] != first[b]}
    if len(possible) <= count:
        assert sorted(pairs) == sorted(possible)
    else:
        assert len(pairs) == count
    assert pairs == unrelated_pairs(lines, count, seed)


def test_every_pair_is_as_likely_as_any_other() -> None:
    pairs = unrelated_pairs(["a", "b", "c", *map(str, range(97))], 9000, 0)
    assert len(set(pairs)) > 5000
    for text in "abc":
        assert 50 < sum(first == text for first, _ in pairs) < 140
        assert 50 < sum(second == text for _, second in pairs) < 140


def test_blank_texts_and_repeated_lines_do_not_count() -> None:
    assert set(unrelated_pairs(["a", " ", "", "a", "b"], 99, 0)) == {("a", "b"), ("b", "a")}


@pytest.mark.parametrize(
    ("lines", "count", "message"),
    [
        (["a", "a"], 5, "got 1 distinct lines; give at least two"),
        ([], 5, "got 0 distinct lines; give at least two"),
        ("a b", 5, "texts must be a list of lines, got one string"),
        (["a", 3], 5, "the text of line 1 must be a string, got 3"),
        (["a", "b"], 0, "pairs must be an integer of at least 1, got 0"),
    ],
)
def test_lines_that_cannot_be_paired_are_refused(lines: Any, count: int, message: str) -> None:
    with pytest.raises(em.InputError, match=message):
        unrelated_pairs(lines, count, 0)


@pytest.fixture(scope="module")
def measured() -> Baseline:
    return measure_baseline(TEXTS, "bertscore", pairs=12, seed=1)


@pytest.mark.model
def test_each_layer_has_the_means_of_its_scores(measured: Baseline) -> None:
    pairs = unrelated_pairs(TEXTS, 12, 1)
    assert [row.layer for row in measured.rows] == list(range(7))
    for row in (measured.rows[0], measured.rows[4], measured.rows[6]):
        candidates, references = ([pair[side] for pair in pairs] for side in (0, 1))
        scores = em.score(candidates, references, f"bertscore(layer={row.layer})")
        parts = [(s.precision, s.recall, s.value) for s in scores.segments]
        means = [sum(numbers) / 12 for numbers in zip(*parts, strict=True)]
        assert (row.precision, row.recall, row.value) == pytest.approx(means, abs=1e-6)


@pytest.mark.model
def test_texts_go_through_the_model_once_for_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    encode = OpenBackbone.encode

    def noting(
        self: OpenBackbone, texts: Sequence[str], layers: Sequence[int]
    ) -> list[HiddenStates]:
        assert list(layers) == list(range(7))
        seen.extend(texts)
        return encode(self, texts, layers)

    monkeypatch.setattr(OpenBackbone, "encode", noting)
    measure_baseline(TEXTS, "f_disc", pairs=15)
    assert sorted(seen) == sorted(TEXTS)


@pytest.mark.model
def test_rescaled_by_it_unrelated_texts_score_nothing_on_average(measured: Baseline) -> None:
    candidates, references = zip(*unrelated_pairs(TEXTS, 12, 1), strict=True)
    rescaled = em.build(em.spec(measured.rescaled))
    assert rescaled.vectors.layer == measured.layer == 4
    assert em.score(list(candidates), list(references), rescaled).mean == pytest.approx(0, abs=1e-5)
    assert em.score([TEXTS[0]], [TEXTS[0]], rescaled).mean == pytest.approx(1)


@pytest.mark.model
def test_bert_score_reads_the_table_and_rescales_as_the_spec_does(
    measured: Baseline, tmp_path: Path
) -> None:
    path = tmp_path / "baseline.tsv"
    path.write_text(measured.csv)
    candidates, references = ["a cat on a mat", "prices"], ["the cat sat on the mat", "rain"]
    ours = [s.value for s in em.score(candidates, references, measured.rescaled).segments]
    settings: dict[str, Any] = {"rescale_with_baseline": True, "baseline_path": str(path)}
    by_compat = compat_score(candidates, references, "minilm", 4, **settings)[2]
    assert by_compat.tolist() == pytest.approx(ours, abs=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bert_score

        model = str(models_dir() / "minilm")
        theirs = bert_score.score(
            candidates, references, model, 4, lang="en", batch_size=1, device="cpu", **settings
        )[2]
    assert theirs.tolist() == pytest.approx(ours, abs=1e-4)


@pytest.mark.model
def test_it_prints_the_layers_and_the_spec_to_use(measured: Baseline) -> None:
    lines = str(measured).splitlines()
    assert lines[0].split() == ["layer", "precision", "recall", "value", "error"]
    assert lines[5].split()[:2] == ["4", f"{measured.rows[4].precision:.4f}"]
    assert "12 random pairs of 5 texts, seed 1" in lines
    assert lines[-1] == f"to rescale: {em.spec(measured.rescaled)}"


@pytest.mark.model
def test_a_metric_that_is_rescaled_already_is_refused(measured: Baseline) -> None:
    with pytest.raises(em.InputError, match="is already rescaled; give it without rescale"):
        measure_baseline(TEXTS, em.spec(measured.rescaled))


@pytest.mark.parametrize(
    "metric", ["chrf", "align(vectors=hashed)", em.AlignMetric(vectors=em.Hashed())]
)
def test_a_metric_without_layers_is_refused(metric: Any) -> None:
    with pytest.raises(em.InputError, match="has no layers; give an alignment metric with a tran"):
        measure_baseline(TEXTS, metric)


@pytest.mark.model
def test_a_baseline_is_frozen(measured: Baseline) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        measured.pairs = 3  # type: ignore[misc]  # this is the point
