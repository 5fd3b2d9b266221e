"""Each solver here breaks one promise, and the published check says which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.alignment.solver_contract import check_solver
from evenmatch.errors import InputError, PromiseError
from evenmatch.types import Alignment, Problem


def plans(problems: Sequence[Problem]) -> list[Alignment]:
    return em.Lsa()(problems)


@dataclass(frozen=True)
class CrashesOnNothing:
    """Answers a question nobody asked."""

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        return plans(problems) or [Alignment(np.zeros((1, 1)), np.zeros((1, 1)))]


@dataclass(frozen=True)
class Transposed:
    """Mixes up candidate and reference."""

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        return [Alignment(a.rows.T, a.cols.T) for a in plans(problems)]


@dataclass(frozen=True)
class TooFew:
    """Forgets the last problem of several."""

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        return plans(problems)[: max(1, len(problems) - 1)] if problems else []


@dataclass(frozen=True)
class Generous:
    """Gives every unit twice."""

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        return [Alignment(2 * a.rows, 2 * a.cols) for a in plans(problems)]


@dataclass(frozen=True)
class Debtor:
    """Gives less than nothing."""

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        return [Alignment(-a.rows, a.cols) for a in plans(problems)]


@dataclass(frozen=True)
class Lost:
    """Divides by nothing where there is no mass."""

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        with np.errstate(all="ignore"):
            return [
                Alignment(a.rows * (p.row_mass.sum() / p.row_mass.sum()), a.cols)
                for a, p in zip(plans(problems), problems, strict=True)
            ]


@dataclass(frozen=True)
class Scribbler:
    """Uses its input as scratch paper."""

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        found = plans(problems)
        for problem in problems:
            problem.similarity[...] = 0.0
        return found


@dataclass(frozen=True)
class Gossip:
    """Gives less the more problems there are."""

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        share = 1 / max(1, len(problems))
        return [Alignment(a.rows * share, a.cols * share) for a in plans(problems)]


@dataclass(frozen=True)
class Diagonal:
    """Aligns position by position."""

    exact: bool = False

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        eyes = [np.eye(*p.similarity.shape) for p in problems]
        return [Alignment(eye, eye, exact=self.exact) for eye in eyes]


@dataclass(frozen=True)
class Pessimist:
    """Finds the one-to-one alignment of least total, and calls it exact."""

    exact: bool = True

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        turned = [Problem(-p.similarity, p.row_mass, p.col_mass) for p in problems]
        return [Alignment(a.rows, a.cols, exact=self.exact) for a in plans(turned)]


BROKEN = (
    CrashesOnNothing,
    Transposed,
    TooFew,
    Generous,
    Debtor,
    Lost,
    Scribbler,
    Gossip,
    Diagonal,
    Pessimist,
)


@pytest.fixture(autouse=True)
def registered(registry: None) -> None:
    for make in BROKEN:
        em.register("alignment", make.__name__.lower())(make)


@pytest.mark.parametrize(
    ("solver", "promise", "complaint"),
    [
        (CrashesOnNothing(), "empty", "an empty list of problems gave an alignment"),
        (Transposed(), "empty", r"shape \(0, 3\) gave rows of shape \(3, 0\)"),
        (TooFew(), "shapes", "12 problems gave a list of length 11"),
        (Generous(), "shares", "gave a unit shares that sum to 2.0"),
        (Debtor(), "shares", "gave a share of -1.0"),
        (Lost(), "shares", "no mass at all gave a share that is not finite"),
        (Scribbler(), "inputs", "it changed the similarity"),
        (Gossip(), "alone", "solved together with others"),
        (Diagonal(), "permutation", "in another order is aligned differently"),
        (Pessimist(), "exact total", "was called exact"),
        (em.Hashed(), "registered", "registered as vectors"),
        (em.Lsa, "registered", r"pass an instance, Lsa\(\)"),
    ],
    ids=lambda value: type(value).__name__ if callable(value) else "",
)
def test_a_broken_solver_is_caught_by_name(solver: Any, promise: str, complaint: str) -> None:
    with pytest.raises(PromiseError, match=rf"breaks the promise '{promise}'.*{complaint}"):
        check_solver(solver)


def test_more_than_the_best_partner_offers_is_caught() -> None:
    # Rows and columns that sum to 1 cannot exceed the bound, so only a wrong sum can.
    with pytest.raises(PromiseError, match="breaks the promise 'greedy bound'"):
        check_solver(Generous(), excused=["shares"])


def test_a_solver_that_does_not_claim_to_be_exact_is_excused_from_the_total() -> None:
    check_solver(Pessimist(exact=False))


def test_a_promise_that_a_solver_does_not_make_can_be_excused() -> None:
    check_solver(Diagonal(), excused=["permutation"])
    with pytest.raises(InputError, match="no promise called 'permutations'"):
        check_solver(Diagonal(), excused=["permutations"])


@dataclass(frozen=True)
class Misunderstood:
    """A solver that returns arrays, or takes a single problem."""

    single: bool = False

    def __call__(self, given: Any) -> Any:
        return given.similarity if self.single else [each.similarity for each in given]


@pytest.mark.parametrize(
    ("single", "got"),
    [(False, "got list of ndarray"), (True, "but it raised AttributeError: 'list' object has no")],
)
def test_a_solver_of_another_form_is_told_what_to_return(
    registry: None, single: bool, got: str
) -> None:
    em.register("alignment", "misunderstood")(Misunderstood)
    message = f"take a list of problems and return a list of em.Alignment, {got}"
    with pytest.raises(em.PromiseError, match=message):
        em.check_solver(Misunderstood(single))
