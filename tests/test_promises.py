from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

import evenmatch as em
from evenmatch.errors import InputError, PromiseError
from evenmatch.registry.contracts import check_promises


@dataclass(frozen=True)
class Incomplete:
    """A reducer with a field that its spec omits."""

    hidden: int = dataclasses.field(default=0, init=False)


@pytest.mark.parametrize(
    ("part", "promise"),
    [
        (em.Lsa, "registered"),
        (em.Lsa(), "registered"),
        (object(), "registered"),
    ],
)
def test_a_part_must_be_registered_as_its_kind(part: object, promise: str) -> None:
    with pytest.raises(PromiseError, match=f"breaks the promise '{promise}'"):
        check_promises(part, "scoring", ())


def test_a_part_that_compares_by_identity_fails_pickling(registry: None) -> None:
    em.register("scoring", "unequal")(Unequal)
    with pytest.raises(PromiseError, match="breaks the promise 'pickles'"):
        check_promises(Unequal(), "scoring", ())


@dataclass(frozen=True, eq=False)
class Unequal:
    """A reducer that differs from every copy of itself."""


def test_a_part_with_an_incomplete_spec_is_rejected(registry: None) -> None:
    em.register("scoring", "incomplete")(Incomplete)
    part = Incomplete()
    object.__setattr__(part, "hidden", 1)
    with pytest.raises(PromiseError, match="breaks the promise 'spec'"):
        check_promises(part, "scoring", ())


def test_a_part_that_can_be_changed_is_rejected(registry: None) -> None:
    em.register("scoring", "mutable")(Mutable)
    with pytest.raises(PromiseError, match=r"breaks the promise 'frozen'.*size can be changed"):
        check_promises(Mutable(), "scoring", ())


@dataclass(unsafe_hash=True)
class Mutable:
    """A reducer with a setting that can be changed."""

    size: int = 1


def test_an_excused_promise_must_exist() -> None:
    with pytest.raises(InputError, match="no promise called 'frosen'; known: registered, frozen"):
        check_promises(em.Prf(), "scoring", (), excused=["frosen"])


def test_an_excused_promise_is_not_checked(registry: None) -> None:
    em.register("scoring", "unequal")(Unequal)
    check_promises(Unequal(), "scoring", (), excused=["pickles", "spec"])
