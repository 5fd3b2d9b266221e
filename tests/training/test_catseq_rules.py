"""The rules of training a keyphrase generator: best weights, clipping, halving, order of stages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenmatch.data.documents import read_documents
from evenmatch.training.keyphrases import train_catseq as module
from evenmatch.training.keyphrases.decoding import load_generator
from evenmatch.training.keyphrases.objectives import (
    likelihood_objective,
    reward_metric,
    reward_objective,
)
from evenmatch.training.keyphrases.train_catseq import (
    CatSeqRun,
    prepare_catseq_data,
    read_catseq_plan,
    train_catseq,
)
from evenmatch.training.loop import run_training_loop

torch = pytest.importorskip("torch", reason="torch is not installed")

# The rates are so high that some evaluations do not improve, and that no run ends with its best.
PLAN = """
train = ["{train}"]
valid = "{valid}"
words = 30
seed = 1

[shape]
embedding = 8
hidden = 8
attention = 8

[likelihood]
epochs = 5
batch = 6
rate = 0.1
look_every = 2
patience = 50
clip = 0.25

[[stages]]
reward = "fg"
epochs = 2
batch = 6
rate = 0.05
look_every = 1
patience = 50

[[stages]]
reward = "f1"
epochs = 1
batch = 12
rate = 0.01
look_every = 1
"""
NOUNS = "tree graph net parser model corpus".split()


@dataclass
class Loop:
    """What a training loop was called with, and what it did."""

    start: list[Any]
    end: list[Any]  # the same weights after training
    options: dict[str, Any]
    rates: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)


@dataclass
class Training:
    plan: Path
    runs: list[CatSeqRun]
    loops: list[Loop]


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("rules")
    draw = np.random.default_rng(0)
    files = {name: folder / f"{name}.jsonl" for name in ("train", "valid")}
    for path, count in zip(files.values(), (24, 12), strict=True):
        with path.open("w", encoding="utf-8") as file:
            for _ in range(count):
                a, b, c = draw.choice(NOUNS, 3)
                record = {"text": f"we study the {a} of a {b} .", "keyphrases": [a, f"{c} theory"]}
                file.write(json.dumps(record) + "\n")
    plan = folder / "plan.toml"
    plan.write_text(PLAN.format(**files))
    loops: list[Loop] = []

    def watch(optimizer: Any, step: Any, **options: Any) -> Any:
        (group,) = optimizer.param_groups
        start = [w.detach().clone() for w in group["params"]]
        loops.append(loop := Loop(start, group["params"], options))
        take = optimizer.step

        def watched(*args: Any, **kwargs: Any) -> Any:
            squares = [float((w.grad**2).sum()) for w in group["params"] if w.grad is not None]
            loop.norms.append(sum(squares) ** 0.5)
            loop.rates.append(group["lr"])
            return take(*args, **kwargs)

        optimizer.step = watched
        return run_training_loop(optimizer, step, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "run_training_loop", watch)
        yield Training(plan, train_catseq(plan, folder / "out"), loops)


def weights(folder: Path) -> list[Any]:
    return [w.detach() for w in load_generator(folder).model.parts.parameters()]


def validation(training: Training) -> Any:
    settings = read_catseq_plan(training.plan).settings
    (documents,) = read_documents(training.plan.parent / "valid.jsonl")
    return prepare_catseq_data(
        documents.documents, documents.documents, settings
    ).validation.examples


def test_the_generator_that_is_saved_is_the_best_one(training: Training) -> None:
    likelihood, first, _ = training.runs
    for run in (likelihood, first):
        assert run.history.best[1] > run.history.evaluations[-1][1] + 1e-3
    generator = load_generator(likelihood.folder)
    found = likelihood_objective(generator, validation(training)).evaluate()
    assert found == pytest.approx(likelihood.history.best[1], abs=1e-6)
    generator = load_generator(first.folder)
    found = reward_objective(generator, validation(training), reward_metric("fg")).evaluate()
    assert found == pytest.approx(first.history.best[1], abs=1e-6)


def test_each_stage_starts_from_the_best_weights_of_the_one_before(training: Training) -> None:
    for before, loop in zip(training.runs, training.loops[1:], strict=False):
        assert not all(map(torch.equal, loop.start, loop.end))  # the stage changed them
        for start, saved in zip(loop.start, weights(before.folder), strict=True):
            assert torch.equal(start, saved)


def test_gradients_are_clipped_at_the_norm_of_the_plan(training: Training) -> None:
    norms = training.loops[0].norms
    assert max(norms) == pytest.approx(0.25, rel=1e-4)  # and was above it
    assert len(norms) == len(training.runs[0].history.step_metrics)
    assert training.loops[1].options["clip"] == 1.0


def test_the_rate_is_halved_for_each_evaluation_that_does_not_improve(training: Training) -> None:
    history, rates = training.runs[0].history, training.loops[0].rates
    best, halved, wanted = -np.inf, 0, []
    qualities = dict(history.evaluations)
    for step in range(len(history.step_metrics)):
        if step in qualities:
            halved += not qualities[step] > best
            best = max(best, qualities[step])
        wanted.append(0.1 * 0.5**halved)
    assert rates == pytest.approx(wanted)
    assert min(rates) <= 0.025


def test_the_rate_of_reinforcement_stays(training: Training) -> None:
    assert set(training.loops[1].rates) == {0.05}
    assert training.runs[1].history.best != training.runs[1].history.evaluations[-1]
