from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

import evenmatch as em
from evenmatch.errors import InputError, PromiseError
from evenmatch.registry.contracts import check_promises


@dataclass(frozen=True)
class Forgetful:
    """A reducer whose spec does not say everything about it."""

    hidden: int = dataclasses.field(default=0, init=False)


@pytest.mark.parametrize(
    ("part", "promise"),
    [
        (em.Lsa, "registered"),
        (em.Lsa(), "registered"),
        (object(), "registered"),
    ],
)
def test_a_part_is_held_to_its_kind(part: object, promise: str) -> None:
    with pytest.raises(PromiseError, match=f"breaks the promise '{promise}'"):
        check_promises(part, "scoring", ())


def test_a_part_that_compares_by_identity_breaks_its_promise_to_pickle(registry: None) -> None:
    em.register("scoring", "ghost")(Ghost)
    with pytest.raises(PromiseError, match="breaks the promise 'pickles'"):
        check_promises(Ghost(), "scoring", ())


@dataclass(frozen=True, eq=False)
class Ghost:
    """A reducer that no copy of it equals."""


def test_a_part_whose_spec_says_too_little_is_caught(registry: None) -> None:
    em.register("scoring", "forgetful")(Forgetful)
    part = Forgetful()
    object.__setattr__(part, "hidden", 1)
    with pytest.raises(PromiseError, match="breaks the promise 'spec'"):
        check_promises(part, "scoring", ())


def test_a_part_that_can_be_changed_is_caught(registry: None) -> None:
    em.register("scoring", "soft")(Soft)
    with pytest.raises(PromiseError, match=r"breaks the promise 'frozen'.*size can be changed"):
        check_promises(Soft(), "scoring", ())


@dataclass(unsafe_hash=True)
class Soft:
    """A reducer with a setting that can be set."""

    size: int = 1


def test_an_excuse_must_name_a_promise() -> None:
    with pytest.raises(InputError, match="no promise called 'frosen'; known: registered, frozen"):
        check_promises(em.Prf(), "scoring", (), excused=["frosen"])


def test_what_is_excused_is_not_asked(registry: None) -> None:
    em.register("scoring", "ghost")(Ghost)
    check_promises(Ghost(), "scoring", (), excused=["pickles", "spec"])
