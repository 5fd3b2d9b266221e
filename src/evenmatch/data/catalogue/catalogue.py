"""The public data sets: what each is, whose it is, what it is made from, where it lies."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenmatch.errors import DataError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Upstream:
    """Files of a public repository at one commit.

    `sha256` has the checksums that could be verified when the catalogue was made, offline: those
    of files that are kept unchanged. The others rest on the checksum of what is made from them.
    """

    repository: str
    commit: str
    paths: tuple[str, ...]
    sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where people can look at it."""
        return f"https://github.com/{self.repository}/tree/{self.commit}"


@dataclass(frozen=True, slots=True)
class DataSet:
    """One public set; `files` are ours, converted, with the sha256 of their unpacked content.

    Without a `converter` the set has to be converted by hand; `layout` says into what.
    """

    name: str
    about: str
    licence: str
    citation: str
    layout: str
    upstream: tuple[Upstream, ...]
    files: Mapping[str, str]
    converter: str = ""
    notes: str = ""

    @property
    def folder(self) -> Path:
        """Where its files lie, or would."""
        return data_dir() / self.name

    @property
    def present(self) -> bool:
        """Whether all its files are here, sound or not."""
        return all((self.folder / name).is_file() for name in self.files)

    @property
    def missing_message(self) -> str:
        """What to say, and to do, when it is not here."""
        wanted = f"the data set {self.name!r} is not in {data_dir()}; "
        if self.converter:
            return f"{wanted}fetch it with: evenmatch data get {self.name}"
        return (
            f"{wanted}set EVENMATCH_DATA to a folder that has it, or make it by hand "
            f"as says: evenmatch data get {self.name}"
        )


def data_dir() -> Path:
    """The folder of the data sets: EVENMATCH_DATA, or one among the user's data."""
    given = os.environ.get("EVENMATCH_DATA")
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "evenmatch"


@cache
def data_sets() -> tuple[DataSet, ...]:
    """Every set of the catalogue, by name.

    >>> [each.name for each in data_sets()][:3]
    ['amr-little-prince', 'bias-words', 'crows-pairs']
    """
    tables = (files("evenmatch.data") / "catalogue" / "sets").iterdir()
    sets = [
        _data_set(table.name.removesuffix(".toml"), tomllib.loads(table.read_text("utf-8")))
        for table in tables
        if table.name.endswith(".toml")
    ]
    return tuple(sorted(sets, key=lambda each: each.name))


def _data_set(name: str, table: dict[str, Any]) -> DataSet:
    sources = (Upstream(**{**each, "paths": tuple(each["paths"])}) for each in table["upstream"])
    return DataSet(**{**table, "name": name, "upstream": tuple(sources)})


def data_set(name: str) -> DataSet:
    """The set of that name.

    >>> data_set("crows-pairs").licence
    'CC BY-SA 4.0'
    """
    known = {each.name: each for each in data_sets()}
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "see: evenmatch data list"
        raise UnknownNameError(f"no data set is called {name!r}; {hint}")
    return known[name]


def find_data_set(name: str) -> Path:
    """The folder a set lies in; an error that says what to do where it is not here."""
    wanted = data_set(name)
    if not wanted.present:
        raise DataError(wanted.missing_message)
    return wanted.folder
