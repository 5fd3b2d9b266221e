"""tune: fine-tune a language model on cross-entropy mixed with a reward (Jin & Gildea 2022).

Read in this order: `tune` here, the loop in `training/loop.py`, the loss in `loss.py`.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from evenmatch.data.graphs import GraphText, read_graphs
from evenmatch.data.scores import replace_file
from evenmatch.errors import DataError, InputError, needs_extra
from evenmatch.files import hold_lock
from evenmatch.metrics.ngram.sacrebleu import Bleu, Chrf
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.metric import as_metric
from evenmatch.training.checkpoints import CheckpointFile, content_digest
from evenmatch.training.generator.decoding import generate_texts
from evenmatch.training.generator.loss import StepMetrics, TuneBatch, mixed_loss, policy_reward
from evenmatch.training.generator.policy import (
    Policy,
    choose_trainable,
    load_policy,
    make_policy,
    save_policy,
)
from evenmatch.training.generator.tune_settings import TuneSettings, read_tune_settings
from evenmatch.training.loop import (
    Evaluation,
    History,
    batches_by_step,
    length_grouped_batches,
    run_training_loop,
)
from evenmatch.training.rewards import lowercase_words, repeated_share
from evenmatch.types import Pair

MODEL_FOLDER, LAST_FOLDER, LOG_FOLDER = "model", "last", "logs"
RESULT_FILE, EVALUATIONS_FILE, LOCK_FILE = "result.json", "evaluations.json", ".lock"
StepCallback: TypeAlias = Callable[[History[StepMetrics]], None]
_EXCLUDED_SETTINGS = ("train", "valid", "out", "keep_every", "keep_last")  # not of the run itself
_SORTED_BATCHES = 100  # batches whose examples are sorted by length together, to limit padding
_SOURCE_STEP = 4  # inputs whose numbers of tokens differ by less are sorted by their targets'
_LONG = 1_000_000  # more tokens than a text has
_EXAMPLE_COUNT = 4  # validation texts that are stored at each evaluation


@dataclass(frozen=True, slots=True)
class TuneResult:
    """The folder of the best model, and the history of the run, which has ended or is paused.

    `evaluations` holds, by step, what the model wrote for the validation set: `chrf`,
    `greedy_length` (words), `greedy_repetition`, and `examples` of input, text and reference.
    `new_steps` is the number of steps taken by this call: 0 if the run had already ended.
    `settings` are the reward, and the settings that differ from their defaults.
    """

    model: Path
    history: History[StepMetrics]
    evaluations: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    new_steps: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ending(self) -> str:
        """Why the run stopped, as one line."""
        history, steps = self.history, len(self.history.step_metrics)
        if not history.ended:
            return f"paused at step {steps} of {history.steps}"
        if not self.new_steps:
            return f"run is already finished ({steps} steps); nothing to do"
        best = f"best: step {history.best[0]}"
        if steps < history.steps:
            tried = history.since_best
            return (
                f"stopped at step {steps} of {history.steps}: BLEU has not improved for {tried} "
                f"evaluation{'s' if tried > 1 else ''} (patience); {best}"
            )
        return f"finished {steps} steps; {best}"

    @property
    def last(self) -> Path:
        """The folder of the model after the last step, if `keep_last` is set."""
        return self.model.with_name(LAST_FOLDER)

    @property
    def document(self) -> dict[str, Any]:
        """The run as JSON: BLEU at each evaluation, with means over the steps since the last."""
        rows, examples, since = [], [], 0
        for step, bleu in self.history.evaluations:
            steps = [asdict(each) for each in self.history.step_metrics[since:step]]
            means = {name: sum(each[name] for each in steps) / len(steps) for name in steps[0]}
            written = dict(self.evaluations.get(step, {}))
            examples += [{"step": step, **each} for each in written.pop("examples", ())]
            rows.append({"step": step, "bleu": bleu, **means, **written})
            since = step
        step, bleu = self.history.best
        return {
            "ended": self.history.ended,
            "steps": len(self.history.step_metrics),
            "best": {"step": step, "bleu": bleu} if rows else None,
            "looks": rows,
            "examples": examples,
            "settings": dict(self.settings),
        }


@check_arguments
def tune(
    settings: str | PathLike[str] | TuneSettings,
    *,
    on_step: StepCallback = lambda history: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> TuneResult:
    """Run the settings, given as such or as a TOML file; resume a run that was stopped.

    The folder `out` gets `model` (the best model), `logs` (for TensorBoard), `evaluations.json`
    (texts at each evaluation) and `result.json`.
    `on_step` is called with the history after every step; the run pauses when `should_stop`
    returns True.
    """
    config = settings if isinstance(settings, TuneSettings) else read_tune_settings(settings)
    as_metric(config.reward)  # a misspelt name is an error before a model is made
    graphs, valid = read_graphs(config.train), read_graphs(config.valid)
    folder = Path(config.out).expanduser()
    if folder.is_file():
        raise InputError(f"out is the file {folder}; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with hold_lock(folder / LOCK_FILE, wait=False):
            return _tune(config, graphs, valid, folder, on_step, should_stop)
    except BlockingIOError:
        raise InputError(f"another run is writing to {folder}; wait, or name another out") from None


def _tune(
    config: TuneSettings,
    graphs: Sequence[GraphText],
    valid: Sequence[GraphText],
    folder: Path,
    on_step: StepCallback,
    should_stop: Callable[[], bool],
) -> TuneResult:
    import torch

    policy = prepare_policy(config, graphs)
    policy.model.train()
    examples = TuneExamples(graphs, config, policy.tokenizer)
    validation = TuneExamples(valid[: config.valid_count or None], config, policy.tokenizer)
    step, evaluator = _make_step(policy, config, examples), _Evaluator(policy, config, validation)
    evaluation = Evaluation(
        evaluator,
        every=config.look_every or examples.steps,
        patience=config.patience,
        save_best=lambda: save_policy(policy, folder / MODEL_FOLDER, config.decoding),
    )

    new_steps = 0

    def take_step(number: int) -> tuple[Any, StepMetrics]:
        nonlocal new_steps
        new_steps += 1
        evaluator.steps_taken = number + 1
        return step(number)

    recipe = {
        **{k: v for k, v in asdict(config).items() if k not in _EXCLUDED_SETTINGS},
        "model": find_checkpoint(config.model).digest if config.model else "",
        "texts": content_digest(
            [[each.sources, each.references] for each in (examples, validation)]
        ),
    }
    with tensorboard_logger(folder / LOG_FOLDER) as log:

        def log_and_call(history: History[StepMetrics]) -> None:
            log(history)
            on_step(history)

        history = run_training_loop(
            torch.optim.Adam(
                [each for each in policy.model.parameters() if each.requires_grad],
                lr=config.rate,
                fused=True,
            ),
            take_step,
            steps=min(config.steps or sys.maxsize, examples.steps * config.epochs),
            schedule="linear",
            clip=config.clip,
            evaluation=evaluation,
            checkpoint=CheckpointFile(folder, recipe, config.keep_every),
            make_metrics=StepMetrics,
            on_step=log_and_call,
            should_stop=should_stop,
        )
    if history.ended and config.keep_last:
        save_policy(policy, folder / LAST_FOLDER, config.decoding)
    usual = TuneSettings(config.train, config.valid, config.out)
    given = {k: v for k, v in asdict(config).items() if k == "reward" or v != asdict(usual)[k]}
    result = TuneResult(folder / MODEL_FOLDER, history, evaluator.found, new_steps, given)
    replace_file(folder / RESULT_FILE, json.dumps(result.document, indent=1))
    return result


class TuneExamples:
    """Graphs as the lines of text that a model reads, their references, and batches of both.

    Inputs and texts of similar length share a batch, so that little of it is padding. The batch of
    a step depends on the seed and the step's number alone, so a run that is stopped and resumed
    takes the same steps as one that is not.
    """

    def __init__(self, graphs: Sequence[GraphText], settings: TuneSettings, tokenizer: Any) -> None:
        self.settings, self._tokenizer = settings, tokenizer
        self.sources = tuple(settings.prefix + each.graph.line for each in graphs)
        self.references = tuple(each.references for each in graphs)
        self.steps, self._batch = batches_by_step(self._epoch_batches)  # steps per epoch

    def __call__(self, step: int) -> TuneBatch:
        """Return the batch of a step, counted from 0 over all epochs."""
        chosen = self._batch(step)
        return TuneBatch(
            tuple(self.sources[i] for i, _ in chosen),
            tuple(self.references[i][k] for i, k in chosen),
            tuple(self.references[i] for i, _ in chosen),
        )

    def _epoch_batches(self, epoch: int) -> list[list[tuple[int, int]]]:
        """Return the batches of one epoch as (input, reference) indices."""
        draw = np.random.default_rng([self.settings.seed, epoch])
        texts = [len(references) for references in self.references]
        if self.settings.every_text:
            pairs = [(i, k) for i, count in enumerate(texts) for k in range(count)]
        else:
            pairs = [(i, int(draw.integers(count))) for i, count in enumerate(texts)]
        sources = self._count_tokens(self.sources)
        targets = self._count_tokens([self.references[i][k] for i, k in pairs])
        lengths = [
            sources[i] // _SOURCE_STEP * _LONG + target
            for (i, _), target in zip(pairs, targets, strict=True)
        ]
        batches = length_grouped_batches(lengths, self.settings.batch, draw, _SORTED_BATCHES)
        return [[pairs[n] for n in batch] for batch in batches]

    def _count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self._tokenizer(list(texts))["input_ids"]]


def prepare_policy(settings: TuneSettings, graphs: Sequence[GraphText]) -> Policy:
    """Load or make the model of the settings, and freeze what is not trained."""
    import torch

    policy: Policy
    if settings.model:
        policy = load_policy(settings.model, settings.decoding)
    else:
        sources = (settings.prefix + each.graph.line for each in graphs)
        texts = [*sources, *(text for each in graphs for text in each.references)]
        policy = make_policy(settings.shape, texts, settings.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)  # of the adapters
        return choose_trainable(
            policy, last_blocks=settings.last_blocks, lora_rank=settings.lora_rank
        )


def _make_step(
    policy: Policy, settings: TuneSettings, examples: TuneExamples
) -> Callable[[int], tuple[Any, StepMetrics]]:
    import torch

    reward = policy_reward(settings.reward, policy, own_embeddings=settings.own_embeddings)
    longest = (settings.longest_source, settings.longest_target)

    def step(number: int) -> tuple[Any, Any]:
        # Random numbers depend only on the step's number, so a resumed run continues as if never
        # stopped. Sampling has a generator of its own, so dropout is the same without a reward.
        seed = _step_seed(settings.seed, number)
        generator = torch.Generator().manual_seed(seed + 1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return mixed_loss(
                policy,
                examples(number),
                rl_weight=settings.rl_weight,
                reward=reward,
                generator=generator,
                longest=longest,
                samples=settings.samples,
                baseline=settings.baseline,
            )

    return step


def _step_seed(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:6])


class _Evaluator:
    """Writes a text for each validation input, returns BLEU, and stores the rest in a file.

    The file holds each evaluation under the number of steps taken. An evaluation that is repeated
    after a kill replaces its equal.
    """

    def __init__(self, policy: Policy, settings: TuneSettings, validation: TuneExamples) -> None:
        self.policy, self.settings, self.validation = policy, settings, validation
        self.steps_taken = 0
        self.path = Path(settings.out).expanduser() / EVALUATIONS_FILE
        self.found: dict[int, dict[str, Any]] = {}
        if self.path.exists():
            try:
                kept = json.loads(self.path.read_text("utf-8"))
                self.found = {int(step): each for step, each in kept.items()}
            except (AttributeError, ValueError):
                raise DataError(f"cannot read {self.path}; remove it") from None

    def __call__(self) -> float:
        """Return BLEU on the validation set."""
        settings, validation = self.settings, self.validation
        texts = generate_texts(
            self.policy,
            validation.sources,
            longest=(settings.longest_source, settings.longest_target),
            batch_size=max(4 * settings.batch, 64),
        )
        pairs = [Pair(t, r) for t, r in zip(texts, validation.references, strict=True)]
        words = [lowercase_words(text) for text in texts]
        self.found[self.steps_taken] = {
            "chrf": Chrf()(pairs).corpus or 0.0,
            "greedy_length": float(np.mean([len(each) for each in words])),
            "greedy_repetition": float(np.mean([repeated_share(each) for each in words])),
            "examples": [
                {"source": source, "text": pair.candidate, "reference": pair.references[0]}
                for source, pair in zip(validation.sources[:_EXAMPLE_COUNT], pairs, strict=False)
            ],
        }
        replace_file(self.path, json.dumps(self.found, ensure_ascii=False))
        return Bleu()(pairs).corpus or 0.0


@contextmanager
def tensorboard_logger(folder: Path) -> Iterator[StepCallback]:
    """Yield a callback that writes each step and evaluation to TensorBoard event files.

    A resumed run purges the steps after its checkpoint, so that they are not shown twice.
    """
    with needs_extra(
        "the logs of a run need tensorboard; install it with: pip install 'evenmatch[tune]'"
    ):
        from torch.utils.tensorboard import SummaryWriter
    writers: list[SummaryWriter] = []

    def log(history: History[StepMetrics]) -> None:
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
    """Wait until the name of a new event file sorts after the existing ones.

    TensorBoard reads event files in the order of their names, which contain the start time in
    seconds; a run resumed within the same second might be read before the run it resumes.
    """
    started = [int(each.name.split(".")[3]) for each in folder.glob("events.out.tfevents.*")]
    now = time.time()
    if int(now) in started:
        time.sleep(int(now) + 1 - now)
