"""Data types that parts pass to each other, and the settings of a run.

A metric turns a `Pair` of texts into `Units`, `Embedded` units, a `Problem`, an `Alignment` and a
`Score`. Matrices have candidate units in rows and reference units in columns; a higher similarity
means closer units.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from evenmatch.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from evenmatch.protocols import RemoteExecutor

# A numpy array, or a torch tensor where a caller needs gradients (only *, / and .sum are used).
Array: TypeAlias = Any
NO_FLAGS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pair:
    """One candidate to score, its references, and the source it was generated from.

    `fields` are other fields of the record it was read from; they do not influence a score.
    """

    candidate: str
    references: tuple[str, ...]
    source: str | None = None
    fields: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)


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
    splits texts itself. One with `no_model` is as fast on few texts as on many.
    """

    encode: Callable[[Sequence[Units]], list[Embedded]]
    vectors_key: Hashable
    pad_to: int = 0  # texts are padded to that many tokens
    facts: tuple[str, ...] = ()
    readable: Callable[[Units], Units] | None = None
    no_model: bool = False


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

    def scaled(self, factor: float) -> Score:
        """Return the score with its numbers multiplied by a factor."""
        precision, recall = (
            None if n is None else n * factor for n in (self.precision, self.recall)
        )
        return Score(self.value * factor, precision, recall, self.flags)


@dataclass(frozen=True, slots=True, repr=False)
class Scores:
    """The scores of a corpus in input order, with the signature of the metric.

    `len`, iteration and indexing are over `segments`. `counts` holds a row per segment if the
    corpus score is a function of their sum. `texts` is a hash of the texts, by which a report
    recognises them.
    """

    segments: tuple[Score, ...]
    signature: str
    corpus: float | None = None
    counts: Array | None = field(default=None, compare=False, repr=False)
    texts: str = field(default="", compare=False, repr=False)

    @property
    def mean(self) -> float:
        """The mean of `value` over segments; NaN without segments."""
        values = [segment.value for segment in self.segments]
        return sum(values) / len(values) if values else math.nan

    @property
    def values(self) -> Array:
        """The value of each segment, as an array."""
        return _as_array([s.value for s in self.segments])

    @property
    def precisions(self) -> Array | None:
        """The precision of each segment, as an array; None if a segment has none."""
        return _as_array([s.precision for s in self.segments])

    @property
    def recalls(self) -> Array | None:
        """The recall of each segment, as an array; None if a segment has none."""
        return _as_array([s.recall for s in self.segments])

    @property
    def flagged(self) -> list[int]:
        """Indexes of the segments that have a flag."""
        return [row for row, s in enumerate(self.segments) if s.flags]

    def __len__(self) -> int:
        return len(self.segments)

    def __iter__(self) -> Iterator[Score]:
        return iter(self.segments)

    @overload
    def __getitem__(self, index: int) -> Score: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Score, ...]: ...

    def __getitem__(self, index: int | slice) -> Score | tuple[Score, ...]:
        return self.segments[index]

    def scaled(self, factor: float) -> Scores:
        """Return the scores multiplied by a factor, which is added to the signature."""
        if factor == 1:
            return self
        segments = tuple(score.scaled(factor) for score in self.segments)
        corpus = None if self.corpus is None else self.corpus * factor
        signature = f"{self.signature} · scale {factor:g}"
        return replace(self, segments=segments, signature=signature, corpus=corpus)

    def to_frame(self, library: str = "") -> Any:
        """Return a polars or pandas frame with a row per segment.

        The columns are value, precision and recall (if every segment has them) and flags. Without
        `library`, it is the one that is imported, or else the one that is installed, polars first.
        """
        columns: dict[str, Any] = {
            "value": self.values,
            "precision": self.precisions,
            "recall": self.recalls,
        }
        known = {name: values for name, values in columns.items() if values is not None}
        frames = _frame_library(library)
        flags: Any = [sorted(s.flags) for s in self.segments]
        if frames.__name__ == "polars":  # with the same type where no segment has a flag
            flags = frames.Series(flags, dtype=frames.List(frames.String))
        return frames.DataFrame({**known, "flags": flags})

    def __str__(self) -> str:
        return "\n".join(f"{name:<9}  {shown}" for name, shown in self._summary())

    def __repr__(self) -> str:
        return f"<Scores: {', '.join(f'{name} {shown}' for name, shown in self._summary())}>"

    def _repr_html_(self) -> str:
        cells = (
            f'<tr><th style="text-align:left">{name}</th>'
            f'<td style="text-align:left">{escape(shown)}</td></tr>'
            for name, shown in self._summary()
        )
        return f"<table>{''.join(cells)}</table>"

    def _summary(self) -> list[tuple[str, str]]:
        """Names and texts of what is shown instead of all segments."""
        numbers = {"mean": self.mean, "corpus": self.corpus}
        for name, values in (("precision", self.precisions), ("recall", self.recalls)):
            numbers[name] = values.mean() if values is not None and len(values) else None
        rows = [(name, f"{number:.4f}") for name, number in numbers.items() if number is not None]
        flags = Counter(flag for s in self.segments for flag in s.flags)
        counts = ", ".join(f"{count} {flag}" for flag, count in sorted(flags.items()))
        flagged = f"{len(self.flagged)}{f' ({counts})' if counts else ''}"
        rows += [("segments", str(len(self))), ("flagged", flagged)]
        return [*rows, ("signature", self.signature)]


def _as_array(numbers: list[float | None]) -> Array:
    import numpy as np

    return None if None in numbers else np.array(numbers, dtype=np.float64)


def _frame_library(name: str) -> Any:
    known = ("polars", "pandas")
    if name and name not in known:
        raise InputError(f"library must be 'polars' or 'pandas', got {name!r}")
    wanted = [name] if name else [n for n in known if n in sys.modules] or list(known)
    for each in wanted:
        if find_spec(each):
            return import_module(each)
    raise MissingExtraError(
        f"a frame needs {' or '.join(wanted)}; install it with: pip install {wanted[0]}"
    )


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
