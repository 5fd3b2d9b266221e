"""The nouns of evenmatch: what flows from one part to the next, and what a part is.

Rows are the candidate's units, columns the reference's; a similarity is higher for closer units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from evenmatch.protocols import RemoteExecutor

# A numpy array; or a torch tensor where a caller wants gradients (only *, / and .sum are used).
Array: TypeAlias = Any


NO_FLAGS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pair:
    """What is judged: one candidate, its references, and what it was made from."""

    candidate: str
    references: tuple[str, ...]
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Units:
    """One text, cut: a unit is a set of words.

    With `by_model` the cutting is left to the encoder's own tokenizer (see `units.pieces`);
    `marks` then says whether its opening and closing tokens are units as well, and `closing`
    or `opening` that the first token after the text, or the first of all, is the only unit.
    """

    text: str
    words: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    labels: tuple[str, ...] = ()
    by_model: bool = False
    special_tokens: bool = False
    closing: bool = False
    opening: bool = False
    weights: tuple[float, ...] = ()  # how much each unit counts for itself, or all alike
    flags: frozenset[str] = NO_FLAGS

    @property
    def items(self) -> tuple[str, ...]:
        """Each unit as readable text."""
        return tuple(" ".join(self.words[i] for i in group) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Tree:
    """A parse, of constituents or of dependencies alike.

    `label` is the phrase's label or the relation to the head, `head` the head word's index, and
    `words` are the indexes of all words under this node.
    """

    label: str
    head: int
    words: tuple[int, ...]
    children: tuple[Tree, ...] = ()


@dataclass(frozen=True, slots=True)
class Parse:
    """One text, parsed: its words, their tags, and a tree for each sentence."""

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    tags: tuple[str, ...]
    trees: tuple[Tree, ...]
    is_constituency: bool = False  # trees of constituents, not of dependencies


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """Units with their vectors and two kinds of importance."""

    units: Units
    vectors: Array
    weights: Array  # how much a unit counts in the mean
    mass: Array  # how much of it there is to transport
    flags: frozenset[str] = NO_FLAGS


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What a solver is given: a similarity matrix and the mass of its rows and columns."""

    similarity: Array
    row_mass: Array
    col_mass: Array


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Where each unit's credit comes from.

    `rows[i]` shares out candidate unit i over the reference units and sums to at most 1;
    `cols[:, j]` does the same for reference unit j.
    """

    rows: Array
    cols: Array
    exact: bool = True
    steps: int = 1


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one candidate; `value` is the headline."""

    value: float
    precision: float | None = None
    recall: float | None = None
    flags: frozenset[str] = NO_FLAGS


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a corpus in input order, with the recipe that made them."""

    segments: tuple[Score, ...]
    signature: str
    corpus: float | None = None

    @property
    def mean(self) -> float:
        """The mean of `value` over segments; 0.0 where there are none."""
        return sum(s.value for s in self.segments) / len(self.segments) if self.segments else 0.0


@dataclass(frozen=True, slots=True)
class Cache:
    """Where vectors are kept between runs, in which form, and how many bytes of them at most.

    `folder` '' is EVENMATCH_CACHE, or a folder in the user's cache. The compact form takes half
    the room and moves a score by less than 1e-5, the same on a hit and on a miss; `exact` keeps
    every bit.
    """

    folder: str = ""
    exact: bool = False
    max_bytes: int = 4 << 30


@dataclass(frozen=True, slots=True)
class Run:
    """How a call is carried out: nothing here changes what a metric means.

    `batch_tokens` bounds one forward pass; `threads` 0 leaves torch's own setting;
    `progress` is called with (done, total) pairs; `on` does the scoring in place of this process.
    """

    device: str = "cpu"
    threads: int = 0
    batch_tokens: int = 1024
    cache: Cache | None = None
    progress: Callable[[int, int], None] | None = None
    on: RemoteExecutor | None = None
