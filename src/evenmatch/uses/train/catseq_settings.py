"""How a keyphrase generator is made, as a TOML file says it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, TypeVar

from evenmatch.errors import InputError
from evenmatch.uses.train.catseq_course import Course
from evenmatch.uses.train.catseq_model import Shape
from evenmatch.uses.train.settings_file import check_settings, read_toml

_Made = TypeVar("_Made")
# Chan et al.'s (2019): slower than learning to write, and in larger batches.
POLICY = Course(epochs=20, batch=32, rate=5e-5, halve=False)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of reinforcement: the reward, named f1, fg, fb or by any spec, and its course."""

    reward: str = "f1"
    course: Course = POLICY


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything about a generator but its documents.

    `words` is the size of the vocabulary; documents with more than `longest` words or more than
    `most_phrases` phrases are not learnt from. After learning from people's phrases come `stages`
    of reinforcement, each going on from the one before.
    """

    words: int = 50_002
    longest: int = 400
    most_phrases: int = 14
    seed: int = 0
    shape: Shape = Shape()
    likelihood: Course = Course()
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings with the documents to learn from and those to look at, as a file names them."""

    train: tuple[str, ...]
    valid: tuple[str, ...]
    settings: Settings = field(default_factory=Settings)


def read_plan(path: str | PathLike[str]) -> Plan:
    """The plan in a TOML file; a key that means nothing is refused.

    `train` and `valid` are lists of what `read_documents` takes; `[shape]` and `[likelihood]` are
    tables; each `[[stages]]` has a `reward` beside the settings of its course.
    """
    table = read_toml(path)
    where = str(path)
    documents = {name: _documents(table.pop(name, None), name, where) for name in _SETS}
    return Plan(**documents, settings=_settings(table, where))


_SETS = ("train", "valid")


def _documents(given: Any, name: str, where: str) -> tuple[str, ...]:
    several = [given] if isinstance(given, str) else given
    if not (isinstance(several, list) and several and all(isinstance(x, str) for x in several)):
        raise InputError(f"{where} needs {name}, a list of files of documents, got {given!r}")
    return tuple(several)


def _settings(table: Mapping[str, Any], where: str) -> Settings:
    nested = {"shape": Shape(), "likelihood": Course()}
    given = {k: v for k, v in table.items() if k not in (*nested, "stages")}
    parts: dict[str, Any] = {
        name: _changed(usual, table.get(name, {}), f"[{name}] of {where}")
        for name, usual in nested.items()
    }
    stages = table.get("stages", [])
    if not isinstance(stages, list):
        raise InputError(f"stages in {where} must be tables, each under [[stages]]")
    parts["stages"] = tuple(_stage(stage, f"[[stages]] of {where}") for stage in stages)
    return dataclasses.replace(_changed(Settings(), given, where, others=_SETS), **parts)


def _stage(table: Mapping[str, Any], where: str) -> Stage:
    course = {k: v for k, v in table.items() if k != "reward"}
    reward = table.get("reward", "")
    if not isinstance(reward, str) or not reward:
        raise InputError(f"{where} needs a reward: f1, fg, fb or the spec of a metric")
    return Stage(reward, _changed(POLICY, course, where, others=("reward",)))


def _changed(usual: _Made, given: Any, where: str, *, others: tuple[str, ...] = ()) -> _Made:
    """The usual settings with those given, each of the kind it has to be."""
    known = {each.name: getattr(usual, each.name) for each in dataclasses.fields(usual)}  # type: ignore[arg-type]  # a dataclass
    kinds = {name: type(value) for name, value in known.items() if isinstance(value, (int, float))}
    check_settings(given, kinds, where, others=others)
    return dataclasses.replace(usual, **given)  # type: ignore[type-var]  # a dataclass
