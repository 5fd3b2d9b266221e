"""How a keyphrase generator is made, as a TOML file says it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, TypeVar

from evenmatch.errors import InputError
from evenmatch.training.keyphrases.catseq import CatSeqShape
from evenmatch.training.keyphrases.catseq_run import CatSeqTrainingSettings
from evenmatch.training.settings import check_toml_settings, read_toml

_SettingsType = TypeVar("_SettingsType")


# Chan et al.'s (2019): slower than learning to write, and in larger batches.
REINFORCEMENT_DEFAULTS = CatSeqTrainingSettings(epochs=20, batch=32, rate=5e-5, halve=False)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of reinforcement: the reward, named f1, fg, fb or by any spec, and its course."""

    reward: str = "f1"
    course: CatSeqTrainingSettings = REINFORCEMENT_DEFAULTS


@dataclass(frozen=True, slots=True)
class CatSeqSettings:
    """Everything about a generator but its documents.

    `words` is the size of the vocabulary; documents with more than `longest` words or more than
    `most_phrases` phrases are not learnt from. After learning from people's phrases come `stages`
    of reinforcement, each going on from the one before.
    """

    words: int = 50_002
    longest: int = 400
    most_phrases: int = 14
    seed: int = 0
    shape: CatSeqShape = CatSeqShape()
    likelihood: CatSeqTrainingSettings = CatSeqTrainingSettings()
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class CatSeqPlan:
    """Settings with the documents to learn from and those to look at, as a file names them."""

    train: tuple[str, ...]
    valid: tuple[str, ...]
    settings: CatSeqSettings = field(default_factory=CatSeqSettings)


def read_catseq_plan(path: str | PathLike[str]) -> CatSeqPlan:
    """The plan in a TOML file; a key that means nothing is refused.

    `train` and `valid` are lists of what `read_documents` takes; `[shape]` and `[likelihood]` are
    tables; each `[[stages]]` has a `reward` beside the settings of its course.
    """
    table = read_toml(path)
    where = str(path)
    documents = {name: _parse_documents(table.pop(name, None), name, where) for name in _DATA_KEYS}
    return CatSeqPlan(**documents, settings=_parse_settings(table, where))


_DATA_KEYS = ("train", "valid")


def _parse_documents(given: Any, name: str, where: str) -> tuple[str, ...]:
    several = [given] if isinstance(given, str) else given
    if not (isinstance(several, list) and several and all(isinstance(x, str) for x in several)):
        raise InputError(f"{where} needs {name}, a list of files of documents, got {given!r}")
    return tuple(several)


def _parse_settings(table: Mapping[str, Any], where: str) -> CatSeqSettings:
    nested = {"shape": CatSeqShape(), "likelihood": CatSeqTrainingSettings()}
    given = {k: v for k, v in table.items() if k not in (*nested, "stages")}
    parts: dict[str, Any] = {
        name: _replace_settings(usual, table.get(name, {}), f"[{name}] of {where}")
        for name, usual in nested.items()
    }
    stages = table.get("stages", [])
    if not isinstance(stages, list):
        raise InputError(f"stages in {where} must be tables, each under [[stages]]")
    parts["stages"] = tuple(_parse_stage(stage, f"[[stages]] of {where}") for stage in stages)
    return dataclasses.replace(
        _replace_settings(CatSeqSettings(), given, where, others=_DATA_KEYS), **parts
    )


def _parse_stage(table: Mapping[str, Any], where: str) -> Stage:
    course = {k: v for k, v in table.items() if k != "reward"}
    reward = table.get("reward", "")
    if not isinstance(reward, str) or not reward:
        raise InputError(f"{where} needs a reward: f1, fg, fb or the spec of a metric")
    return Stage(
        reward, _replace_settings(REINFORCEMENT_DEFAULTS, course, where, others=("reward",))
    )


def _replace_settings(
    usual: _SettingsType, given: Any, where: str, *, others: tuple[str, ...] = ()
) -> _SettingsType:
    """The usual settings with those given, each of the kind it has to be."""
    known = {each.name: getattr(usual, each.name) for each in dataclasses.fields(usual)}  # type: ignore[arg-type]  # a dataclass
    kinds = {name: type(value) for name, value in known.items() if isinstance(value, (int, float))}
    check_toml_settings(given, kinds, where, others=others)
    return dataclasses.replace(usual, **given)  # type: ignore[type-var]  # a dataclass
