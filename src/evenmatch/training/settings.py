"""Read training settings from TOML files and check their names and types."""

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
    """Return the content of a TOML file."""
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None


def check_toml_settings(
    given: Any, known: Mapping[str, type], where: str, *, others: Sequence[str] = ()
) -> None:
    """Raise `InputError` unless `given` is a table of known settings with values of their types.

    `others` are names that the caller reads itself; they are offered as corrections of typos.
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
