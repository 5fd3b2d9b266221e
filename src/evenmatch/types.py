"""Data types that parts pass to each other, and the settings of a run.

A metric turns a `Pair` of texts into `Units`, `Embedded` units, a `Problem`, an `Alignment` and a
`Score`. Matrices have candidate units in rows and reference units in columns; a higher similarity
means closer units.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from evenmatch.protocols import RemoteExecutor

# A numpy array, or a torch tensor where a caller needs gradients (only *, / and .sum are used).
Array: TypeAlias = Any
NO_FLAGS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pair:
    """One candidate to score, its references, and the source it was generated from."""

    candidate: str
    references: tuple[str, ...]
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Units:
    """One text split into units; a unit is a group of words.

    `spans` are the character offsets of `words`, and `groups` the word indices of each unit.
    With `by_model`, the encoder's tokenizer splits the text instead (see `units.text.Pieces`).
    `special_tokens` then says whether its opening and closing tokens are units as well; `opening`
    makes the first token the only unit, and `closing` the first token after the text.
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
    weights: tuple[float, ...] = ()  # weight of each unit; empty for equal weights
    flags: frozenset[str] = NO_FLAGS

    @property
    def items(self) -> tuple[str, ...]:
        """The words of each unit, joined by spaces."""
        return tuple(" ".join(self.words[i] for i in group) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Tree:
    """A node of a constituency tree or a dependency tree.

    `label` is the phrase label or the relation to the head, `head` the index of the head word, and
    `words` are the indices of all words under this node.
    """

    label: str
    head: int
    words: tuple[int, ...]
    children: tuple[Tree, ...] = ()


@dataclass(frozen=True, slots=True)
class Parse:
    """The parse of one text: its words, their tags, and one tree per sentence."""

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    tags: tuple[str, ...]
    trees: tuple[Tree, ...]
    is_constituency: bool = False  # constituency trees instead of dependency trees


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """Units with their vectors, weights and mass."""

    units: Units
    vectors: Array
    weights: Array  # weight of each unit in the mean
    mass: Array  # mass of each unit in optimal transport
    flags: frozenset[str] = NO_FLAGS


@dataclass(frozen=True, slots=True, eq=False)
class OpenEncoder:
    """An encoder that is ready for the texts of one call.

    Encoders with equal `vectors_key` give equal vectors, and may differ in weights and mass.
    `facts` are added to a signature. `readable` returns units as readable text where the encoder
    splits texts itself.
    """

    encode: Callable[[Sequence[Units]], list[Embedded]]
    vectors_key: Hashable
    pad_to: int = 0  # texts are padded to that many tokens
    facts: tuple[str, ...] = ()
    readable: Callable[[Units], Units] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """An alignment problem: a similarity matrix and the mass of its rows and columns."""

    similarity: Array
    row_mass: Array
    col_mass: Array


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """How each unit is distributed over the units of the other text.

    `rows[i]` distributes candidate unit i over the reference units and sums to at most 1;
    `cols[:, j]` does the same for reference unit j. `exact` says whether the solver reached the
    optimum, and `steps` is its number of iterations.
    """

    rows: Array
    cols: Array
    exact: bool = True
    steps: int = 1


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one candidate; `value` is the main number."""

    value: float
    precision: float | None = None
    recall: float | None = None
    flags: frozenset[str] = NO_FLAGS


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a corpus in input order, with the signature of the metric.

    `counts` holds a row per segment if the corpus score is a function of their sum. `texts` is a
    hash of the texts, by which a report recognises them.
    """

    segments: tuple[Score, ...]
    signature: str
    corpus: float | None = None
    counts: Array | None = field(default=None, compare=False, repr=False)
    texts: str = field(default="", compare=False, repr=False)

    @property
    def mean(self) -> float:
        """The mean of `value` over segments; 0.0 without segments."""
        return sum(s.value for s in self.segments) / len(self.segments) if self.segments else 0.0


@dataclass(frozen=True, slots=True)
class Cache:
    """Settings of the vector cache on disk.

    `folder` '' is EVENMATCH_CACHE, or a folder in the user's cache. The default compact form takes
    half the disk space and changes the score of most metrics by less than 1e-5, equally on a cache
    hit and a miss; `exact` stores full precision.
    """

    folder: str = ""
    exact: bool = False
    max_bytes: int = 4 << 30


@dataclass(frozen=True, slots=True)
class Run:
    """Execution settings of a call; none of them changes a score.

    `batch_tokens` limits one forward pass; `threads` 0 keeps torch's own setting; `progress` is
    called with the number of pairs done and in total; `on` scores instead of this process;
    `check_cost` is called before each piece of work, and raises an error to refuse or cancel it.
    """

    device: str = "cpu"
    threads: int = 0
    batch_tokens: int = 1024
    cache: Cache | None = None
    progress: Callable[[int, int], None] | None = None
    on: RemoteExecutor | None = None
    check_cost: Callable[[Sequence[int]], None] | None = None

    def check(self, *cells: int) -> None:
        """Announce the next piece of work: tables of units by units with so many cells."""
        if self.check_cost:
            self.check_cost(cells)
