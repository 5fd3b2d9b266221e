"""The catalogue of public data sets: description, licence, source, and local folder of each."""

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

    `sha256` holds the checksums of the files that are kept unchanged; only these could be verified
    when the catalogue was written, offline. The other files are verified after conversion.
    """

    repository: str
    commit: str
    paths: tuple[str, ...]
    sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Web page of the repository at this commit."""
        return f"https://github.com/{self.repository}/tree/{self.commit}"


@dataclass(frozen=True, slots=True)
class DataSet:
    """A public data set; `files` maps converted files to the sha256 of their unpacked content.

    Without a `converter`, the set must be converted by hand into the files that `layout` describes.
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
        """Folder of the converted files, which may not exist yet."""
        return data_dir() / self.name

    @property
    def present(self) -> bool:
        """Whether all files exist; their content is not checked."""
        return all((self.folder / name).is_file() for name in self.files)

    @property
    def missing_message(self) -> str:
        """Error message for a missing set, with what to do about it."""
        missing = f"the data set {self.name!r} is not in {data_dir()}; "
        if self.converter:
            return f"{missing}fetch it with: evenmatch data get {self.name}"
        return (
            f"{missing}set EVENMATCH_DATA to a folder that has it, or create it by hand "
            f"as described by: evenmatch data get {self.name}"
        )


@cache
def data_sets() -> tuple[DataSet, ...]:
    """Return all sets of the catalogue, sorted by name.

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


def data_set(name: str) -> DataSet:
    """Return the set called `name`.

    >>> data_set("crows-pairs").licence
    'CC BY-SA 4.0'
    """
    known = {each.name: each for each in data_sets()}
    name = canonical_name(name)
    if name not in known:
        near = get_close_matches(name.lower(), known, n=1)
        hint = f"did you mean {near[0]}?" if near else "see: evenmatch data list"
        raise UnknownNameError(f"no data set is called {name!r}; {hint}")
    return known[name]


def canonical_name(given: str) -> str:
    """Return the name of the set that is called so in upper or lower case; else `given` itself.

    >>> canonical_name("WMT17-DA"), canonical_name("mine.jsonl")
    ('wmt17-da', 'mine.jsonl')
    """
    alike = (each.name for each in data_sets() if each.name == given.lower())
    return given if Path(given).exists() else next(alike, given)


def find_data_set(name: str) -> Path:
    """Return the folder of a set; raise a `DataError` with instructions if it is missing."""
    wanted = data_set(name)
    if not wanted.present:
        raise DataError(wanted.missing_message)
    return wanted.folder


def data_dir() -> Path:
    """Return the folder of all data sets: EVENMATCH_DATA, or one in the user's data directory."""
    given = os.environ.get("EVENMATCH_DATA")
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "evenmatch"


def _data_set(name: str, table: dict[str, Any]) -> DataSet:
    sources = (Upstream(**{**each, "paths": tuple(each["paths"])}) for each in table["upstream"])
    return DataSet(**{**table, "name": name, "upstream": tuple(sources)})
