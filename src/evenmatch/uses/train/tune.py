"""tune: fine-tune an encoder-decoder on cross-entropy mixed with a reward."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.graphs_files import read_graphs
from evenmatch.data.rows import appearing
from evenmatch.scoring.ngram_sacrebleu import Bleu
from evenmatch.types import Pair
from evenmatch.uses.train.tune_batches import Examples, examples_of
from evenmatch.uses.train.tune_course import MODEL, Course, History, Keeper, Step, Watch, take
from evenmatch.uses.train.tune_logs import logging_to
from evenmatch.uses.train.tune_loss import mixed_loss
from evenmatch.uses.train.tune_policy import Policy, load_policy, make_policy
from evenmatch.uses.train.tune_reward import policy_reward
from evenmatch.uses.train.tune_settings import Tuning, read_tuning
from evenmatch.uses.train.tune_writing import write_texts
from evenmatch.vectors import checkpoints

RESULT, LOGS = "result.json", "logs"


@dataclass(frozen=True, slots=True)
class Tuned:
    """A run: the folder of its best model, and what happened; `ended` or paused."""

    model: Path
    history: History

    @property
    def document(self) -> dict[str, Any]:
        """The run as JSON has it: BLEU at each look, and the means of the steps before it."""
        rows, since = [], 0
        for step, bleu in self.history.looks:
            part = [asdict(told) for told in self.history.told[since:step]]
            means = {name: sum(t[name] for t in part) / len(part) for name in part[0]}
            rows.append({"step": step, "bleu": bleu, **means})
            since = step
        step, bleu = self.history.best
        return {
            "ended": self.history.ended,
            "steps": len(self.history.told),
            "best": {"step": step, "bleu": bleu} if rows else None,
            "looks": rows,
        }


def tune(
    settings: str | PathLike[str] | Tuning,
    *,
    watch: Watch = lambda history: None,
    enough: Callable[[], bool] = lambda: False,
) -> Tuned:
    """Carry out a run, or a TOML file with one; go on where it was stopped.

    In the folder `out`: `model`, the model at its best; `logs`, for TensorBoard; `result.json`.
    `watch` is called with the history after every step; `enough` then says whether to pause.
    """
    wanted = settings if isinstance(settings, Tuning) else read_tuning(settings)
    examples = examples_of(read_graphs(wanted.train), wanted)
    others = examples_of(read_graphs(wanted.valid)[: wanted.valid_count or None], wanted)
    folder = Path(wanted.out).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    policy = _policy(wanted, examples)
    keeper = Keeper(folder, _recipe(wanted, examples, others))
    course = Course(
        steps=examples.steps * wanted.epochs,
        look_every=wanted.look_every or examples.steps,
        step=_step(policy, wanted, examples),
        look=lambda: _bleu(policy, wanted, others),
    )
    with logging_to(folder / LOGS) as log:
        both = _one_after_the_other(log, watch)
        history = take(policy, wanted, keeper, course, watch=both, enough=enough)
    return _written(Tuned(folder / MODEL, history), folder)


def _one_after_the_other(first: Watch, second: Watch) -> Watch:
    def both(history: History) -> None:
        first(history)
        second(history)

    return both


def _written(tuned: Tuned, folder: Path) -> Tuned:
    with appearing(str(folder / RESULT)) as place:
        Path(place).write_text(json.dumps(tuned.document, indent=1), "utf-8")
    return tuned


def _policy(settings: Tuning, examples: Examples) -> Policy:
    if settings.model:
        return load_policy(settings.model)
    texts = [*examples.sources, *(text for some in examples.references for text in some)]
    return make_policy(settings.shape, texts, settings.seed)


def _step(policy: Policy, settings: Tuning, examples: Examples) -> Step:
    import torch

    reward = policy_reward(settings.reward, policy, own_embeddings=settings.own_embeddings)
    longest = (settings.longest_source, settings.longest_target)

    def step(number: int) -> tuple[Any, Any]:
        # Random numbers follow from the step's number, so a run goes on as if never stopped; those
        # that draw texts are others than those of dropout, which cross-entropy alone uses too.
        seed = _seed(settings.seed, number)
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


def _seed(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:6])


def _bleu(policy: Policy, settings: Tuning, others: Examples) -> float:
    longest = (settings.longest_source, settings.longest_target)
    texts = write_texts(policy, others.sources, longest=longest, at_a_time=4 * settings.batch)
    pairs = [Pair(t, r) for t, r in zip(texts, others.references, strict=True)]
    return Bleu()(pairs).corpus or 0.0


def _recipe(settings: Tuning, examples: Examples, others: Examples) -> dict[str, Any]:
    """What makes a run what it is; where it lies and how often it is kept do not."""
    texts = json.dumps([[e.sources, e.references] for e in (examples, others)])
    named = {k: v for k, v in asdict(settings).items() if k not in _PLACES}
    model = checkpoints.find(settings.model).digest if settings.model else ""
    digest = hashlib.sha256(texts.encode()).hexdigest()[:16]
    return {**named, "model": model, "texts": digest}


_PLACES = ("train", "valid", "out", "keep_every")
