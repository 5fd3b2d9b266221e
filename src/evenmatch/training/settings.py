"""Settings of training as TOML files have them: known by name, each of its kind."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.errors import InputError

TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """What a TOML file says."""
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML: {error}") from None


def check_toml_settings(
    given: Any, known: Mapping[str, type], where: str, *, others: Sequence[str] = ()
) -> None:
    """Refuse what is no table, and settings that do not exist or are of another kind.

    `others` are names that are read elsewhere and may be meant.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"{where} must be a table, got {given!r}")
    for name, value in given.items():
        if name not in known:
            near = get_close_matches(name, [*known, *others], 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise InputError(f"{where} has no setting {name!r}; {hint}")
        wanted = known[name]
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise InputError(f"{name} in {where} must be {TYPE_NAMES[wanted]}, got {value!r}")
