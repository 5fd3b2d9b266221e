"""What the keyphrase experiment compares: rewards in one stage or two, with parts left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenmatch.errors import InputError
from evenmatch.uses.train.catseq_course import Course
from evenmatch.uses.train.catseq_model import Shape
from evenmatch.uses.train.catseq_reward import REWARDS
from evenmatch.uses.train.catseq_settings import Settings, Stage

SCORER = "SCORER"  # stands for the folder of the scorer, which has to be trained first
_F1, _FG = REWARDS["f1"], REWARDS["fg"]
_FB = REWARDS["fb"].replace("fb(", f"fb(model={SCORER}, ")
MLE = "MLE"
# Table 1 of paper 004: what is trained for, stage by stage.
ARMS: Mapping[str, tuple[str, ...]] = {
    MLE: (),
    "RL(F1)": (_F1,),
    "RL(FG)": (_FG,),
    "RL(FB)": (_FB,),
    "2RL(FG)": (_FG, _F1),
    "2RL(FB)": (_FB, _F1),
}
FIRST = "RL(F1)"  # what the paper's own arms are compared with


def _less(setting: str) -> tuple[str, str]:
    return _FG.replace("fg(", f"fg({setting}, "), _F1


# Table 2: edit distance, token F1, and the penalties for repetition and number left out.
ABLATIONS: Mapping[str, tuple[str, ...]] = {
    "2RL(FG) w/o ED": _less("similarity=token_f1"),
    "2RL(FG) w/o TF": _less("similarity=edit"),
    "2RL(FG) w/o RRP": _less("repetition=False"),
    "2RL(FG) w/o GNP": _less("quantity=False"),
}
# Sized by a pilot so that each run takes some minutes on one core.
SETTINGS = Settings(
    words=6000,
    longest=300,
    shape=Shape(embedding=64, hidden=64, attention=64),
    likelihood=Course(epochs=12, batch=16, rate=2e-3, look_every=290),
)
STAGE = Stage(course=Course(epochs=2, batch=32, rate=3e-4, look_every=48, halve=False))


@dataclass(frozen=True, slots=True)
class Node:
    """One run: a seed, and the rewards of its stages; without any, maximum likelihood."""

    seed: int
    rewards: tuple[str, ...]

    @property
    def name(self) -> str:
        """What its files are called by."""
        known = {rewards: name for name, rewards in {**ARMS, **ABLATIONS}.items()}
        # Of an ablation's first stage no arm is made, but its second stage has a name.
        first = {r[:1]: f"{n} first stage" for n, r in ABLATIONS.items()}
        return f"{(first | known)[self.rewards]} seed {self.seed}"

    @property
    def before(self) -> Node:
        """The run that it starts from."""
        return Node(self.seed, self.rewards[:-1])


@dataclass(frozen=True, slots=True)
class Design:
    """Which arms are run with which seeds, and how."""

    arms: tuple[str, ...] = tuple(ARMS)
    seeds: tuple[int, ...] = (1, 2, 3)
    settings: Settings = SETTINGS
    stage: Stage = STAGE
    scorer: Mapping[str, Any] = field(default_factory=dict)  # settings of its training

    def __post_init__(self) -> None:
        known = {**ARMS, **ABLATIONS}
        for arm in self.arms:
            if arm not in known:
                raise InputError(f"the experiment has no arm {arm!r}; known: {', '.join(known)}")
        if not (self.arms and self.seeds):
            raise InputError("the experiment needs at least one arm and one seed")

    def nodes(self) -> list[Node]:
        """Every run, those that others start from first, one seed after the other."""
        known = {**ARMS, **ABLATIONS}
        return list(
            dict.fromkeys(
                Node(seed, known[arm][:depth])
                for seed in self.seeds
                for arm in self.arms
                for depth in range(len(known[arm]) + 1)
            )
        )
