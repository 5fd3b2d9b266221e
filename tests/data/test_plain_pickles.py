"""Pickles read as data."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch.data.catalogue.pickles import read_pickle

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(plain, st.integers(2, pickle.HIGHEST_PROTOCOL))
def test_plain_values_come_back(
    tmp_path_factory: pytest.TempPathFactory, value: Any, protocol: int
) -> None:
    file = tmp_path_factory.mktemp("p") / "data.pkl"
    file.write_bytes(pickle.dumps(value, protocol))
    assert read_pickle(file) == value


def test_a_list_that_occurs_twice_comes_back_twice(tmp_path: Path) -> None:
    shared = ["a"]
    (tmp_path / "data.pkl").write_bytes(pickle.dumps({"x": shared, "y": shared}))
    assert read_pickle(tmp_path / "data.pkl") == {"x": ["a"], "y": ["a"]}


@pytest.mark.parametrize("value", [Path("x"), print, {1, 2}, pytest.raises])
def test_anything_but_plain_values_is_refused(tmp_path: Path, value: Any) -> None:
    (tmp_path / "data.pkl").write_bytes(pickle.dumps([value]))
    with pytest.raises(ValueError, match=r"data\.pkl is not a pickle of plain values: it "):
        read_pickle(tmp_path / "data.pkl")
