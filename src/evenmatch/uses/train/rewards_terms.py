"""The expression a reward is: metrics, shapes and numbers, joined by operators and clipped."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from evenmatch.errors import InputError
from evenmatch.types import Metric, Run
from evenmatch.uses.train.rewards_shape import Length, Repetition

OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


class Term(Protocol):
    """A part of the expression: worth a number in each row, once its leaves were asked."""

    def worth(self, judged: Mapping[Leaf, Sequence[float]], row: int, /) -> float: ...
    def written(self) -> str: ...


@dataclass(frozen=True)
class Judged:
    """A metric, and how its work is carried out."""

    metric: Metric
    run: Run = Run()

    def worth(self, judged: Mapping[Leaf, Sequence[float]], row: int) -> float:
        return judged[self][row]

    def written(self) -> str:
        return f"reward({self.metric.signature.split(' · ')[0]})"


@dataclass(frozen=True)
class Constant:
    """A number that stands for itself."""

    number: float

    def worth(self, judged: Mapping[Leaf, Sequence[float]], row: int) -> float:
        return self.number

    def written(self) -> str:
        return repr(self.number)


@dataclass(frozen=True)
class Joined:
    """Two terms and the operator between them."""

    operator: str
    left: Term
    right: Term

    def worth(self, judged: Mapping[Leaf, Sequence[float]], row: int) -> float:
        join = OPERATORS[self.operator]
        return float(join(self.left.worth(judged, row), self.right.worth(judged, row)))

    def written(self) -> str:
        return f"({self.left.written()} {self.operator} {self.right.written()})"


@dataclass(frozen=True)
class Clipped:
    """A term that never leaves a range."""

    term: Term
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError(f"cannot clip to {self.low}..{self.high}; the lower bound comes first")

    def worth(self, judged: Mapping[Leaf, Sequence[float]], row: int) -> float:
        return min(max(self.term.worth(judged, row), self.low), self.high)

    def written(self) -> str:
        return f"clip({self.term.written()}, {self.low!r}, {self.high!r})"


# What looks at texts; everything else works on the numbers these give.
Leaf: TypeAlias = Judged | Length | Repetition


def leaves(term: Term) -> list[Leaf]:
    """The metrics and shapes of an expression, each once."""
    match term:
        case Judged() | Length() | Repetition():
            return [term]
        case Joined(left=left, right=right):
            return list(dict.fromkeys([*leaves(left), *leaves(right)]))
        case Clipped(term=inner):
            return leaves(inner)
    return []
