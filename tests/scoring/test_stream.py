from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

import evenmatch as em
from evenmatch.scoring import streaming
from evenmatch.scoring.streaming import RunningMean, score_stream
from evenmatch.types import Pair, Run, Score, Scores

WORDS = "the cat sat on a mat and saw dogs run by".split()
PAIRS = [
    Pair(" ".join(WORDS[i % 5 : i % 7 + 3]), (" ".join(WORDS[: i % 9]), WORDS[i % 11]))
    for i in range(50)
]
SPECS = ["align(vectors=hashed, alignment=lsa)", "align(vectors=hashed(weights=idf))"]


def at_once() -> dict[str, Scores]:
    return em.score([p.candidate for p in PAIRS], [list(p.references) for p in PAIRS], SPECS)


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
def test_the_chunks_together_are_the_whole(size: int) -> None:
    metrics = [em.build(spec) for spec in SPECS]
    stream = score_stream(metrics, PAIRS, Run(), chunk_size=size)
    chunks, found = zip(*stream, strict=True)
    assert [pair for chunk in chunks for pair in chunk] == PAIRS
    for index, whole in enumerate(at_once().values()):
        assert [s for scores in found for s in scores[index].segments] == list(whole.segments)
        assert {scores[index].signature for scores in found} == {whole.signature}


def test_a_chunk_is_bounded_by_characters_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "STREAM_CHUNK_CHARACTERS", 100)
    metric = em.build(SPECS[0])
    sizes = [len(scores) for _, [scores] in score_stream([metric], PAIRS, Run())]
    assert len(sizes) > 10
    assert sum(sizes) == 50


def test_pairs_are_taken_only_as_they_are_needed() -> None:
    taken = []

    def source() -> Iterator[Pair]:
        for index in range(10**9):
            taken.append(index)
            yield PAIRS[0]

    next(score_stream([em.build(SPECS[0])], source(), Run(), chunk_size=3))
    assert len(taken) == 3


def test_idf_of_what_can_be_read_once_is_refused() -> None:
    with pytest.raises(em.InputError, match="read only once; save it to a file, or name a table"):
        next(score_stream([em.build(SPECS[1])], iter(PAIRS), Run()))


def test_progress_counts_over_all_chunks() -> None:
    reported: list[tuple[int, int]] = []
    run = Run(progress=lambda done, total: reported.append((done, total)))
    list(score_stream([em.build(SPECS[0])], PAIRS, run, chunk_size=20, total=50))
    assert reported == [(20, 50), (40, 50), (50, 50)]


def test_no_pairs_give_no_chunk() -> None:
    assert list(score_stream([em.build(SPECS[0])], [], Run())) == []
    assert list(score_stream([Length()], [], Run())) == []


def test_an_empty_chunk_is_refused() -> None:
    with pytest.raises(em.InputError, match="a chunk holds at least 1 pair, got chunk_size=0"):
        next(score_stream([em.build(SPECS[0])], PAIRS, Run(), chunk_size=0))


@dataclass(frozen=True)
class Length:
    """A metric that is no row of parts and has a corpus score."""

    signature: str = "length"
    higher_is_better: bool = True
    bounds: tuple[float, float] = (0.0, 100.0)
    calls: list[int] = field(default_factory=list)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        self.calls.append(len(pairs))
        segments = tuple(Score(float(len(pair.candidate))) for pair in pairs)
        return Scores(segments, self.signature, corpus=max(s.value for s in segments))


def test_a_metric_with_a_corpus_score_sees_all_pairs_at_once() -> None:
    metric = Length()
    [(_, [scores])] = score_stream([metric], iter(PAIRS), Run(), chunk_size=10)
    assert metric.calls == [50]
    assert scores.corpus == max(len(pair.candidate) for pair in PAIRS)


def test_a_tally_has_the_means_of_the_scores() -> None:
    whole = at_once()[SPECS[0]]
    tally = RunningMean()
    for start in range(0, 50, 9):
        part = dataclasses.replace(whole, segments=whole.segments[start : start + 9])
        tally = tally.add(part)
    assert (tally.count, tally.mean.value, tally.signature) == (50, whole.mean, whole.signature)
    recalls = [s.recall for s in whole.segments if s.recall is not None]
    assert tally.mean.recall == pytest.approx(sum(recalls) / 50)


def test_a_tally_has_no_precision_where_one_score_has_none() -> None:
    tally = RunningMean().add(Scores((Score(1.0, 0.5), Score(0.0)), "x", corpus=0.7))
    assert (tally.mean, tally.corpus) == (Score(0.5, None, None), 0.7)


def test_a_tally_of_nothing_is_zero() -> None:
    assert RunningMean().mean == Score(0.0, 0.0, 0.0)


def test_corpus_scores_of_chunks_are_not_added() -> None:
    one = Scores((Score(1.0),), "x", corpus=0.7)
    assert RunningMean().add(one).add(one).corpus is None
