"""How a keyphrase generator is made, as a TOML file says it."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from evenmatch.errors import InputError
from evenmatch.uses.train.catseq_course import Course
from evenmatch.uses.train.catseq_model import Shape

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
    try:
        table = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML: {error}") from None
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
    if not isinstance(given, Mapping):
        raise InputError(f"{where} must be a table, got {given!r}")
    known = {each.name: getattr(usual, each.name) for each in dataclasses.fields(usual)}  # type: ignore[arg-type]  # a dataclass
    known = {name: value for name, value in known.items() if isinstance(value, (int, float))}
    for name, value in given.items():
        if name not in known:
            near = get_close_matches(name, [*known, *others], 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise InputError(f"{where} has no setting {name!r}; {hint}")
        wanted = type(known[name])
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise InputError(f"{name} in {where} must be {_KINDS[wanted]}, got {value!r}")
    return dataclasses.replace(usual, **given)  # type: ignore[type-var]  # a dataclass


_KINDS = {int: "a whole number", float: "a number", bool: "true or false"}
