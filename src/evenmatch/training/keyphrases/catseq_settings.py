"""Settings of a keyphrase generator, read from a TOML file."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from evenmatch.errors import InputError
from evenmatch.registry.parts import check_at_least, check_positive
from evenmatch.training.keyphrases.catseq import CatSeqShape
from evenmatch.training.settings import read_toml, replace_settings


@dataclass(frozen=True, slots=True)
class CatSeqTrainingSettings:
    """Epochs, examples per step, learning rate, and when to evaluate and stop.

    Every `look_every` steps the model is evaluated on validation documents. With `halve`, the
    learning rate is halved when the result does not exceed the best so far; after `patience` such
    evaluations training ends. The model with the best evaluation is kept.
    """

    epochs: int = 20
    batch: int = 12
    rate: float = 1e-3
    look_every: int = 4000
    patience: int = 4
    halve: bool = True
    clip: float = 1.0

    def __post_init__(self) -> None:
        sizes = ("epochs", "batch", "look_every", "patience")
        check_at_least(1, **{name: getattr(self, name) for name in sizes})
        check_positive(rate=self.rate, clip=self.clip)


# From Chan et al. (2019): a lower rate than for maximum likelihood, and larger batches.
REINFORCEMENT_DEFAULTS = CatSeqTrainingSettings(epochs=20, batch=32, rate=5e-5, halve=False)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of reinforcement learning: its reward (f1, fg, fb or any spec) and settings."""

    reward: str = "f1"
    training: CatSeqTrainingSettings = REINFORCEMENT_DEFAULTS

    def to_dict(self) -> dict[str, Any]:
        """Return the stage as stored in the recipes of checkpoints and results."""
        return {"reward": self.reward, "course": dataclasses.asdict(self.training)}


@dataclass(frozen=True, slots=True)
class CatSeqSettings:
    """All settings of a generator except its documents.

    `words` is the size of the vocabulary; documents with more than `longest` words or more than
    `most_phrases` phrases are not used for training. After maximum likelihood on gold phrases
    come the `stages` of reinforcement learning, each starting from the model before it.
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
    """Settings, and the files of training and validation documents."""

    train: tuple[str, ...]
    valid: tuple[str, ...]
    settings: CatSeqSettings = field(default_factory=CatSeqSettings)


def read_catseq_plan(path: str | PathLike[str]) -> CatSeqPlan:
    """Read a plan from a TOML file; unknown keys are refused.

    `train` and `valid` are lists of inputs of `read_documents`; `[shape]` and `[likelihood]` are
    tables; each `[[stages]]` has a `reward` and the training settings of the stage.
    """
    table, where = read_toml(path), str(path)
    train, valid = (_parse_documents(table.pop(name, None), name, where) for name in _DATA_KEYS)
    parts: dict[str, Any] = {
        name: replace_settings(usual, table.pop(name, {}), f"[{name}] of {where}")
        for name, usual in (("shape", CatSeqShape()), ("likelihood", CatSeqTrainingSettings()))
    }
    stages = table.pop("stages", [])
    if not isinstance(stages, list):
        raise InputError(f"stages in {where} must be tables, each under [[stages]]")
    parts["stages"] = tuple(_parse_stage(stage, f"[[stages]] of {where}") for stage in stages)
    settings = replace_settings(CatSeqSettings(**parts), table, where, others=_DATA_KEYS)
    return CatSeqPlan(train, valid, settings)


_DATA_KEYS = ("train", "valid")


def _parse_documents(given: Any, name: str, where: str) -> tuple[str, ...]:
    several = [given] if isinstance(given, str) else given
    if not (isinstance(several, list) and several and all(isinstance(x, str) for x in several)):
        raise InputError(f"{where} needs {name}, a list of document files, got {given!r}")
    return tuple(several)


def _parse_stage(table: dict[str, Any], where: str) -> Stage:
    reward = table.pop("reward", "")
    if not isinstance(reward, str) or not reward:
        raise InputError(f"{where} needs a reward: f1, fg, fb or the spec of a metric")
    training = replace_settings(REINFORCEMENT_DEFAULTS, table, where, others=("reward",))
    return Stage(reward, training)
