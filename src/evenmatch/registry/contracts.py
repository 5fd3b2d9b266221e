"""Contracts: properties that every part of a kind must have, and the check that it has them.

`check_promises` tests the properties shared by all kinds (registered, frozen, picklable, rebuilt
from its spec) and those that a kind adds; `check_solver`, `check_encoder` and `check_metric`
call it.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evenmatch.errors import InputError, PromiseError
from evenmatch.registry.parts import check_arguments, kind_of
from evenmatch.registry.specs import build, spec


@dataclass(frozen=True, slots=True)
class Promise:
    """A property that parts must have; `find_violations` yields a message for each violation."""

    name: str
    description: str
    find_violations: Callable[[Any], Iterator[str]]


@check_arguments
def check_promises(
    part: Any, kind: str, promises: Sequence[Promise], excused: Collection[str] = ()
) -> None:
    """Raise PromiseError for the first promise that the part breaks; `excused` ones are skipped."""
    all_promises = (*_common_promises(kind), *promises)
    known = [promise.name for promise in all_promises]
    for name in excused:
        if name not in known:
            raise InputError(f"there is no promise called {name!r}; known: {', '.join(known)}")
    for promise in all_promises:
        if promise.name not in excused:
            for violation in promise.find_violations(part):
                raise PromiseError(
                    f"{type(part).__name__} breaks the promise {promise.name!r} "
                    f"({promise.description}): {violation}"
                )


def _common_promises(kind: str) -> tuple[Promise, ...]:
    def is_kind(part: Any) -> Iterator[str]:
        found = kind_of(part)
        if isinstance(part, type):
            yield f"it is a class; pass an instance, {part.__name__}()"
        elif found != kind:
            yield f"it is registered as {found or 'nothing'}"

    return (
        Promise("registered", f"it is registered as a part of kind {kind!r}", is_kind),
        Promise("frozen", "its fields cannot be changed", _check_frozen),
        Promise("pickles", "a pickled copy is equal and has the same hash", _check_pickle),
        Promise("spec", "its spec builds an equal part", _check_spec),
    )


def _check_frozen(part: Any) -> Iterator[str]:
    for field in dataclasses.fields(part):
        try:
            setattr(part, field.name, getattr(part, field.name))
        except dataclasses.FrozenInstanceError:
            continue
        yield f"{field.name} can be changed; use @dataclass(frozen=True)"


def _check_pickle(part: Any) -> Iterator[str]:
    try:
        copy = pickle.loads(pickle.dumps(part))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        yield f"it cannot be pickled: {error}"
        return
    if copy != part or hash(copy) != hash(part):
        yield f"unpickling {part!r} gives {copy!r}"


def _check_spec(part: Any) -> Iterator[str]:
    text = spec(part)
    copy = build(text)
    if copy != part:
        yield f"{text} builds {copy!r}, not {part!r}"
    elif spec(copy) != text:
        yield f"{text} builds a part whose spec is {spec(copy)}"
