"""Open parts for one call, and describe the result in a signature.

A part is a recipe: its settings may name a model, 'auto' or a file. Opening a part looks these up
on this machine. A `CallContext` remembers everything that was looked up during one call, so equal
parts share it, and a call refers to one content from its first batch to its signature.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

from evenmatch.errors import InputError
from evenmatch.registry.parts import part_settings
from evenmatch.registry.specs import display_spec
from evenmatch.types import Pair, Run
from evenmatch.version import __version__

T = TypeVar("T")


class CallContext:
    """What the parts of one call share: its run settings, its pairs, and all that was opened."""

    def __init__(self, run: Run = Run(), pairs: Iterable[Pair] = ()) -> None:
        self.run = run
        self._pairs = pairs
        self._results: dict[Any, Any] = {}
        self._chunk_caches: list[dict[Any, Any]] = []

    def once(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function with these arguments, or return what it returned before."""
        key = (function, *args)
        if key not in self._results:
            self._results[key] = function(*args)
        found: T = self._results[key]
        return found

    def open(self, part: Any) -> Any:
        """Open a part by its method `open`; equal parts are opened once."""
        if part not in self._results:
            self._results[part] = part.open(self)
        return self._results[part]

    def with_exact_vectors(self) -> CallContext:
        """Return this context, with a cache that stores vectors in full precision if it has one."""
        cache = self.run.cache
        if cache is None or cache.exact:
            return self
        if "exact" not in self._results:
            run = dataclasses.replace(self.run, cache=dataclasses.replace(cache, exact=True))
            exact = self._results["exact"] = CallContext(run, self._pairs)
            exact._chunk_caches = self._chunk_caches
        found: CallContext = self._results["exact"]
        return found

    def chunk_cache(self) -> dict[Any, Any]:
        """Return a new dictionary that is emptied at the start of every chunk of pairs."""
        self._chunk_caches.append({})
        return self._chunk_caches[-1]

    def start_chunk(self) -> None:
        """Empty the caches of the previous chunk."""
        for cache in self._chunk_caches:
            cache.clear()

    def pairs(self) -> Iterator[Pair]:
        """Iterate over the pairs of the call, for parts that count words before the first score."""
        pairs = iter(self._pairs)
        if pairs is self._pairs:
            raise InputError(
                "idf counts all texts before the first score, but this input can be read only "
                "once; save it to a file, or name a table: idf='FILE'"
            )
        yield from pairs


@runtime_checkable
class Openable(Protocol):
    """A metric or an encoder that is opened once per call, before it is used.

    A metric opens to a `ReadyMetric`, an encoder to two `OpenEncoder`s: one for candidates and one
    for references.
    """

    def open(self, context: CallContext, /) -> Any: ...


@runtime_checkable
class Resolvable(Protocol):
    """A part that depends on this machine or on the version of a library.

    `resolve` returns the part with 'auto' settings as values and local paths as content hashes,
    and the facts a signature adds: models by content hash, libraries by version.
    """

    def resolve(self, context: CallContext, /) -> tuple[Any, tuple[str, ...]]: ...


@runtime_checkable
class StandsFor(Protocol):
    """A part that stands for another one; a signature names that one by its content hash."""

    @property
    def meant(self) -> Any: ...


@runtime_checkable
class CountsIdf(Protocol):
    """A part whose idf table is counted from the texts of a call, unless it names one."""

    def count_idf(self, context: CallContext, /) -> Any: ...


def resolve(part: Any, context: CallContext | None = None) -> tuple[Any, tuple[str, ...]]:
    """Resolve a part and the parts among its settings; also return their facts without repeats."""
    context = context or CallContext()
    facts: list[str] = []

    def resolve_inner(inner: Any) -> Any:
        resolved, found = resolve(inner, context)
        facts.extend(found)
        return resolved

    part = _map_inner_parts(part, resolve_inner)
    if isinstance(part, Resolvable):
        part, own = part.resolve(context)
        facts[:0] = own
    return part, tuple(dict.fromkeys(facts))


def count_idf(part: Any, context: CallContext) -> Any:
    """Return the part with every idf table that it lacks counted from the pairs of the call."""
    part = _map_inner_parts(part, lambda inner: count_idf(inner, context))
    return part.count_idf(context) if isinstance(part, CountsIdf) else part


def make_signature(part: Any, context: CallContext | None = None, *facts: str) -> str:
    """Describe a metric for reproduction: resolved spec, version, content hashes, other facts.

    `build` accepts the part before the first ` · `, unless it contains an unregistered part, such
    as one over live weights, which is shown as `<ClassName>`.
    """
    resolved, found = resolve(part, context)
    fields = (display_spec(resolved), f"evenmatch {__version__}", *found, *facts)
    return " · ".join(dict.fromkeys(fields))


def _map_inner_parts(part: Any, function: Callable[[Any], Any]) -> Any:
    """Return a part with `function` applied to each part among its settings."""
    if not _is_part(part):
        return part
    changed = {}
    for name, value in part_settings(part).items():
        if isinstance(value, tuple):
            new: Any = tuple(function(each) if _is_part(each) else each for each in value)
        else:
            new = function(value) if _is_part(value) else value
        if new is not value and new != value:
            changed[name] = new
    return dataclasses.replace(part, **changed) if changed else part


def _is_part(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)
