from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.registry import make_signature
from evenmatch.types import Alignment, Problem


@dataclass(frozen=True)
class Lenient:
    """A reducer for these tests."""

    slack: float = 0.0

    def __call__(self, *_: object) -> em.Score:
        return em.Score(self.slack)


@pytest.fixture
def lenient(registry: None) -> None:
    em.register("scoring", "lenient")(Lenient)


def test_a_taken_name_is_refused(registry: None) -> None:
    with pytest.raises(InputError, match=r"the name 'lsa' is taken by evenmatch\.alignment"):
        em.register("scoring", "lsa")(Lenient)


def test_a_module_that_is_loaded_again_may_register_again(lenient: None) -> None:
    em.register("scoring", "lenient")(Lenient)
    assert em.build("lenient(slack=0.5)") == Lenient(0.5)


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [("thing", "x", "no kind of part called 'thing'"), ("alignment", "a b", "a plain identifier")],
)
def test_a_bad_registration_is_refused(kind: str, name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        em.register(kind, name)


def test_a_class_that_is_not_frozen_is_not_registered(registry: None) -> None:
    @dataclass
    class Loose:
        size: int = 1

    with pytest.raises(InputError, match="the class of 'loose' must be a frozen dataclass"):
        em.register("alignment", "loose")(Loose)
    assert "loose" not in em.names()


def test_a_factory_without_annotations_takes_settings(registry: None) -> None:
    def make(slack=0.25):  # type: ignore[no-untyped-def]  # a function without annotations
        return Lenient(slack)

    em.register("scoring", "untyped")(make)
    assert em.build("untyped(slack=0.5)") == Lenient(0.5)


def test_a_part_created_in_python_is_checked_like_a_spec() -> None:
    with pytest.raises(InputError, match="Transformer's long takes 'truncate' or"):
        em.Transformer(long="x")  # type: ignore[arg-type]  # the wrong value is the point
    with pytest.raises(InputError, match="Transformer's layer takes a whole number"):
        em.Transformer(layer=True)
    assert em.Transformer(layer=np.int64(3)).layer == 3  # type: ignore[arg-type]  # a numpy integer is accepted


def test_a_signature_shows_a_part_without_a_spec_as_its_class() -> None:
    def solve(problems: Sequence[Problem]) -> list[Alignment]:
        return em.Lsa()(problems)

    metric = em.AlignMetric(vectors=em.Hashed(), alignment=solve)
    assert make_signature(metric).startswith("align(vectors=hashed, alignment=<function>)")
    assert em.score(["a b"], ["b a"], metric).mean == pytest.approx(1.0)
    with pytest.raises(InputError, match="function has no spec"):
        em.spec(metric)


def test_infinity_cannot_be_written_in_a_spec(lenient: None) -> None:
    metric = dataclasses.replace(em.AlignMetric(), scoring=Lenient(float("inf")))
    with pytest.raises(InputError, match="a spec cannot contain inf"):
        em.spec(metric)
