"""The training loop on a small regression: schedules, evaluation, early stopping and resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenmatch.errors import DataError
from evenmatch.training.checkpoints import CHECKPOINT_FILE, CheckpointFile, content_digest
from evenmatch.training.loop import Evaluation, History, Schedule, run_training_loop

torch = pytest.importorskip("torch", reason="torch is not installed")

STEPS = 12
QUALITIES = [0.1, 0.3, 0.2, 0.3, 0.4, 0.0, 0.0, 0.0]


class Regression:
    """A linear model, and a loss whose batch depends on the number of the step."""

    def __init__(self) -> None:
        self.weight = torch.zeros(3, requires_grad=True)
        self.optimizer = torch.optim.Adam([self.weight], lr=0.1)
        self.rates: list[float] = []
        self.evaluated: list[Any] = []

    def step(self, number: int) -> tuple[Any, float]:
        self.rates.append(self.optimizer.param_groups[0]["lr"])  # that of the step before
        inputs = torch.randn(4, 3, generator=torch.Generator().manual_seed(number))
        loss = ((inputs @ self.weight - inputs.sum(1)) ** 2).mean()
        return loss, float(loss.detach())

    def quality(self) -> float:
        """Return the next of the qualities, by the number of Adam's steps, so that it resumes."""
        state = self.optimizer.state_dict()["state"]
        done = int(state[0]["step"]) if state else 0
        self.evaluated.append(self.weight.detach().clone())
        return QUALITIES[done // 2]

    def run(self, schedule: Schedule = "linear", **changed: Any) -> History[float]:
        return run_training_loop(
            self.optimizer, self.step, **{"steps": STEPS, "schedule": schedule, **changed}
        )


def run(folder: Path | None = None, **changed: Any) -> tuple[Regression, History[float]]:
    model = Regression()
    checkpoint = CheckpointFile(folder, {"data": 1}, save_every=3) if folder else None
    return model, model.run(checkpoint=checkpoint, **changed)


@pytest.mark.parametrize("schedule", ["constant", "linear", "warmup", "halve"])
def test_a_paused_run_resumes_exactly(tmp_path: Path, schedule: Schedule) -> None:
    def evaluation(model: Regression) -> Evaluation:
        return Evaluation(model.quality, every=2, at_start=True)

    whole = Regression()
    expected = whole.run(schedule, evaluation=evaluation(whole), clip=0.5)
    for _ in range(STEPS):
        model = Regression()
        checkpoint = CheckpointFile(tmp_path, {}, save_every=5)
        paused = iter([False, True])
        found = model.run(
            schedule,
            evaluation=evaluation(model),
            clip=0.5,
            checkpoint=checkpoint,
            should_stop=lambda paused=paused: next(paused),
        )
    assert found == expected
    assert found.ended
    assert torch.equal(model.weight, whole.weight)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.1, 0.1, 0.1, 0.1]),
        ("linear", [0.1, 0.075, 0.05, 0.025]),
        ("warmup", [0.1, 0.1, 0.2 / 3, 0.1 / 3]),
        ("halve", [0.1, 0.1, 0.1, 0.1]),
    ],
)
def test_schedules_set_the_rate_of_each_step(schedule: Schedule, expected: list[float]) -> None:
    model, _ = run(schedule=schedule, steps=4)
    rates = [*model.rates[1:], model.optimizer.param_groups[0]["lr"]]
    assert rates == pytest.approx(expected)


def test_the_rate_is_halved_after_evaluations_without_improvement() -> None:
    model = Regression()
    model.run("halve", evaluation=Evaluation(model.quality, every=2, at_start=True))
    # evaluations after steps 4, 6, 10 and 12 do not exceed the best one before them
    assert model.rates[1:] == [0.1] * 4 + [0.05] * 2 + [0.025] * 4 + [0.0125]


@pytest.mark.parametrize(
    ("rule", "patience", "steps"),
    [
        ("non_improving", 2, 6),
        ("since_best", 2, 6),
        ("non_improving", 3, 10),
        ("since_best", 3, 12),
    ],
)
def test_training_ends_when_evaluations_no_longer_improve(
    rule: Any, patience: int, steps: int
) -> None:
    model = Regression()
    evaluation = Evaluation(model.quality, every=2, patience=patience, rule=rule, at_start=True)
    assert len(model.run(evaluation=evaluation).step_metrics) == steps


def test_the_best_weights_are_restored_at_the_end() -> None:
    model = Regression()
    history = model.run(evaluation=Evaluation(model.quality, every=2, at_start=True))
    assert history.best == (8, 0.4)
    assert torch.equal(model.weight.detach(), model.evaluated[4])


def test_the_best_weights_can_be_saved_instead() -> None:
    model = Regression()
    saved: list[Any] = []
    evaluation = Evaluation(
        model.quality, every=2, save_best=lambda: saved.append(model.weight.detach().clone())
    )
    history = model.run(evaluation=evaluation)
    assert [step for step, _ in history.evaluations] == [2, 4, 6, 8, 10, 12]
    assert len(saved) == 2
    assert torch.equal(saved[-1], model.evaluated[3])
    assert not torch.equal(saved[-1], model.weight.detach())


def test_evaluations_that_are_no_better_are_counted() -> None:
    history: History[float] = History(20, [], [(0, 0.1), (5, 0.3), (10, 0.2), (15, 0.3), (20, 0.4)])
    assert (history.non_improving, history.since_best, history.best) == (2, 0, (20, 0.4))


def test_a_checkpoint_of_another_recipe_is_refused(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(DataError, match="is from a run with other settings, texts or model; use"):
        Regression().run(checkpoint=CheckpointFile(tmp_path, {"data": 2}))


@pytest.mark.parametrize("left", [0, 1, 40, -200, -1])
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, left: int) -> None:
    run(tmp_path)
    path = tmp_path / CHECKPOINT_FILE
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(DataError, match=r"^cannot read .*checkpoint.pt \(\w+\); remove it"):
        run(tmp_path)


def test_a_checkpoint_of_other_weights_is_refused(tmp_path: Path) -> None:
    run(tmp_path)
    model = Regression()
    model.weight = torch.zeros(4, requires_grad=True)
    model.optimizer = torch.optim.Adam([model.weight], lr=0.1)
    with pytest.raises(DataError, match="cannot read"):
        model.run(checkpoint=CheckpointFile(tmp_path, {"data": 1}))


def test_what_a_killed_write_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / f".{CHECKPOINT_FILE}.123"
    left.write_bytes(b"half")
    run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT_FILE]


def test_a_digest_is_that_of_the_content() -> None:
    import numpy as np

    history: History[float] = History(3)
    assert content_digest([np.arange(3), history]) == content_digest([[0, 1, 2], History(3)])
    assert content_digest(["a", "b"]) != content_digest(["ab"])
