from __future__ import annotations

import contextlib
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.errors import InputError, UnknownNameError
from evenmatch.protocols import Similarity
from evenmatch.registry import parts
from tests.support.parts import TABLE, Row, rows


def test_the_table_has_a_row_for_every_part() -> None:
    for kind in parts.KINDS:
        shown = {row.spec.split("(")[0] for row in TABLE.get(kind, ())}
        built_in = {
            n for n in em.names(kind) if parts.find_entry(n).factory.__module__[:10] == "evenmatch."
        }
        assert built_in <= shown, (
            f"add a row to tests/support/parts.py for {sorted(built_in - shown)}"
        )


@pytest.mark.parametrize("row", rows())
def test_a_spec_builds_what_it_came_from(row: Row) -> None:
    part = em.build(row.spec)
    assert em.build(em.spec(part)) == part
    assert hash(em.build(em.spec(part))) == hash(part)


@pytest.mark.parametrize("row", rows())
def test_a_part_survives_pickling(row: Row) -> None:
    part = em.build(row.spec)
    assert pickle.loads(pickle.dumps(part)) == part


@pytest.mark.parametrize("row", rows("units", "vectors", "similarity", "alignment", "scoring"))
def test_a_spec_is_written_the_way_it_is_read(row: Row) -> None:
    assert em.spec(em.build(row.spec)) == row.spec


def nested() -> st.SearchStrategy[Similarity]:
    leaves: st.SearchStrategy[Similarity] = st.sampled_from([em.Cosine(), em.Dot()])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(em.SameLabel),
            st.builds(em.Floor, inner, st.floats(-1, 1)),
        ),
        max_leaves=6,
    )


@given(nested(), st.floats(1e-3, 10), st.floats(-3, 0.99))
def test_nested_parts_come_back_from_their_spec(
    similarity: Similarity, epsilon: float, low: float
) -> None:
    metric = em.AlignMetric(
        units=em.Words(lower=True),
        vectors=em.Hashed(dim=7, weights=em.Idf("sha256:0"), mass=em.Norm()),
        similarity=similarity,
        alignment=em.Sinkhorn(epsilon=epsilon),
        scoring=em.Rescale(low),
    )
    assert em.build(em.spec(metric)) == metric


def test_equal_parts_have_equal_specs_for_any_number_type() -> None:
    numbers: list[Any] = [1, 1.0, np.float64(1), np.float32(1), np.int64(1)]
    specs = {em.spec(em.Sinkhorn(epsilon=number)) for number in numbers}
    assert specs == {"sinkhorn(epsilon=1.0)"}
    assert em.spec(em.build("sinkhorn(epsilon=1)")) == "sinkhorn(epsilon=1.0)"


def test_settings_at_their_default_are_left_out() -> None:
    assert em.spec(em.Hashed(dim=256)) == "hashed"


def test_a_spec_may_hold_spaces_quotes_and_lists_of_settings() -> None:
    assert em.build(" sinkhorn( epsilon = 0.5 ) ") == em.Sinkhorn(epsilon=0.5)
    assert em.build('transformer(model="it\'s")') == em.Transformer(model="it's")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot read the spec"),
        ("sinkhorn(", "was never closed"),
        ("lsa\x00", "null bytes"),
        ("\ud800", "cannot read the spec"),
        ("(" * 400 + ")" * 400, "too many nested parentheses"),
        ("lsa" + "+1" * 9000, "cannot read the spec"),
        ("x" * 20_001, "may have 20000 characters"),
        ("[lsa]", "is not a part"),
        ("lsa.real", "is not a part"),
        ("1", "is not a part"),
        ("lambda: lsa", "is not a part"),
        ("lsa(1)", "must be given by name, like lsa"),
        ("lsa(**{})", "once each, by name"),
        ("sinkhorn(epsilon=1, epsilon=2)", "once each, by name"),
        ("__import__('os')", "must be given by name"),
        ("floor(base=__import__('os').system('true'))", "only names, settings and constants"),
        ("sinkhorn(epsilon=1+1)", "only names, settings and constants"),
        ("sinkhorn(epsilon=f'{1}')", "only names, settings and constants"),
        ("sinkhorn(epsilon=1j)", "only names, settings and constants"),
        ("sinkhorn(epsilon=1e999)", "epsilon takes a number, got inf"),
        (f"sinkhorn(epsilon=1{'0' * 400})", "epsilon takes a number, got 1000"),
        ("sinkhorn(epsilon=True)", "epsilon takes a number, got True"),
        ("sinkhorn(epsilon=-1)", "epsilon must be above 0"),
        ("sinkhorn(iterations=0)", "iterations must be at least 1"),
        ("sinkhorn(epsilom=1)", "did you mean 'epsilon'"),
        ("hashed(dim=1.5)", "dim takes a whole number, got 1.5"),
        ("hashed(dim=0)", "dim must be at least 1"),
        ("rescale", "needs the setting 'low'"),
        ("rescale(low=1)", "low must be below 1"),
        (
            "rescale(low=0, base=lsa)",
            r"base takes a scoring part \(.*prf.*\), got the alignment part lsa",
        ),
        ("align(vectors=lsa)", "vectors takes a vectors part"),
        ("transformer(pool='sum')", "pool takes 'max' or 'mean', got 'sum'"),
        ("transformer(layer='first')", "layer takes a whole number or 'auto' or 'last'"),
        ("bertscore(idf=None)", "idf takes True or False or a string, got None"),
    ],
)
def test_a_bad_spec_raises_a_one_line_error(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        em.build(text)
    assert "\n" not in str(raised.value)


@given(st.text(max_size=60))
def test_no_text_makes_the_reader_crash(text: str) -> None:
    with contextlib.suppress(em.EvenmatchError):
        em.build(text)


@given(
    st.recursive(
        st.sampled_from(["1", "'a'", "lsa", "-2", "None"]),
        lambda inner: st.lists(inner, max_size=3).map(
            lambda items: f"floor(base=[{', '.join(items)}])"
        ),
        max_leaves=20,
    )
)
def test_no_settings_make_the_reader_crash(text: str) -> None:
    with pytest.raises(InputError):
        em.build(f"floor(low={text}, base={text})")


def test_an_unknown_name_error_offers_the_nearest_or_all_names() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'sinkhorn' or ") as raised:
        em.build("sinkorn")
    assert "\n" not in str(raised.value)
    with pytest.raises(UnknownNameError, match="unknown name 'qqqq'; known: align, "):
        em.build("qqqq")


def test_a_spec_must_be_a_string() -> None:
    with pytest.raises(InputError, match="a spec must be a string, got int"):
        em.build(3)  # type: ignore[arg-type]  # the wrong type is the point


@pytest.mark.parametrize("thing", [3, em.Lsa, object()])
def test_an_object_that_is_not_a_part_has_no_spec(thing: object) -> None:
    with pytest.raises(InputError, match="has no spec; register its class"):
        em.spec(thing)


def test_names_are_sorted_and_by_kind() -> None:
    assert em.names("scoring") == tuple(sorted(em.names("scoring")))
    assert {"prf", "rescale"} <= set(em.names("scoring")) <= set(em.names())
    with pytest.raises(UnknownNameError, match="there is no kind 'thing'; known: units"):
        em.names("thing")
