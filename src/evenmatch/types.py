"""The nouns of evenmatch: what flows from one part to the next, and what a part is.

Rows are the candidate's units, columns the reference's; a similarity is higher for closer units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

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
    marks: bool = False
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
    phrases: bool = False  # trees of constituents, not of dependencies


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
    most_bytes: int = 4 << 30


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
    on: Elsewhere | None = None


@runtime_checkable
class Elsewhere(Protocol):
    """Scores pairs in other processes: each metric's scores, and the counts of `Totalled` ones."""

    def share_out(
        self, metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run, /
    ) -> list[tuple[Scores, Array | None]]: ...


class Splitter(Protocol):
    """Cuts a text into units."""

    def __call__(self, text: str, /) -> Units: ...


@runtime_checkable
class Cutting(Protocol):
    """A splitter that cuts many texts faster than one by one."""

    def cut(self, texts: Sequence[str], /) -> list[Units]: ...


class Parser(Protocol):
    """Parses texts; one parse per text, in order. `identity` names it, version and all."""

    def __call__(self, texts: Sequence[str], /) -> list[Parse]: ...
    def identity(self) -> str: ...


class Encoder(Protocol):
    """Gives units their vectors; one result per input, in order."""

    def __call__(self, batch: Sequence[Units], /) -> list[Embedded]: ...


class Similarity(Protocol):
    """Compares every candidate unit with every reference unit.

    Weights and mass have no part in it: metrics that differ in nothing else share its outcome.
    """

    def __call__(self, x: Embedded, y: Embedded, /) -> Array: ...


class Solver(Protocol):
    """Aligns; one alignment per problem, in order."""

    def __call__(self, problems: Sequence[Problem], /) -> list[Alignment]: ...


class Reducer(Protocol):
    """Turns an alignment into a score."""

    def __call__(
        self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded, /
    ) -> Score: ...


class Weighting(Protocol):
    """Says how much each piece of a text counts, given its keys and vectors."""

    def __call__(self, keys: Array, vectors: Array, /) -> Array: ...


@runtime_checkable
class Metric(Protocol):
    """Scores pairs; `score` and `evenmatch score` take anything of this shape."""

    @property
    def signature(self) -> str: ...
    @property
    def higher_is_better(self) -> bool: ...
    @property
    def bounds(self) -> tuple[float, float]: ...
    def __call__(self, pairs: Sequence[Pair], /) -> Scores: ...


@runtime_checkable
class Carried(Protocol):
    """A metric that can be told how to carry out its work: device, threads, batches, progress.

    It scores pair by pair and has no corpus score, so pairs may come to it in portions.
    """

    def carry_out(self, pairs: Sequence[Pair], run: Run, /) -> Scores: ...


@runtime_checkable
class Totalled(Protocol):
    """A metric whose corpus score is a function of counts summed over segments.

    `counted` gives the scores and a row of counts per pair; `of_totals` turns sums of such rows
    (…, counts) into corpus scores (…), so that many resampled corpora are scored at once.
    """

    def counted(self, pairs: Sequence[Pair], /) -> tuple[Scores, Array]: ...
    def of_totals(self, totals: Array, /) -> Array: ...


@runtime_checkable
class Bounded(Protocol):
    """A similarity that says the range of its values; without, nothing is known of them."""

    @property
    def bounds(self) -> tuple[float, float]: ...


@runtime_checkable
class Bounding(Protocol):
    """A reducer that says the range of its scores, given that of the similarity."""

    def bounds_within(self, low: float, high: float, /) -> tuple[float, float]: ...


@runtime_checkable
class Pinned(Protocol):
    """A part that can replace 'auto' settings and local paths by what they stand for now."""

    def pinned(self) -> Any: ...


@runtime_checkable
class Sourced(Protocol):
    """A part that rests on files; `sources` names them by content for the signature."""

    def sources(self) -> tuple[str, ...]: ...
