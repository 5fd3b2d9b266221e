"""`check_solver`: test that an alignment solver keeps the contract of solvers.

Authors of solvers call it in one line. The promises are listed at the end of the module.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator

import numpy as np

from evenmatch.protocols import Solver
from evenmatch.registry.contracts import Promise, check_promises
from evenmatch.types import Alignment, Problem

_TOLERANCE = 1e-6
_SHAPES = ((1, 1), (1, 5), (4, 1), (3, 3), (4, 6), (7, 3))


def check_solver(solver: Solver, *, excused: Collection[str] = ()) -> None:
    """Raise PromiseError for the first promise that the solver breaks.

    `excused` names promises that this solver is known not to keep. A one-to-one solver that does
    not reach the greatest total sets `exact=False` in its alignments and needs no excuse.

    >>> from evenmatch.alignment.assignment import Lsa
    >>> check_solver(Lsa())
    """
    check_promises(solver, "alignment", _PROMISES, excused)


def _check_call(solver: Solver) -> Iterator[str]:
    given = sample_problems()[:2]
    expected = "it must take a list of problems and return a list of em.Alignment"
    try:
        found: object = solver(given)
    except (AttributeError, TypeError, ValueError, LookupError) as error:
        yield f"{expected}, but it raised {type(error).__name__}: {error}"
        return
    if not isinstance(found, list) or not all(isinstance(each, Alignment) for each in found):
        kinds = {type(each).__name__ for each in found} if isinstance(found, list) else ()
        yield f"{expected}, got {type(found).__name__}{f' of {min(kinds)}' if kinds else ''}"


def sample_problems(seed: int = 0) -> list[Problem]:
    """Return random problems without ties, of several shapes, half of them with unequal masses."""
    random = np.random.default_rng(seed)
    problems = []
    for m, n in _SHAPES:
        problems.append(Problem(random.uniform(-1, 1, (m, n)), np.ones(m), np.ones(n)))
        masses = random.uniform(0.1, 3, m), random.uniform(0.1, 3, n)
        problems.append(Problem(random.uniform(0, 1, (m, n)), *masses))
    return problems


def _edge_cases() -> Iterator[tuple[str, Problem]]:
    yield "all similarities equal", Problem(np.full((3, 4), 0.5), np.ones(3), np.ones(4))
    yield "all similarities negative", Problem(np.full((2, 3), -1.0), np.ones(2), np.ones(3))
    yield "a unit without mass", Problem(np.eye(3), np.array([0.0, 1.0, 2.0]), np.ones(3))
    yield "no mass at all", Problem(np.eye(2), np.zeros(2), np.zeros(2))
    single = np.random.default_rng(0).uniform(-1, 1, (3, 2)).astype(np.float32)
    yield "single precision", Problem(single, np.ones(3, np.float32), np.ones(2, np.float32))


def _check_empty(solver: Solver) -> Iterator[str]:
    if list(solver([])):
        yield "an empty list of problems gave an alignment"
    for m, n in ((0, 0), (0, 3), (2, 0)):
        yield from _shape_errors(solver, Problem(np.zeros((m, n)), np.ones(m), np.ones(n)))


def _check_shapes(solver: Solver) -> Iterator[str]:
    given = sample_problems()
    found = solver(given)
    if not isinstance(found, list) or len(found) != len(given):
        yield f"{len(given)} problems gave a {type(found).__name__} of length {len(found)}"
    for problem in given:
        yield from _shape_errors(solver, problem)


def _shape_errors(solver: Solver, problem: Problem) -> Iterator[str]:
    alignment = solver([problem])[0]
    wanted = np.shape(problem.similarity)
    for name, plan in (("rows", alignment.rows), ("cols", alignment.cols)):
        if np.shape(plan) != wanted:
            yield f"a similarity of shape {wanted} gave {name} of shape {np.shape(plan)}"


def _check_shares(solver: Solver) -> Iterator[str]:
    for name, problem in (*(("a random problem", p) for p in sample_problems()), *_edge_cases()):
        alignment = solver([problem])[0]
        rows, cols = np.asarray(alignment.rows), np.asarray(alignment.cols)
        if not (np.isfinite(rows).all() and np.isfinite(cols).all()):
            yield f"{name} gave a share that is not finite"
        elif min(rows.min(), cols.min()) < 0:
            yield f"{name} gave a share of {min(rows.min(), cols.min())}"
        elif (most := max(rows.sum(1).max(), cols.sum(0).max())) > 1 + _TOLERANCE:
            yield f"{name} gave a unit shares that sum to {most}"


def _check_inputs(solver: Solver) -> Iterator[str]:
    for problem in sample_problems():
        arrays = (problem.similarity, problem.row_mass, problem.col_mass)
        before = [array.copy() for array in arrays]
        solver([problem])
        if not all(map(np.array_equal, before, arrays)):
            yield "it changed the similarity or a mass"


def _check_independence(solver: Solver) -> Iterator[str]:
    given = sample_problems()
    alone = [solver([p])[0] for p in given]
    for name, found in (
        ("together with others", solver(given)),
        ("in another order", solver(given[::-1])[::-1]),
        ("a second time", [solver([p])[0] for p in given]),
        ("by an equal solver", pickle.loads(pickle.dumps(solver))(given)),
    ):
        if not all(_same(a, b) for a, b in zip(alone, found, strict=True)):
            yield f"a problem solved {name} gave another alignment than alone"


def _same(a: Alignment, b: Alignment) -> bool:
    return bool(
        np.allclose(a.rows, b.rows, atol=_TOLERANCE, rtol=0)
        and np.allclose(a.cols, b.cols, atol=_TOLERANCE, rtol=0)
    )


def _check_permutation(solver: Solver) -> Iterator[str]:
    random = np.random.default_rng(1)
    for problem in sample_problems():
        m, n = problem.similarity.shape
        p, q = random.permutation(m), random.permutation(n)
        moved = Problem(problem.similarity[np.ix_(p, q)], problem.row_mass[p], problem.col_mass[q])
        plain, shuffled = solver([problem])[0], solver([moved])[0]
        back = Alignment(plain.rows[np.ix_(p, q)], plain.cols[np.ix_(p, q)])
        if not _same(back, shuffled):
            yield f"a {m}×{n} problem with its units in another order is aligned differently"


def _check_greedy_bound(solver: Solver) -> Iterator[str]:
    for problem in sample_problems():
        similarity = abs(problem.similarity)
        found = solver([Problem(similarity, problem.row_mass, problem.col_mass)])[0]
        gained, covered = (found.rows * similarity).sum(1), (found.cols * similarity).sum(0)
        if (gained > similarity.max(1) + _TOLERANCE).any():
            yield "a candidate unit gained more than its best partner offers"
        if (covered > similarity.max(0) + _TOLERANCE).any():
            yield "a reference unit gained more than its best partner offers"


def _check_exact_total(solver: Solver) -> Iterator[str]:
    from scipy.optimize import linear_sum_assignment

    for problem in sample_problems():
        similarity = np.asarray(problem.similarity)
        m, n = similarity.shape
        found = solver([Problem(similarity, np.ones(m), np.ones(n))])[0]
        if found.exact and _is_one_to_one(found):
            best = similarity[linear_sum_assignment(similarity, maximize=True)].sum()
            total = (found.rows * similarity).sum()
            if abs(best - total) > _TOLERANCE:
                yield f"a total of {total:.6f} was called exact, but {best:.6f} is possible"


def _is_one_to_one(alignment: Alignment) -> bool:
    plan = np.asarray(alignment.rows)
    return bool(
        np.allclose(plan, alignment.cols, atol=_TOLERANCE)
        and (np.isclose(plan, 0, atol=_TOLERANCE) | np.isclose(plan, 1, atol=_TOLERANCE)).all()
        and (plan.sum(0) <= 1 + _TOLERANCE).all()
        and (plan.sum(1) <= 1 + _TOLERANCE).all()
    )


_PROMISES = (
    Promise("call", "it takes problems and returns alignments", _check_call),
    Promise("empty", "an empty list of problems and empty sides are solved too", _check_empty),
    Promise("shapes", "one alignment per problem, of the similarity's shape", _check_shapes),
    Promise("shares", "shares are not negative and sum to at most 1 per unit", _check_shares),
    Promise("inputs", "similarities and masses are not changed", _check_inputs),
    Promise("alone", "an alignment depends on its own problem only", _check_independence),
    Promise("permutation", "permuting the units permutes the alignment", _check_permutation),
    Promise(
        "greedy bound",
        "without negative similarities no unit gains more than with its best partner",
        _check_greedy_bound,
    ),
    Promise(
        "exact total", "an exact one-to-one alignment has the greatest total", _check_exact_total
    ),
)
