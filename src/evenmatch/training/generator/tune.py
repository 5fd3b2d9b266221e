"""tune: fine-tune an encoder-decoder on cross-entropy mixed with a reward.

What TensorBoard shows of a run.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.graphs import read_graphs
from evenmatch.data.scores import atomic_write
from evenmatch.errors import MissingExtraError
from evenmatch.metrics.ngram.sacrebleu import Bleu
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.training.generator.loss import mixed_loss, policy_reward
from evenmatch.training.generator.policy import Policy, generate_texts, load_policy, make_policy
from evenmatch.training.generator.tune_run import (
    MODEL_FOLDER,
    Step,
    StepCallback,
    TuneCheckpointer,
    TuneExamples,
    TuneHistory,
    TuneLoop,
    make_tune_examples,
    run_tune_loop,
)
from evenmatch.training.generator.tune_settings import TuneSettings, read_tune_settings
from evenmatch.types import Pair

RESULT_FILE, LOG_FOLDER = "result.json", "logs"


@dataclass(frozen=True, slots=True)
class TuneResult:
    """A run: the folder of its best model, and what happened; `ended` or paused."""

    model: Path
    history: TuneHistory

    @property
    def document(self) -> dict[str, Any]:
        """The run as JSON has it: BLEU at each look, and the means of the steps before it."""
        rows, since = [], 0
        for step, bleu in self.history.evaluations:
            part = [asdict(told) for told in self.history.step_metrics[since:step]]
            means = {name: sum(t[name] for t in part) / len(part) for name in part[0]}
            rows.append({"step": step, "bleu": bleu, **means})
            since = step
        step, bleu = self.history.best
        return {
            "ended": self.history.ended,
            "steps": len(self.history.step_metrics),
            "best": {"step": step, "bleu": bleu} if rows else None,
            "looks": rows,
        }


def tune(
    settings: str | PathLike[str] | TuneSettings,
    *,
    watch: StepCallback = lambda history: None,
    enough: Callable[[], bool] = lambda: False,
) -> TuneResult:
    """Carry out a run, or a TOML file with one; go on where it was stopped.

    In the folder `out`: `model`, the model at its best; `logs`, for TensorBoard; `result.json`.
    `watch` is called with the history after every step; `enough` then says whether to pause.
    """
    wanted = settings if isinstance(settings, TuneSettings) else read_tune_settings(settings)
    examples = make_tune_examples(read_graphs(wanted.train), wanted)
    others = make_tune_examples(read_graphs(wanted.valid)[: wanted.valid_count or None], wanted)
    folder = Path(wanted.out).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    policy = _prepare_policy(wanted, examples)
    keeper = TuneCheckpointer(folder, _recipe(wanted, examples, others))
    course = TuneLoop(
        steps=examples.steps * wanted.epochs,
        look_every=wanted.look_every or examples.steps,
        step=_make_step(policy, wanted, examples),
        evaluate=lambda: _evaluate_bleu(policy, wanted, others),
    )
    with tensorboard_logger(folder / LOG_FOLDER) as log:
        both = _chain_callbacks(log, watch)
        history = run_tune_loop(policy, wanted, keeper, course, watch=both, enough=enough)
    return _write_result(TuneResult(folder / MODEL_FOLDER, history), folder)


def _chain_callbacks(first: StepCallback, second: StepCallback) -> StepCallback:
    def both(history: TuneHistory) -> None:
        first(history)
        second(history)

    return both


def _write_result(tuned: TuneResult, folder: Path) -> TuneResult:
    with atomic_write(str(folder / RESULT_FILE)) as place:
        Path(place).write_text(json.dumps(tuned.document, indent=1), "utf-8")
    return tuned


def _prepare_policy(settings: TuneSettings, examples: TuneExamples) -> Policy:
    if settings.model:
        return load_policy(settings.model)
    texts = [*examples.sources, *(text for some in examples.references for text in some)]
    return make_policy(settings.shape, texts, settings.seed)


def _make_step(policy: Policy, settings: TuneSettings, examples: TuneExamples) -> Step:
    import torch

    reward = policy_reward(settings.reward, policy, own_embeddings=settings.own_embeddings)
    longest = (settings.longest_source, settings.longest_target)

    def step(number: int) -> tuple[Any, Any]:
        # Random numbers follow from the step's number, so a run goes on as if never stopped; those
        # that draw texts are others than those of dropout, which cross-entropy alone uses too.
        seed = _step_seed(settings.seed, number)
        draw = torch.Generator().manual_seed(seed + 1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return mixed_loss(
                policy,
                examples(number),
                rl_weight=settings.rl_weight,
                reward=reward,
                draw=draw,
                longest=longest,
            )

    return step


def _step_seed(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:6])


def _evaluate_bleu(policy: Policy, settings: TuneSettings, others: TuneExamples) -> float:
    longest = (settings.longest_source, settings.longest_target)
    texts = generate_texts(policy, others.sources, longest=longest, at_a_time=4 * settings.batch)
    pairs = [Pair(t, r) for t, r in zip(texts, others.references, strict=True)]
    return Bleu()(pairs).corpus or 0.0


def _recipe(settings: TuneSettings, examples: TuneExamples, others: TuneExamples) -> dict[str, Any]:
    """What makes a run what it is; where it lies and how often it is kept do not."""
    texts = json.dumps([[e.sources, e.references] for e in (examples, others)])
    named = {k: v for k, v in asdict(settings).items() if k not in _EXCLUDED_SETTINGS}
    model = find_checkpoint(settings.model).digest if settings.model else ""
    digest = hashlib.sha256(texts.encode()).hexdigest()[:16]
    return {**named, "model": model, "texts": digest}


_EXCLUDED_SETTINGS = ("train", "valid", "out", "keep_every")


@contextmanager
def tensorboard_logger(folder: Path) -> Iterator[StepCallback]:
    """A watcher that writes each step and look into event files.

    A run that goes on says first from which step, so that what an interrupted one had written
    beyond it is not shown twice.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError(
            "the logs of a run need tensorboard; install it with: pip install 'evenmatch[tune]'"
        ) from None
    writers: list[SummaryWriter] = []

    def log(history: TuneHistory) -> None:
        number = len(history.step_metrics)
        if not writers:
            _wait_for_unique_name(folder)
            writers.append(SummaryWriter(str(folder), purge_step=number))
        for name, value in asdict(history.step_metrics[-1]).items():
            writers[0].add_scalar(f"train/{name}", value, number)
        if history.evaluations and history.evaluations[-1][0] == number:
            writers[0].add_scalar("valid/bleu", history.evaluations[-1][1], number)

    try:
        yield log
    finally:
        for writer in writers:
            writer.close()


def _wait_for_unique_name(folder: Path) -> None:
    """Wait while a new event file would not sort behind those there are.

    TensorBoard reads event files by name, and a name tells the second it was begun in: a run that
    goes on within the second it was stopped in might be read before what it goes on from.
    """
    begun = [int(each.name.split(".")[3]) for each in folder.glob("events.out.tfevents.*")]
    now = time.time()
    if int(now) in begun:
        time.sleep(int(now) + 1 - now)
