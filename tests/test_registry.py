from __future__ import annotations

import contextlib
import dataclasses
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.errors import InputError, MissingExtraError, UnknownNameError
from evenmatch.registry import entries, signature
from evenmatch.types import Alignment, Problem, Similarity
from tests.parts import TABLE, Row, rows


def test_the_table_has_a_row_for_every_part_there_is() -> None:
    for kind in entries.KINDS:
        shown = {row.spec.split("(")[0] for row in TABLE.get(kind, ())}
        built_in = {
            n for n in em.names(kind) if entries.entry(n).make.__module__[:10] == "evenmatch."
        }
        assert built_in <= shown, f"add a row to tests/parts.py for {sorted(built_in - shown)}"


@pytest.mark.parametrize("row", rows())
def test_a_spec_builds_what_it_came_from(row: Row) -> None:
    part = em.build(row.spec)
    assert em.build(em.spec(part)) == part
    assert hash(em.build(em.spec(part))) == hash(part)


@pytest.mark.parametrize("row", rows())
def test_a_part_survives_pickling(row: Row) -> None:
    part = em.build(row.spec)
    assert pickle.loads(pickle.dumps(part)) == part


@pytest.mark.parametrize("row", rows("splitter", "encoder", "similarity", "solver", "reducer"))
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


def test_equal_parts_have_equal_specs_whatever_number_they_were_given() -> None:
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
        ("[lsa]", "names no part"),
        ("lsa.real", "names no part"),
        ("1", "names no part"),
        ("lambda: lsa", "names no part"),
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
        ("rescale(low=0, base=lsa)", r"base takes a reducer \(.*prf.*\), got the solver lsa"),
        ("align(vectors=lsa)", "vectors takes an encoder"),
        ("transformer(pool='sum')", "pool takes 'max' or 'mean', got 'sum'"),
        ("transformer(layer='first')", "layer takes a whole number or 'auto' or 'last'"),
        ("bertscore(idf=None)", "idf takes True or False or a string, got None"),
    ],
)
def test_a_bad_spec_is_refused_in_words(text: str, words: str) -> None:
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


def test_an_unknown_name_comes_with_the_nearest_and_all_known() -> None:
    with pytest.raises(
        UnknownNameError, match=r"did you mean 'sinkhorn'\? known: align, "
    ) as raised:
        em.build("sinkorn")
    assert "\n" not in str(raised.value)


def test_what_is_no_string_is_no_spec() -> None:
    with pytest.raises(InputError, match="a spec is a string, got int"):
        em.build(3)  # type: ignore[arg-type]  # the wrong type is the point


@pytest.mark.parametrize("thing", [3, em.Lsa, object()])
def test_what_is_no_part_has_no_spec(thing: object) -> None:
    with pytest.raises(InputError, match="has no spec; register its class"):
        em.spec(thing)


def test_infinity_cannot_be_written_in_a_spec(lenient: None) -> None:
    metric = dataclasses.replace(em.AlignMetric(), scoring=Lenient(float("inf")))
    with pytest.raises(InputError, match="a spec cannot hold inf"):
        em.spec(metric)


def test_names_are_sorted_and_by_kind() -> None:
    assert em.names("reducer") == tuple(sorted(em.names("reducer")))
    assert {"prf", "rescale"} <= set(em.names("reducer")) <= set(em.names())
    with pytest.raises(UnknownNameError, match="there is no kind 'thing'; known: splitter"):
        em.names("thing")


@dataclass(frozen=True)
class Lenient:
    """A reducer for these tests."""

    slack: float = 0.0

    def __call__(self, *_: object) -> em.Score:
        return em.Score(self.slack)


@pytest.fixture
def lenient(registry: None) -> None:
    em.register("reducer", "lenient")(Lenient)


def test_a_taken_name_is_refused(registry: None) -> None:
    with pytest.raises(InputError, match=r"the name 'lsa' is taken by evenmatch\.alignment"):
        em.register("reducer", "lsa")(Lenient)


def test_a_module_that_is_loaded_again_may_register_again(lenient: None) -> None:
    em.register("reducer", "lenient")(Lenient)
    assert em.build("lenient(slack=0.5)") == Lenient(0.5)


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [("thing", "x", "no kind of part called 'thing'"), ("solver", "a b", "a plain identifier")],
)
def test_a_bad_registration_is_refused(kind: str, name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        em.register(kind, name)


def test_a_part_that_could_not_be_compared_is_not_registered(registry: None) -> None:
    @dataclass
    class Loose:
        size: int = 1

    with pytest.raises(InputError, match="the class of 'loose' must be a frozen dataclass"):
        em.register("solver", "loose")(Loose)
    assert "loose" not in em.names()


def test_a_maker_without_types_still_takes_settings(registry: None) -> None:
    def make(slack=0.25):  # type: ignore[no-untyped-def]  # what a hurried author writes
        return Lenient(slack)

    em.register("reducer", "hurried")(make)
    assert em.build("hurried(slack=0.5)") == Lenient(0.5)


def test_a_package_that_cannot_be_loaded_hides_no_other(
    registry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("broken", "no_such_module_anywhere", entries.GROUP)
    monkeypatch.setattr(entries, "_entry_points", lambda: {"broken": point})
    assert "lsa" in em.names()
    with pytest.raises(MissingExtraError, match="'broken' cannot be loaded from no_such_module"):
        em.build("broken")
    with pytest.raises(UnknownNameError, match="nothing is called 'brken'"):
        em.build("brken")


def test_a_part_by_hand_is_checked_like_one_by_spec() -> None:
    with pytest.raises(InputError, match="Transformer's long takes 'truncate' or"):
        em.Transformer(long="x")  # type: ignore[arg-type]  # the wrong value is the point
    with pytest.raises(InputError, match="Transformer's layer takes a whole number"):
        em.Transformer(layer=True)
    assert em.Transformer(layer=np.int64(3)).layer == 3  # type: ignore[arg-type]  # numpy's will do


def test_a_signature_shows_a_part_without_a_spec_as_its_class() -> None:
    def solve(problems: Sequence[Problem]) -> list[Alignment]:
        return em.Lsa()(problems)

    metric = em.AlignMetric(vectors=em.Hashed(), alignment=solve)
    assert signature(metric).startswith("align(vectors=hashed, alignment=<function>)")
    assert em.score(["a b"], ["b a"], metric).mean == pytest.approx(1.0)
    with pytest.raises(InputError, match="function has no spec"):
        em.spec(metric)
