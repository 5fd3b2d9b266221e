"""The texts of one window embedded, and their pairs scored: whatever is equal is made once."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np

from evenmatch.errors import InputError
from evenmatch.scoring.windows import alone
from evenmatch.types import (
    Array,
    Cutting,
    Embedded,
    Encoder,
    Pair,
    Problem,
    Reducer,
    Run,
    Score,
    Similarity,
    Solver,
    Splitter,
    Units,
)
from evenmatch.vectors import cache
from evenmatch.vectors.states import Body, Deep, States, Viewing, sides_of, unweighted


class MatchingParts(Protocol):
    """What turns units of two texts into a score."""

    @property
    def vectors(self) -> Encoder: ...
    @property
    def similarity(self) -> Similarity: ...
    @property
    def alignment(self) -> Solver: ...
    @property
    def scoring(self) -> Reducer: ...


class Parts(MatchingParts, Protocol):
    """Anything with the five fields of an alignment metric."""

    @property
    def units(self) -> Splitter: ...


View: TypeAlias = tuple[Splitter, Encoder]  # how a text is cut and embedded
Sides: TypeAlias = tuple[View, View]  # of the candidate and of the reference


class Shelf:
    """Embeds the texts of window after window, each text once."""

    def __init__(self, metrics: Sequence[Parts], run: Run) -> None:
        self._run = run
        # Which layers an encoder reads is looked up on disk, so once a call and not once a text.
        self._sides: dict[View, Sides] = {
            (m.units, m.vectors): _sides(m.units, m.vectors) for m in metrics
        }
        self._views = list(dict.fromkeys(view for both in self._sides.values() for view in both))
        self._depths: dict[Encoder, tuple[int, ...]] = {
            e: e.depths() if isinstance(e, Deep) else (e.depth(),)
            for _, e in self._views
            if isinstance(e, Viewing)
        }
        self._bodies = self._by_body()
        self._identities = {body: body.identity() for body in self._bodies if run.cache}
        self._embedded: dict[View, dict[str, Embedded]] = {view: {} for view in self._views}
        self._units: dict[Splitter, dict[str, Units]] = {}

    def stock(self, pairs: Sequence[Pair], again: Collection[str]) -> Stock:
        """Embed the texts of these pairs; of those embedded before keep what is needed `again`."""
        texts = dict.fromkeys(t for p in pairs for t in (p.candidate, *p.references))
        self._embedded = {
            view: {t: _alone(e) for t, e in known.items() if t in texts or t in again}
            for view, known in self._embedded.items()
        }
        self._units = {cut: {} for cut, _ in self._views}
        new = self._new(texts, pairs)
        for body, views in self._bodies.items():
            depths = sorted({depth for _, encoder in views for depth in self._depths[encoder]})
            unknown = list(dict.fromkeys(t for view in views for t in new[view]))
            found = cache.encode(body, unknown, depths, self._run, self._identities.get(body, ""))
            states = dict(zip(unknown, found, strict=True))
            for view in views:
                self._embedded[view].update(self._looked(view, [states[t] for t in new[view]]))
        for cut, encoder in self._views:
            if encoder not in self._depths:
                some = new[cut, encoder]
                self._embedded[cut, encoder].update(
                    zip(some, encoder(self._cut(cut, some)), strict=True)
                )
        return Stock(pairs, self._sides, self._embedded)

    def _new(self, texts: Iterable[str], pairs: Sequence[Pair]) -> dict[View, list[str]]:
        """What each view has still to embed: some look at candidates or at references only."""
        candidates = {p.candidate for p in pairs}
        references = {r for p in pairs for r in p.references}
        wanted: dict[View, set[str]] = {view: set() for view in self._views}
        for left, right in self._sides.values():
            wanted[left] |= candidates
            wanted[right] |= references
        return {
            view: [t for t in texts if t in wanted[view] and t not in self._embedded[view]]
            for view in self._views
        }

    def _by_body(self) -> Mapping[Body, list[View]]:
        bodies: dict[Body, list[View]] = {}
        for view in self._views:
            if isinstance(view[1], Viewing):
                bodies.setdefault(view[1].body, []).append(view)
        return bodies

    def _looked(self, view: View, states: Sequence[States]) -> Iterator[tuple[str, Embedded]]:
        cut, encoder = view
        assert isinstance(encoder, Viewing)
        depth = self._depths[encoder][-1]
        for units, state in zip(self._cut(cut, [s.text for s in states]), states, strict=True):
            yield units.text, encoder.look(units, state, depth)

    def _cut(self, cut: Splitter, texts: Sequence[str]) -> list[Units]:
        """The texts' units, which encoders share that are given the same ones."""
        known = self._units[cut]
        new = [text for text in texts if text not in known]
        known.update(zip(new, cut_all(cut, new), strict=True))
        return [known[text] for text in texts]


@dataclass(frozen=True, slots=True, eq=False)
class Stock:
    """The pairs of one window with the vectors of their texts; similarities come as asked for."""

    pairs: Sequence[Pair]
    sides: Mapping[View, Sides]
    embedded: Mapping[View, Mapping[str, Embedded]]
    similarities: dict[tuple[Sides, Similarity], list[Array]] = field(default_factory=dict)
    problems: dict[tuple[Sides, Similarity], list[Problem]] = field(default_factory=dict)

    def scores(self, metric: Parts) -> Iterator[Score]:
        """The metric's score of each pair in the window: the best over its references."""
        both = self.sides[metric.units, metric.vectors]
        problems = self._posed(both, metric.similarity)
        reduced = [
            metric.scoring(problem.similarity, alignment, x, y)
            for problem, alignment, (x, y) in zip(
                problems, metric.alignment(problems), self._met(both), strict=True
            )
        ]
        if len(reduced) == len(self.pairs):  # one reference each
            yield from reduced
            return
        left = iter(reduced)
        for pair in self.pairs:
            yield max((next(left) for _ in pair.references), key=lambda score: score.value)

    def _posed(self, both: Sides, similarity: Similarity) -> list[Problem]:
        """What there is to align, which differs only by masses from what other weights pose."""
        if (both, similarity) not in self.problems:
            compared = self._compared(both, similarity)
            self.problems[both, similarity] = [
                Problem(s, x.mass, y.mass)
                for s, (x, y) in zip(compared, self._met(both), strict=True)
            ]
        return self.problems[both, similarity]

    def _compared(self, both: Sides, similarity: Similarity) -> list[Array]:
        key = (_unweighted(both), similarity)
        if key not in self.similarities:
            owners = (pair for pair in self.pairs for _ in pair.references)
            self.similarities[key] = [
                checked(similarity(x, y), pair)
                for pair, (x, y) in zip(owners, self._met(both), strict=True)
            ]
        return self.similarities[key]

    def _met(self, both: Sides) -> Iterator[tuple[Embedded, Embedded]]:
        """Each candidate with each of its references."""
        left, right = (self.embedded[view] for view in both)
        for pair in self.pairs:
            candidate = left[pair.candidate]
            for reference in pair.references:
                yield candidate, right[reference]


def _alone(embedded: Embedded) -> Embedded:
    """The same to keep beyond its window: it must not hold on to the array it is part of."""
    vectors = alone(embedded.vectors)
    kept = vectors is embedded.vectors
    return embedded if kept else dataclasses.replace(embedded, vectors=vectors)


def _sides(units: Splitter, encoder: Encoder) -> Sides:
    left, right = sides_of(encoder)
    return (units, left), (units, right)


def _unweighted(both: Sides) -> Sides:
    (cut, left), (_, right) = both
    return (cut, unweighted(left)), (cut, unweighted(right))


def cut_all(splitter: Splitter, texts: Sequence[str]) -> list[Units]:
    """Each text's units, made together where the splitter can."""
    if isinstance(splitter, Cutting):
        return splitter.cut(texts)
    return [splitter(text) for text in texts]


def checked(similarity: Array, pair: Pair) -> Array:
    """The similarity in double precision, as solvers and sums take it, and nothing but numbers."""
    if not np.isfinite(similarity).all():
        raise InputError(
            f"a similarity is not a number for the candidate {pair.candidate[:60]!r}; "
            "check the vectors its encoder gives"
        )
    return np.asarray(similarity, dtype=np.float64)
