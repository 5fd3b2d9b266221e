"""A score depends on its pair alone: not on batch size, order, neighbours or threads."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.scoring import engine
from evenmatch.scoring.metric import score_metrics
from evenmatch.types import Pair, Run
from tests.support.strategies import sentences

NEAR = 1e-6
NAMES = ["bertscore", "f_disc", "f_cont"]
TEXTS = [
    "the cat sat on the mat",
    "a cat sat on a mat",
    "a dog barked at the postman all morning long",
    "rain",
    "",
    "the the the cat",
    "Prices fell by 3.5% in 2021.",
    "un café naïf 😀",
    "It was the best of times, it was the worst of times, it was the age of wisdom. " * 4,
]


def values(
    candidates: Sequence[str], references: Sequence[str], **run: Any
) -> dict[str, list[float]]:
    found = em.score(candidates, references, NAMES, **run)
    return {name: [s.value for s in scores.segments] for name, scores in found.items()}


@pytest.fixture(scope="module")
def pairs() -> tuple[list[str], list[str]]:
    both = [(c, r) for c in TEXTS for r in TEXTS]
    return [c for c, _ in both], [r for _, r in both]


@pytest.fixture(scope="module")
def plain(pairs: tuple[list[str], list[str]]) -> dict[str, list[float]]:
    return values(*pairs)


@pytest.mark.model
@pytest.mark.parametrize(
    "name",
    [
        *NAMES,
        "lisa_rowmask",
        "lisa_recursive",
        "lisa_topk",
        "lisa_auction",
        "wmt_blend",
        "mqm_blend",
    ],
)
def test_a_compact_cache_changes_a_score_by_less_than_1e_5(
    pairs: tuple[list[str], list[str]], name: str, tmp_path: Path
) -> None:
    plain, miss, hit = (
        [s.value for s in em.score(*pairs, name, cache=cache).segments]
        for cache in (None, str(tmp_path), str(tmp_path))
    )
    assert hit == miss
    assert hit == pytest.approx(plain, abs=1e-5)


@pytest.mark.model
def test_metrics_that_need_exact_vectors_do_not_share_compact_ones(
    pairs: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    names = ["bertscore", "lisa_recursive"]
    together = em.score(*pairs, names, cache=str(tmp_path))
    for name in names:
        alone = em.score(*pairs, name, cache=str(tmp_path))
        assert together[name].segments == alone.segments
        assert together[name].signature == alone.signature
    assert "vectors compact" in together["bertscore"].signature
    assert "vectors compact" not in together["lisa_recursive"].signature


@pytest.mark.model
@pytest.mark.parametrize("batch_tokens", [1, 37, 300, 20_000])
def test_batch_size_does_not_matter(
    pairs: tuple[list[str], list[str]], plain: dict[str, list[float]], batch_tokens: int
) -> None:
    found = values(*pairs, batch_tokens=batch_tokens)
    for name in NAMES:
        assert found[name] == pytest.approx(plain[name], abs=NEAR)


@pytest.mark.model
def test_the_number_of_threads_does_not_matter(
    pairs: tuple[list[str], list[str]], plain: dict[str, list[float]]
) -> None:
    found = values(pairs[0][:20], pairs[1][:20], threads=2)
    for name in NAMES:
        assert found[name] == pytest.approx(plain[name][:20], abs=NEAR)


@pytest.mark.model
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 30), tokens=st.integers(1, 2000))
@settings(max_examples=8)
def test_order_and_neighbours_do_not_matter(
    pairs: tuple[list[str], list[str]],
    plain: dict[str, list[float]],
    seed: int,
    count: int,
    tokens: int,
) -> None:
    chosen = random.Random(seed).choices(range(len(pairs[0])), k=count)
    found = values(
        [pairs[0][i] for i in chosen], [pairs[1][i] for i in chosen], batch_tokens=tokens
    )
    for name in NAMES:
        assert found[name] == pytest.approx([plain[name][i] for i in chosen], abs=NEAR)


@pytest.mark.model
def test_each_pair_alone_scores_as_among_all(
    pairs: tuple[list[str], list[str]], plain: dict[str, list[float]]
) -> None:
    for i in range(0, len(pairs[0]), 5):
        alone = values(pairs[0][i : i + 1], pairs[1][i : i + 1])
        for name in NAMES:
            assert alone[name] == pytest.approx([plain[name][i]], abs=NEAR)


@pytest.mark.model
def test_metrics_together_score_as_each_alone(
    pairs: tuple[list[str], list[str]], plain: dict[str, list[float]]
) -> None:
    many = [*NAMES, "bertscore(layer=6)", "f_disc(layer=0)", "align(vectors=hashed)"]
    together = em.score(*pairs, many)
    for name in many:
        alone = em.score(*pairs, name)
        assert together[name].signature == alone.signature
        assert [s.value for s in together[name].segments] == pytest.approx(
            [s.value for s in alone.segments], abs=NEAR
        )


@given(
    st.lists(
        st.tuples(sentences(), st.lists(sentences(), min_size=1, max_size=3)),
        min_size=1,
        max_size=8,
    ),
    st.randoms(use_true_random=False),
)
def test_any_pairs_in_any_order_score_the_same(
    rows: list[tuple[str, list[str]]], shuffler: random.Random
) -> None:
    order = list(range(len(rows)))
    shuffler.shuffle(order)
    metric = em.build("align(vectors=hashed(mass=norm), alignment=emd)")
    pairs = [Pair(candidate, tuple(references)) for candidate, references in rows]
    plain = metric(pairs).segments
    moved = metric([pairs[i] for i in order]).segments
    assert list(moved) == [plain[i] for i in order]


@given(st.lists(st.tuples(sentences(), sentences()), min_size=1, max_size=8), st.integers(1, 30))
@settings(max_examples=30)
def test_the_size_of_a_chunk_does_not_matter(rows: list[tuple[str, str]], size: int) -> None:
    pairs = [Pair(c, (r,)) for c, r in rows]
    metric = em.build("align(vectors=hashed, alignment=lsa)")
    plain = score_metrics([metric], pairs, Run())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "MAX_CHARACTERS", size)
        assert score_metrics([metric], pairs, Run()) == plain
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "MAX_AREA", size)
        patch.setattr(engine, "MAX_TEXTS", 3)
        assert score_metrics([metric], pairs, Run()) == plain
