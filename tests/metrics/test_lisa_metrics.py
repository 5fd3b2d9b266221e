from __future__ import annotations

import pytest

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.scoring.metric import AlignMetric

pytestmark = pytest.mark.model

CANDIDATES = ["the cat sat on the mat", "a dog barked", "the the the cat cat sat"]
REFERENCES = ["a cat sat on the mat quietly", "the hound was barking loudly", "the cat sat"]
NAMES = ("lisa_rowmask", "lisa_recursive", "lisa_topk", "lisa_auction")
ALL = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        ("lisa_rowmask", "row_mask"),
        ("lisa_recursive", "recursive"),
        ("lisa_topk", "topk"),
        ("lisa_auction", "auction"),
    ],
)
def test_a_lisa_metric_is_bertscore_with_another_solver(name: str, solver: str) -> None:
    spec = f"align(units=pieces(marks=True), vectors=transformer(layer=4), alignment={solver})"
    found, wanted = (em.score(CANDIDATES, REFERENCES, s) for s in (name, spec))
    assert [s.value for s in found.segments] == [s.value for s in wanted.segments]
    assert found.signature.split(" · ")[0] == wanted.signature.split(" · ")[0]


@ALL
def test_assignment_scores_no_higher_than_greedy(name: str) -> None:
    found, greedy = (em.score(CANDIDATES, REFERENCES, m) for m in (name, "bertscore"))
    for ours, theirs in zip(found.segments, greedy.segments, strict=True):
        assert ours.value <= theirs.value + 1e-6


@pytest.mark.parametrize("name", ["lisa_rowmask", "lisa_recursive", "lisa_auction"])
def test_repeating_words_pays_less_than_under_greedy(name: str) -> None:
    once, often = "the cat sat", "the cat the cat the cat sat"
    lost = {}
    for metric in (name, "bertscore"):
        scores = em.score([once, often], [once, once], metric).segments
        lost[metric] = (scores[0].precision or 0) - (scores[1].precision or 0)
    assert lost[name] > lost["bertscore"] + 0.05


@pytest.mark.parametrize(
    ("name", "solver", "settings"),
    [
        ("lisa_recursive", "recursive", "(iterations=7, factor=0.9, legacy=True)"),
        ("lisa_topk", "topk", "(iterations=3, factor=2.0)"),
        ("lisa_auction", "auction", "(iterations=5, factor=2.0)"),
    ],
)
def test_the_settings_of_the_solver_are_settings_of_the_metric(
    name: str, solver: str, settings: str
) -> None:
    metric = em.build(name + settings)
    assert isinstance(metric, AlignMetric)
    assert em.spec(metric.alignment) == solver + settings


def test_a_setting_that_a_metric_does_not_have_is_refused_with_those_it_has() -> None:
    with pytest.raises(InputError, match="lisa_rowmask has no setting 'iterations'; known: model"):
        em.build("lisa_rowmask(iterations=7)")


@ALL
def test_idf_weighs_the_mean(name: str) -> None:
    plain, weighted = (em.score(CANDIDATES, REFERENCES, f"{name}{s}") for s in ("", "(idf=True)"))
    assert plain.mean != pytest.approx(weighted.mean, abs=1e-4)


@ALL
def test_padding_is_in_the_signature_and_in_the_score(name: str) -> None:
    plain = em.score(CANDIDATES, REFERENCES, name)
    padded = em.score(CANDIDATES, REFERENCES, f"{name}(include_padding=48)")
    assert "pad_to=48" in padded.signature
    assert plain.mean != pytest.approx(padded.mean, abs=1e-6)


def test_paddings_are_aligned_and_shown() -> None:
    aligned = em.align("a cat", "the cat sat", "lisa_rowmask(include_padding=8)")
    assert aligned.candidate_units == ["[CLS]", "a", "cat", "[SEP]", *["[PAD]"] * 4]
    assert aligned.similarity.shape == (8, 8)
    assert len(aligned.pairs) == 8


def test_under_greedy_padding_never_lowers_a_score() -> None:
    spec = "align(units=pieces(marks=True), vectors=transformer(layer=4, pad_to={}))"
    scores = [em.score(CANDIDATES, REFERENCES, spec.format(n)).segments for n in (0, 32, 64)]
    for plain, padded, longer in zip(*scores, strict=True):
        assert plain.value <= padded.value + 1e-5
        assert padded.value <= longer.value + 1e-5


def test_a_padding_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="minilm can be padded to 3 up to 512 tokens, got 600"):
        em.score(CANDIDATES, REFERENCES, "lisa_rowmask(include_padding=600)")
    with pytest.raises(InputError, match="leave out long='windows' or pad_to"):
        em.build("lisa_rowmask(include_padding=64, long='windows')")
