"""What travels to a worker: specs and settings, never objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evenmatch.uses.scale.cuts import Cut


@dataclass(frozen=True, slots=True)
class Job:
    """What every worker of a run is told once.

    `metrics` are names with their specs, `form` the suffix of the files of scores, `folder` where
    relative paths in specs begin, `tables` the idf tables counted from the whole input.
    """

    metrics: tuple[tuple[str, str], ...]
    form: str
    settings: dict[str, Any] = field(default_factory=dict)
    folder: str = ""
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """One shard to score; with `only`, try those rows and keep nothing."""

    number: int
    first: int
    file: str
    cut: Cut
    data: bytes
    only: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker has loaded its metrics: their signatures, and the seconds that took."""

    signatures: dict[str, str]
    seconds: float


@dataclass(frozen=True, slots=True)
class Done:
    """A shard's scores as the bytes of a file, with what the record keeps of them."""

    number: int
    data: bytes
    tallies: dict[str, dict[str, Any]]
    flags: dict[str, int]
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Failed:
    """A shard that could not be scored, and why.

    `row` is the offending one, counted from the shard's first, where it is known; `again` says
    whether another try may help.
    """

    number: int
    reason: str
    row: int | None = None
    again: bool = True


Reply = Ready | Done | Failed
