"""What the graph-to-text experiment compares: rewards, from one start per seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from evenmatch.errors import InputError
from evenmatch.uses.train.tune_settings import Shape, Tuning

START, XENT = "start", "XENT"
# Table 1 of paper 000: what is trained for beside cross-entropy, on the policy's own embeddings.
ARMS: Mapping[str, str] = {
    XENT: "",
    "BL-R": "bleu(smoothing='add-k')",
    "F_BERT": "bertscore",
    "F_CONT": "f_cont",
    "F_DISC": "f_disc",
}
_ANYWHERE = Tuning("", "", "", every_text=False, longest_source=100, longest_target=60)
# Sized by a pilot: a start takes some eight minutes on one core, a run from it less than four.
FIRST = replace(
    _ANYWHERE,
    rl_weight=0.0,
    epochs=6,
    batch=32,
    rate=2e-3,
    clip=5.0,
    patience=100,
    shape=Shape(words=3000, width=128, layers=2, heads=4, inner=256, dropout=0.05),
)
SECOND = replace(
    _ANYWHERE,
    epochs=1,
    batch=48,
    rate=5e-4,
    clip=5.0,
    patience=100,
    look_every=34,
    longest_target=48,  # something drawn is nearly always as long as it may be
)


@dataclass(frozen=True, slots=True)
class Node:
    """One run: a seed, and an arm or the start of them all."""

    seed: int
    arm: str = START

    @property
    def name(self) -> str:
        """What its files are called by."""
        return f"{self.arm} seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Design:
    """Which arms are run with which seeds, and how: the start, and what goes on from it."""

    arms: tuple[str, ...] = tuple(ARMS)
    seeds: tuple[int, ...] = (1, 2, 3)
    first: Tuning = FIRST
    second: Tuning = SECOND

    def __post_init__(self) -> None:
        for arm in self.arms:
            if arm not in ARMS:
                raise InputError(f"the experiment has no arm {arm!r}; known: {', '.join(ARMS)}")
        if not (self.arms and self.seeds):
            raise InputError("the experiment needs at least one arm and one seed")

    def nodes(self) -> list[Node]:
        """Every run, a start before those that go on from it, one seed after the other."""
        return [Node(seed, arm) for seed in self.seeds for arm in (START, *self.arms)]

    def tuning(self, node: Node) -> Tuning:
        """The settings of a run, but for where its files lie."""
        if node.arm == START:
            return replace(self.first, seed=node.seed)
        if node.arm == XENT:
            return replace(self.second, seed=node.seed, rl_weight=0.0)
        return replace(self.second, seed=node.seed, reward=ARMS[node.arm])


def design(data: str, arms: tuple[str, ...], seeds: tuple[int, ...]) -> Design:
    """The design for one of the corpora: fewer graphs take more passes in smaller batches."""
    if data == "amr":
        first = replace(FIRST, batch=16, longest_source=200, epochs=24, look_every=316)
        second = replace(SECOND, batch=16, longest_source=200, epochs=3, look_every=48)
        return Design(arms, seeds, first, second)
    return Design(arms, seeds)
