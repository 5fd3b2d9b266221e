from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.scoring import engine
from evenmatch.scoring.engine import TextEmbedder, chunk_pairs, texts_of_pair
from evenmatch.types import Embedded, OpenEncoder, Pair, Units

LETTERS = st.sampled_from(["a", "bb", "ccc", "dddd", "eeeee"])
PAIRS = st.lists(
    st.builds(Pair, LETTERS, st.lists(LETTERS, min_size=1, max_size=3).map(tuple)), max_size=20
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_TEXTS", 4)
    monkeypatch.setattr(engine, "MAX_CHARACTERS", 12)
    monkeypatch.setattr(engine, "MAX_AREA", 40)


@given(pairs=PAIRS)
def test_every_pair_is_in_exactly_one_chunk(small: None, pairs: list[Pair]) -> None:
    assert sorted(i for chunk, _ in chunk_pairs(pairs) for i in chunk) == list(range(len(pairs)))


@given(pairs=PAIRS)
def test_no_chunk_holds_more_than_it_may(small: None, pairs: list[Pair]) -> None:
    for chunk, kept in chunk_pairs(pairs):
        own = {text for i in chunk for text in texts_of_pair(pairs[i])}
        area = sum(len(pairs[i].candidate) * len(r) for i in chunk for r in pairs[i].references)
        if len(chunk) > 1:  # one pair is never split
            assert len(own) <= 4
            assert sum(map(len, own)) <= 12
            assert area <= 40
        assert len(kept) <= 4
        assert sum(map(len, kept)) <= 12


@given(pairs=PAIRS)
def test_only_texts_seen_before_and_still_to_come_are_kept(small: None, pairs: list[Pair]) -> None:
    cut = list(chunk_pairs(pairs))
    for number, (_, kept) in enumerate(cut):
        before = {t for chunk, _ in cut[:number] for i in chunk for t in texts_of_pair(pairs[i])}
        after = {t for chunk, _ in cut[number:] for i in chunk for t in texts_of_pair(pairs[i])}
        assert set(kept) <= before & after


def test_chunks_read_from_a_cache_are_small_until_the_model_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "MAX_CHARACTERS", 40)
    monkeypatch.setattr(engine, "MAX_SMALL_CHARACTERS", 10)
    monkeypatch.setattr(engine, "trim_memory", lambda: None)
    pairs = [Pair(f"can {i}", (f"ref {i}",)) for i in range(8)]
    for has_run, sizes in ((False, [1] * 8), (True, [4, 4])):
        monkeypatch.setattr(engine, "torch_is_loaded", lambda has_run=has_run: has_run)
        assert [len(chunk) for chunk, _ in chunk_pairs(pairs, cached=True)] == sizes
        assert [len(chunk) for chunk, _ in chunk_pairs(pairs)] == [4, 4]
        assert [len(chunk) for chunk, _ in chunk_pairs(pairs, no_model=True)] == [1] * 8
    monkeypatch.setattr(engine, "torch_is_loaded", lambda: False)
    cut = chunk_pairs(pairs, cached=True)
    assert len(next(cut)[0]) == 1
    monkeypatch.setattr(engine, "torch_is_loaded", lambda: True)
    assert [len(chunk) for chunk, _ in cut] == [4, 3]


def test_systems_on_one_test_set_share_its_references() -> None:
    pairs = [Pair(f"system {s} line {i}", (f"reference {i}",)) for s in range(3) for i in range(4)]
    ((chunk, _),) = chunk_pairs(pairs)
    assert [pairs[i].references[0] for i in chunk] == [
        f"reference {i}" for i in range(4) for _ in "abc"
    ]


def test_texts_of_a_later_chunk_keep_only_their_own_vectors() -> None:
    chunk = np.eye(6, dtype=np.float32)

    def slices(texts: Sequence[Units]) -> list[Embedded]:
        ones = np.ones(1)
        return [Embedded(u, chunk[i : i + 1], ones, ones) for i, u in enumerate(texts)]

    embedder, encoder = TextEmbedder(), OpenEncoder(slices, "slices")
    embedder.start_chunk({"new", "again"})
    embedder.embed(em.Words(), encoder, ["new", "again"])
    embedder.start_chunk({"newer", "again"})
    embedded = embedder.embed(em.Words(), encoder, ["newer", "again"])
    assert embedded["again"].vectors.base is None
    assert embedded["newer"].vectors.base is chunk
    assert "new" not in embedded
