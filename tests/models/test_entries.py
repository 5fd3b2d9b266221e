"""States as bytes and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch.models.backbone import HiddenStates
from evenmatch.models.embedding_cache import states_from_bytes, states_to_bytes
from evenmatch.types import Array


def made(vectors: Array, flags: frozenset[str] = frozenset()) -> HiddenStates:
    n = len(vectors)
    spans = np.arange(2 * n, dtype=np.int32).reshape(n, 2)
    special = {0: "[CLS]", n - 1: "[SEP]"} if n > 1 else {}
    return HiddenStates("a text", np.arange(n) * 7, spans, special, {3: vectors}, flags)


@given(
    st.integers(0, 12),
    st.integers(1, 20),
    st.integers(0, 2**32 - 1),
    st.sampled_from([(), ("truncated",), ("unknown_only", "truncated")]),
)
def test_the_exact_form_keeps_every_bit(n: int, d: int, seed: int, flags: tuple[str, ...]) -> None:
    vectors = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
    states = made(vectors, frozenset(flags))
    back = states_from_bytes(["a text"], 3, [states_to_bytes(states, 3, exact=True)])[0]
    assert back.layers[3].tobytes() == vectors.tobytes()
    assert back.token_ids.tolist() == states.token_ids.tolist()
    assert back.spans.tolist() == states.spans.tolist()
    assert (back.special_tokens, back.flags, back.text) == (
        states.special_tokens,
        states.flags,
        "a text",
    )


@given(st.integers(1, 12), st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_the_compact_form_keeps_direction_and_length(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = (rng.standard_normal((n, d)) * rng.lognormal(size=(n, 1))).astype(np.float32)
    back = states_from_bytes(["a text"], 3, [states_to_bytes(made(vectors), 3, exact=False)])[
        0
    ].layers[3]
    step = np.abs(vectors).max(1, keepdims=True) / 32767
    assert (np.abs(back - vectors) <= 0.51 * step + 1e-7).all()


def test_the_compact_form_is_stable_when_written_again() -> None:
    vectors = np.random.default_rng(0).standard_normal((5, 384)).astype(np.float32)
    once = states_to_bytes(made(vectors), 3, exact=False)
    twice = states_to_bytes(states_from_bytes(["a text"], 3, [once])[0], 3, exact=False)
    a, b = (states.layers[3] for states in states_from_bytes(["", ""], 3, [once, twice]))
    assert np.abs(a - b).max() < 1e-6


@pytest.mark.parametrize("exact", [True, False])
def test_a_vector_of_zeros_stays_zero(exact: bool) -> None:
    states = made(np.zeros((2, 4), dtype=np.float32))
    assert (
        not states_from_bytes([""], 3, [states_to_bytes(states, 3, exact=exact)])[0].layers[3].any()
    )


def test_the_compact_form_takes_half_the_room() -> None:
    states = made(np.ones((27, 384), dtype=np.float32))
    assert len(states_to_bytes(states, 3, exact=False)) < 0.55 * len(
        states_to_bytes(states, 3, exact=True)
    )


@pytest.mark.parametrize("exact", [True, False])
def test_texts_read_together_are_what_each_is_alone(exact: bool) -> None:
    rng = np.random.default_rng(1)
    sizes = [3, 0, 1, *range(40), 2]
    texts = [f"text {i}" for i in range(len(sizes))]
    data = [
        states_to_bytes(made(rng.standard_normal((n, 8)).astype(np.float32)), 3, exact=exact)
        for n in sizes
    ]
    for text, own, together in zip(texts, data, states_from_bytes(texts, 3, data), strict=True):
        (alone,) = states_from_bytes([text], 3, [own])
        assert together.text == text
        assert together.layers[3].tobytes() == alone.layers[3].tobytes()
        assert together.token_ids.tolist() == alone.token_ids.tolist()
        assert together.spans.tolist() == alone.spans.tolist()
        assert together.special_tokens == alone.special_tokens
