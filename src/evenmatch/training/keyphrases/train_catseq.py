"""train_catseq: train a keyphrase generator by maximum likelihood, then by reinforcement."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.documents import Document, read_documents
from evenmatch.data.scores import atomic_write
from evenmatch.errors import DataError
from evenmatch.training.checkpoints import CheckpointFile, content_digest, is_unfinished
from evenmatch.training.keyphrases.catseq import CatSeq
from evenmatch.training.keyphrases.catseq_settings import (
    CatSeqPlan,
    CatSeqSettings,
    CatSeqTrainingSettings,
    Stage,
    read_catseq_plan,
)
from evenmatch.training.keyphrases.decoding import (
    WEIGHTS_FILE,
    KeyphraseGenerator,
    is_generator,
    load_generator,
)
from evenmatch.training.keyphrases.objectives import (
    Objective,
    likelihood_objective,
    reward_metric,
    reward_objective,
    torch_generator,
)
from evenmatch.training.keyphrases.sequences import (
    KeyphraseExample,
    build_vocabulary,
    epoch_batches,
    make_keyphrase_examples,
)
from evenmatch.training.loop import Evaluation, History, batches_by_step, run_training_loop

HISTORY_FILE = "history.json"


@dataclass(frozen=True, slots=True)
class CatSeqData:
    """Training and validation examples."""

    examples: tuple[KeyphraseExample, ...]
    validation: tuple[KeyphraseExample, ...]

    @property
    def digest(self) -> str:
        """A hash of all examples."""
        return content_digest((self.examples, self.validation))


@dataclass(frozen=True, slots=True)
class CatSeqRun:
    """One training run: its name, its folder, and its history, which has ended or is paused."""

    name: str
    folder: Path
    history: History[float]


def train_catseq(
    plan: str | PathLike[str] | CatSeqPlan,
    out: str | PathLike[str],
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[CatSeqRun]:
    """Run a plan, given as such or as a TOML file, in the folder `out`; resume a stopped one.

    The generators are in the folders `likelihood`, `stage-1`, `stage-2`, …, each with its history.
    `should_stop` is called after every step; training pauses when it returns True.
    """
    parsed = plan if isinstance(plan, CatSeqPlan) else read_catseq_plan(plan)
    settings, folder = parsed.settings, Path(out).expanduser()
    documents, validation = (_read_documents(names) for names in (parsed.train, parsed.valid))
    data = prepare_catseq_data(documents, validation, settings)
    runs = [train_likelihood(data, settings, folder / "likelihood", should_stop=should_stop)]
    for number, stage in enumerate(settings.stages, 1):
        before, place = runs[-1], folder / f"stage-{number}"
        if not before.history.ended:
            break
        runs.append(
            train_stage(data, stage, before.folder, place, settings.seed, should_stop=should_stop)
        )
    return runs


def prepare_catseq_data(
    documents: Sequence[Document], validation: Sequence[Document], settings: CatSeqSettings
) -> CatSeqData:
    """Convert documents to examples, without those that are too long or have too many phrases."""
    limits = {"longest": settings.longest, "most_phrases": settings.most_phrases}
    return CatSeqData(
        *(tuple(make_keyphrase_examples(side, **limits)) for side in (documents, validation))
    )


def train_likelihood(
    data: CatSeqData, settings: CatSeqSettings, folder: Path, *, should_stop: Callable[[], bool]
) -> CatSeqRun:
    """Train on gold phrases by maximum likelihood, from scratch or from a checkpoint."""
    recipe = {
        "texts": data.digest,
        "shape": asdict(settings.shape),
        "course": asdict(settings.likelihood),
        "words": settings.words,
        "seed": settings.seed,
    }

    def start() -> tuple[KeyphraseGenerator, Objective]:
        vocabulary = build_vocabulary(data.examples, settings.words)
        model = CatSeq(settings.shape, len(vocabulary), seed=settings.seed)
        generator = KeyphraseGenerator(model, vocabulary, settings.longest)
        return generator, likelihood_objective(generator, data.validation)

    checkpoint = CheckpointFile(folder, recipe)
    return _train(start, data, settings.likelihood, settings.seed, checkpoint, should_stop)


def train_stage(
    data: CatSeqData,
    stage: Stage,
    before: Path,
    folder: Path,
    seed: int,
    *,
    should_stop: Callable[[], bool],
) -> CatSeqRun:
    """Run one stage of reinforcement learning from the generator in the folder `before`."""
    metric = reward_metric(stage.reward)
    recipe = {
        "texts": data.digest,
        "reward": metric.signature,
        "course": asdict(stage.training),
        "before": hashlib.sha256((before / WEIGHTS_FILE).read_bytes()).hexdigest()[:16],
        "seed": seed,
    }

    def start() -> tuple[KeyphraseGenerator, Objective]:
        generator = load_generator(before)
        return generator, reward_objective(generator, data.validation, metric)

    return _train(start, data, stage.training, seed, CheckpointFile(folder, recipe), should_stop)


def _train(
    start: Callable[[], tuple[KeyphraseGenerator, Objective]],
    data: CatSeqData,
    settings: CatSeqTrainingSettings,
    seed: int,
    checkpoint: CheckpointFile,
    should_stop: Callable[[], bool],
) -> CatSeqRun:
    """Start or resume training; a run that has ended is saved with its history, and read again."""
    import torch

    folder = checkpoint.folder
    if finished := _load_finished(folder, checkpoint.recipe):
        return finished
    generator, objective = start()
    lengths = [len(each.words) for each in data.examples]
    steps, batch_at = batches_by_step(
        lambda epoch: epoch_batches(lengths, settings.batch, seed=seed, number=epoch)
    )

    def step(number: int) -> tuple[Any, float]:
        batch = [data.examples[i] for i in batch_at(number)]
        return objective.loss(batch, torch_generator(seed, number))

    history: History[float] = run_training_loop(
        torch.optim.Adam(generator.model.parts.parameters(), lr=settings.rate),
        step,
        steps=settings.epochs * steps,
        schedule="halve" if settings.halve else "constant",
        clip=settings.clip,
        evaluation=Evaluation(
            objective.evaluate,
            every=settings.look_every,
            patience=settings.patience,
            rule="non_improving",
            at_start=True,
        ),
        checkpoint=checkpoint,
        should_stop=should_stop,
    )
    if history.ended:
        kept = {"told": history.step_metrics, "looks": history.evaluations, "ended": True}
        text = json.dumps({"recipe": checkpoint.recipe, "steps": history.steps, **kept})
        with atomic_write(str(folder / HISTORY_FILE)) as place:
            Path(place).write_text(text, "utf-8")
        generator.save(folder)
        checkpoint.remove()
    return CatSeqRun(folder.name, folder, history)


def _load_finished(folder: Path, recipe: Mapping[str, Any]) -> CatSeqRun | None:
    """Return a finished run from its folder, or None; one with another recipe is refused."""
    path = folder / HISTORY_FILE
    if not (is_generator(folder) and path.is_file()) or is_unfinished(folder):
        return None
    kept = json.loads(path.read_text("utf-8"))
    if kept["recipe"] != recipe:
        raise DataError(
            f"{folder} was trained with other settings or documents; "
            "use those, choose another folder, or remove it to start again"
        )
    told, evaluations = kept["told"], [(int(step), value) for step, value in kept["looks"]]
    return CatSeqRun(
        folder.name, folder, History(kept.get("steps", len(told)), told, evaluations, True)
    )


def _read_documents(names: Sequence[str]) -> list[Document]:
    return [document for name in names for s in read_documents(name) for document in s.documents]
