from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from evenmatch.data.graphs import read_graphs, write_graphs
from evenmatch.training.generator.tune import tune
from evenmatch.training.generator.tune_settings import T5Shape, TuneSettings
from evenmatch.training.loop import training_threads

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("tensorboard", reason="tensorboard is not installed")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_in_three_minutes_the_reward_rises_and_cross_entropy_does_not_collapse(
    data: Path, tmp_path: Path
) -> None:
    """Real triples: a start by cross-entropy alone, then F_DISC mixed in from there."""
    triples = [
        each for each in read_graphs("webnlg-v2/train.jsonl.gz") if len(each.graph.line) < 90
    ]
    train, valid = (str(tmp_path / f"{name}.jsonl") for name in ("train", "valid"))
    write_graphs(triples[:1500], train)
    write_graphs(triples[1500:1540], valid)
    start = TuneSettings(
        train,
        valid,
        out=str(tmp_path / "start"),
        rl_weight=0.0,
        epochs=14,
        batch=32,
        rate=3e-3,
        every_text=False,
        longest_target=40,
        shape=T5Shape(words=1000, width=64, layers=2, heads=4, inner=128),
        seed=3,
    )
    with training_threads(1):
        first = tune(start)
        second = dataclasses.replace(
            start,
            out=str(tmp_path / "rl"),
            model=str(first.model),
            rl_weight=0.5,
            epochs=2,
            rate=5e-4,
        )
        told = tune(second).history.step_metrics
    early, late = told[: len(told) // 4], told[-len(told) // 4 :]
    reward = [float(np.mean([t.reward for t in part])) for part in (early, late)]
    entropy = [float(np.mean([t.cross_entropy for t in part])) for part in (early, late)]
    assert reward[1] > reward[0]
    assert entropy[1] < 1.1 * entropy[0]
