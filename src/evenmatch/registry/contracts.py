"""Promises a part makes, and how one is held to them: the laws that parts of every kind keep."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evenmatch.errors import InputError, PromiseError
from evenmatch.registry.parts import kind_of
from evenmatch.registry.specs import build, spec


@dataclass(frozen=True, slots=True)
class Promise:
    """A law by name, what it says, and a look at a part that yields what is wrong with it."""

    name: str
    description: str
    find_violations: Callable[[Any], Iterator[str]]


def check_promises(
    part: Any, kind: str, promises: Sequence[Promise], excused: Collection[str] = ()
) -> None:
    """Raise PromiseError for the first promise that a part of this kind breaks."""
    every = (*_common_promises(kind), *promises)
    known = [promise.name for promise in every]
    for name in excused:
        if name not in known:
            raise InputError(f"there is no promise called {name!r}; known: {', '.join(known)}")
    for promise in every:
        if promise.name not in excused:
            for complaint in promise.find_violations(part):
                raise PromiseError(
                    f"{type(part).__name__} breaks the promise {promise.name!r} "
                    f"({promise.description}): {complaint}"
                )


def _common_promises(kind: str) -> tuple[Promise, ...]:
    def is_kind(part: Any) -> Iterator[str]:
        found = kind_of(part)
        if isinstance(part, type):
            yield f"it is a class; give an instance, {part.__name__}()"
        elif found != kind:
            yield f"it is registered as {found or 'nothing'}"

    return (
        Promise("registered", f"it is registered as a part of kind {kind!r}", is_kind),
        Promise("frozen", "nothing can be set once it is made", _check_frozen),
        Promise("pickles", "a copy by pickle is equal and has the same hash", _check_pickle),
        Promise("spec", "its spec builds an equal part", _check_spec),
    )


def _check_frozen(part: Any) -> Iterator[str]:
    for field in dataclasses.fields(part):
        try:
            setattr(part, field.name, getattr(part, field.name))
        except dataclasses.FrozenInstanceError:
            continue
        yield f"{field.name} can be set; write @dataclass(frozen=True)"


def _check_pickle(part: Any) -> Iterator[str]:
    try:
        copy = pickle.loads(pickle.dumps(part))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        yield f"it cannot be pickled: {error}"
        return
    if copy != part or hash(copy) != hash(part):
        yield f"{copy!r} came back for {part!r}"


def _check_spec(part: Any) -> Iterator[str]:
    text = spec(part)
    copy = build(text)
    if copy != part:
        yield f"{text} builds {copy!r}, not {part!r}"
    elif spec(copy) != text:
        yield f"{text} builds a part whose spec is {spec(copy)}"
