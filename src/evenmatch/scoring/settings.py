"""Run settings as people write them: how a call is carried out, never what it means."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from evenmatch.errors import InputError
from evenmatch.types import Cache, Elsewhere, Run


def make_run(**settings: Any) -> Run:
    """Run settings by name; an unknown one is refused.

    `cache` is True, 'exact', a folder, or a `Cache`; `progress` is True or a function; `on` is what
    `sharing_out` gives.
    """
    known = [field.name for field in dataclasses.fields(Run)]
    for name in settings:
        if name not in known:
            raise InputError(f"there is no run setting {name!r}; known: {', '.join(known)}")
    for name, least in (("batch_tokens", 1), ("threads", 0)):
        value = settings.get(name, least)
        if type(value) is not int or value < least:
            raise InputError(f"{name} must be a whole number, at least {least}, got {value!r}")
    given = {"cache": as_cache, "progress": _as_progress, "on": _as_elsewhere}
    return Run(**{k: given[k](v) if k in given else v for k, v in settings.items()})


def shifted(run: Run, done: int, total: int) -> Run:
    """The run with its progress told as part of longer work, of which so much was done before."""
    tell = run.progress
    if tell is None:
        return run
    return dataclasses.replace(run, progress=lambda n, _: tell(done + n, total))


def as_cache(given: Any) -> Cache | None:
    """The cache that is meant: False or None for none, True or 'exact' for the usual folder."""
    match given:
        case None | False:
            return None
        case True:
            return Cache()
        case "exact":
            return Cache(exact=True)
        case str() as folder if folder:
            return Cache(folder)
        case Cache() if given.most_bytes > 0:
            return given
    raise InputError(f"cache takes True, 'exact', a folder or a Cache with room, got {given!r}")


def _as_progress(given: Any) -> Any:
    if given is True:
        return _line
    if given in (None, False) or callable(given):
        return given or None
    raise InputError(f"progress takes True or a function of (done, total), got {given!r}")


def _as_elsewhere(given: Any) -> Any:
    if given is None or isinstance(given, Elsewhere):
        return given
    raise InputError(f"on takes what sharing_out(...) gives, got {given!r}")


def _line(done: int, total: int) -> None:
    """A counter on standard error that overwrites itself."""
    sys.stderr.write(f"\r{done}/{total} pairs" + ("\n" if done == total else ""))
    sys.stderr.flush()
