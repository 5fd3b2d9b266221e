"""Training that was killed at random moments and resumed gives the weights of one that was not."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import evenmatch as em
from evenmatch.data.fairness_sets import FairnessSet, make_fairness_pair
from evenmatch.fairness.adapter_training import DebiasSettings
from evenmatch.training import checkpoints
from evenmatch.training.checkpoints import CHECKPOINT_FILE, CheckpointFile
from evenmatch.training.keyphrases.train_catseq import train_catseq
from evenmatch.training.loop import FitSettings, training_threads
from tests.support.small_training import save_tiny, write_table
from tests.support.tuning import tiny
from tests.training.test_catseq import write_plan

pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("tensorboard", reason="tensorboard is not installed")


def fit(kind: str, inputs: Path, out: Path) -> None:
    settings = FitSettings(epochs=4, batch=4, rate=1e-3, head_rate=1e-2)
    model, ratings = str(inputs / "model"), str(inputs / "rated.jsonl")
    em.fit(ratings, out, test=ratings, kind=kind, model=model, frozen=1, settings=settings)  # type: ignore[arg-type]  # a kind


def distil(inputs: Path, out: Path) -> None:
    words = (inputs / "rated.jsonl").read_text().split()[:400]
    pairs = [em.Pair(" ".join(words[i : i + 5]), (words[i],)) for i in range(0, 400, 5)]
    teacher = f"bertscore(model={str(inputs / 'model')!r}, layer=4)"
    em.distil(teacher, pairs, out, blocks=2, settings=FitSettings(epochs=3, batch=4))


def debias(inputs: Path, out: Path) -> None:
    metric = f"bertscore(model={str(inputs / 'model')!r}, layer=2)"
    pairs = [em.Pair("He sat on the mat.", ("She sat on the mat.",)), em.Pair("Rain.", ("A box.",))]
    judged = make_fairness_pair("he ran", "it ran", "she ran", "it ran")
    em.debias(
        metric,
        out,
        [pairs],
        templates=False,
        settings=DebiasSettings(steps=30, batch=3, factor=4),
        judge_on=[FairnessSet("small", {"gender": [judged] * 2})],
    )


def tune(inputs: Path, out: Path) -> None:
    em.tune(tiny(inputs, str(out), epochs=4, patience=9, keep_every=2))


def catseq(inputs: Path, out: Path) -> None:
    train_catseq(write_plan(inputs, epochs=3, stage_epochs=2, count=60), out)


TRAINERS: dict[str, Callable[[Path, Path], None]] = {
    "fit": partial(fit, "towers"),
    "fit a cross-encoder": partial(fit, "cross"),
    "distil": distil,
    "debias": debias,
    "tune": tune,
    "catseq": catseq,
}


def train(name: str, inputs: Path, out: Path) -> None:
    with mock.patch.object(checkpoints, "SAVE_EVERY", 2), training_threads(1):
        TRAINERS[name](inputs, out)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    save_tiny(folder / "model")
    write_table(folder)
    return folder


def start_and_kill(name: str, inputs: Path, out: Path, delay: float) -> int | None:
    """Train in another process; kill it `delay` seconds after a checkpoint; return the code."""
    # A server that has imported this module and forks: importing torch takes seconds.
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([__name__])
    process = server.Process(target=train, args=(name, inputs, out))
    process.start()
    while process.is_alive() and not list(out.rglob(CHECKPOINT_FILE)):
        time.sleep(0.002)
    time.sleep(delay)
    process.kill()
    process.join()
    return process.exitcode


@pytest.mark.parametrize(
    ("name", "kills"),
    [
        *((name, 1) for name in ("fit", "debias", "tune", "catseq")),
        *(pytest.param(name, 5, marks=pytest.mark.slow) for name in TRAINERS),
    ],
)
def test_killed_training_resumes_to_the_same_weights(
    name: str, kills: int, inputs: Path, tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    written: list[float] = []
    write = CheckpointFile.write

    def timed_write(checkpoint: CheckpointFile, state: Mapping[str, Any]) -> None:
        written.append(time.monotonic())
        write(checkpoint, state)

    with mock.patch.object(CheckpointFile, "write", timed_write):
        train(name, inputs, whole)
    seconds = time.monotonic() - written[0]
    draw = random.Random(name)
    longest = seconds / (1 + kills)
    done = 0
    while done < kills:
        if start_and_kill(name, inputs, killed, draw.uniform(0, longest)) == -signal.SIGKILL:
            done += 1
        else:  # it had ended before it could be killed: begin again, and kill earlier
            shutil.rmtree(killed)
            done, longest = 0, longest / 2
    train(name, inputs, killed)
    expected = {p.relative_to(whole): p.read_bytes() for p in whole.rglob("*.safetensors")}
    found = {p.relative_to(killed): p.read_bytes() for p in killed.rglob("*.safetensors")}
    assert expected
    assert found == expected
