"""Read training settings from TOML files and check their names and types."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from evenmatch.errors import InputError
from evenmatch.registry.parts import cast_setting, check_values, setting_types

_Settings = TypeVar("_Settings")


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the content of a TOML file."""
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except RecursionError:
        raise InputError(f"{path} is not valid TOML: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None


def replace_settings(
    defaults: _Settings, given: Any, owner: str, *, others: tuple[str, ...] = ()
) -> _Settings:
    """Return a dataclass of settings with those of a TOML table replaced, after checking them.

    The table may contain the dataclass's numbers, texts and truth values; `others` are names that
    the caller reads itself. `owner` names the table in error messages.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"{owner} must be a table, got {given!r}")
    factory: Callable[..., Any] = type(defaults)
    types = setting_types(factory)
    hints = {name: hint for name, hint in types.items() if hint in (int, float, bool, str)}
    check_values(owner, given, hints, others=others)
    values = {name: cast_setting(value, hints[name]) for name, value in given.items()}
    return dataclasses.replace(defaults, **values)  # type: ignore[type-var]  # a dataclass
