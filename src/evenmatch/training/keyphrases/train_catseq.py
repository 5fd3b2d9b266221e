"""train_catseq: train a keyphrase generator by maximum likelihood, then by reinforcement.

The settings are `CatSeqSettings`, in Python or in a TOML file with the names of the documents
(`read_catseq_plan`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.documents import Document, read_documents
from evenmatch.data.scores import atomic_write
from evenmatch.errors import DataError, InputError
from evenmatch.registry import check_settings
from evenmatch.registry.parts import check_at_least, check_positive
from evenmatch.training.checkpoints import CheckpointFile, content_digest, is_unfinished
from evenmatch.training.keyphrases.catseq import CatSeq, CatSeqShape
from evenmatch.training.keyphrases.decoding import (
    WEIGHTS_FILE,
    KeyphraseGenerator,
    is_generator,
    load_generator,
)
from evenmatch.training.keyphrases.encoder_states import open_encoder
from evenmatch.training.keyphrases.objectives import (
    CatSeqStep,
    Objective,
    likelihood_objective,
    reward_metric,
    reward_objective,
    torch_generator,
)
from evenmatch.training.keyphrases.sequences import (
    KeyphraseExamples,
    build_vocabulary,
    epoch_batches,
    make_keyphrase_examples,
)
from evenmatch.training.keyphrases.token_hints import fit_token_hints
from evenmatch.training.loop import Evaluation, History, batches_by_step, run_training_loop
from evenmatch.training.settings import read_toml, replace_settings

HISTORY_FILE = "history.json"


@dataclass(frozen=True, slots=True)
class CatSeqTrainingSettings:
    """Epochs, examples per step, learning rate, and when to evaluate and stop.

    Training takes `epochs` epochs, or `most_steps` steps if that is less and not 0. Every
    `look_every` steps the model is evaluated on validation documents. With `halve`, the learning
    rate is halved when the result does not exceed the best so far; after `patience` such
    evaluations training ends. The model with the best evaluation is kept; the one that training
    started from is not evaluated. Without `train_reader`, the weights that encode documents stay
    as they are during reinforcement learning, which takes two thirds of the time.
    """

    epochs: int = 20
    batch: int = 12
    rate: float = 1e-3
    look_every: int = 4000
    patience: int = 4
    halve: bool = True
    clip: float = 1.0
    most_steps: int = 0
    train_reader: bool = True

    def __post_init__(self) -> None:
        check_settings(self)
        sizes = ("epochs", "batch", "look_every", "patience")
        check_at_least(1, **{name: getattr(self, name) for name in sizes})
        check_at_least(0, most_steps=self.most_steps)
        check_positive(rate=self.rate, clip=self.clip)


# From Chan et al. (2019): a lower rate than for maximum likelihood, and larger batches.
REINFORCEMENT_DEFAULTS = CatSeqTrainingSettings(epochs=20, batch=32, rate=5e-5, halve=False)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of reinforcement learning: its reward (f1, fg, fb or any spec) and settings."""

    reward: str = "f1"
    training: CatSeqTrainingSettings = REINFORCEMENT_DEFAULTS

    def to_dict(self) -> dict[str, Any]:
        """Return the stage as stored in the recipes of checkpoints and results."""
        return {"reward": self.reward, "course": asdict(self.training)}


@dataclass(frozen=True, slots=True)
class CatSeqSettings:
    """All settings of a generator except its documents.

    `words` is the size of the vocabulary; documents with more than `longest` tokens or more than
    `most_phrases` phrases are not used for training. After maximum likelihood on gold phrases
    come the `stages` of reinforcement learning, each starting from the model before it.
    """

    words: int = 50_002
    longest: int = 400
    most_phrases: int = 14
    seed: int = 0
    shape: CatSeqShape = CatSeqShape()
    likelihood: CatSeqTrainingSettings = CatSeqTrainingSettings()
    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        check_settings(self)
        check_at_least(1, longest=self.longest, most_phrases=self.most_phrases)
        check_at_least(0, seed=self.seed)


@dataclass(frozen=True, slots=True)
class CatSeqPlan:
    """Settings, and the files of training and validation documents."""

    train: tuple[str, ...]
    valid: tuple[str, ...]
    settings: CatSeqSettings = field(default_factory=CatSeqSettings)


def read_catseq_plan(path: str | PathLike[str]) -> CatSeqPlan:
    """Read a plan from a TOML file; unknown keys are refused.

    `train` and `valid` are lists of inputs of `read_documents`; `[shape]` and `[likelihood]` are
    tables; each `[[stages]]` has a `reward` and the training settings of the stage.
    """
    table, where = read_toml(path), str(path)
    train, valid = (_parse_documents(table.pop(name, None), name, where) for name in _DATA_KEYS)
    parts: dict[str, Any] = {
        name: replace_settings(usual, table.pop(name, {}), f"[{name}] of {where}")
        for name, usual in (("shape", CatSeqShape()), ("likelihood", CatSeqTrainingSettings()))
    }
    stages = table.pop("stages", [])
    if not isinstance(stages, list):
        raise InputError(f"stages in {where} must be tables, each under [[stages]]")
    parts["stages"] = tuple(_parse_stage(stage, f"[[stages]] of {where}") for stage in stages)
    settings = replace_settings(CatSeqSettings(**parts), table, where, others=(*_DATA_KEYS, *parts))
    return CatSeqPlan(train, valid, settings)


@dataclass(frozen=True)
class CatSeqData:
    """Training and validation examples."""

    training: KeyphraseExamples
    validation: KeyphraseExamples
    encoder: str = ""  # a hash of the pretrained encoder that reads them, if there is one

    @cached_property
    def digest(self) -> str:
        """A hash of all examples."""
        return content_digest((self.training.examples, self.validation.examples))


@dataclass(frozen=True, slots=True)
class CatSeqRun:
    """One training run: its name, its folder, and its history, which has ended or is paused."""

    name: str
    folder: Path
    history: History[CatSeqStep]


def train_catseq(
    plan: str | PathLike[str] | CatSeqPlan,
    out: str | PathLike[str],
    *,
    should_stop: Callable[[], bool] = lambda: False,
    log: Callable[[str], None] = lambda line: None,
) -> list[CatSeqRun]:
    """Run a plan, given as such or as a TOML file, in the folder `out`; resume a stopped one.

    The generators are in the folders `likelihood`, `stage-1`, `stage-2`, …, each with its history.
    `should_stop` is called after every step; training pauses when it returns True. `log` is told
    how many documents are used and why others are left out, and each evaluation.
    """
    parsed = plan if isinstance(plan, CatSeqPlan) else read_catseq_plan(plan)
    settings, folder = parsed.settings, Path(out).expanduser()
    for stage in settings.stages:
        reward_metric(stage.reward)  # report a wrong reward before any training
    documents, validation = (_read_documents(names) for names in (parsed.train, parsed.valid))
    data = prepare_catseq_data(documents, validation, settings)
    log(f"training: {data.training}")
    log(f"validation: {data.validation}")
    told: dict[str, Any] = {"should_stop": should_stop, "log": log}
    runs = [train_likelihood(data, settings, folder / "likelihood", **told)]
    for number, stage in enumerate(settings.stages, 1):
        before, place = runs[-1], folder / f"stage-{number}"
        if not before.history.ended:
            break
        runs.append(train_stage(data, stage, before.folder, place, settings.seed, **told))
    return runs


def prepare_catseq_data(
    documents: Sequence[Document], validation: Sequence[Document], settings: CatSeqSettings
) -> CatSeqData:
    """Convert documents to examples, without those that are too long or have too many phrases."""
    limits: dict[str, Any] = {"longest": settings.longest, "most_phrases": settings.most_phrases}
    encoder = None
    if settings.shape.encoder:
        shape = settings.shape
        encoder = open_encoder(shape.encoder, shape.layer, shape.pieces)
        if settings.longest > encoder.max_pieces:
            raise InputError(
                f"{shape.encoder} reads {encoder.max_pieces} word pieces; "
                f"set longest to that or less, got {settings.longest}"
            )
        limits["split"] = encoder.split
    return CatSeqData(
        make_keyphrase_examples(documents, **limits),
        make_keyphrase_examples(validation, **limits),
        encoder.digest if encoder else "",
    )


def train_likelihood(
    data: CatSeqData,
    settings: CatSeqSettings,
    folder: Path,
    *,
    should_stop: Callable[[], bool],
    log: Callable[[str], None] = lambda line: None,
) -> CatSeqRun:
    """Train on gold phrases by maximum likelihood, from scratch or from a checkpoint."""
    recipe = {
        "texts": data.digest,
        "shape": asdict(settings.shape),
        "course": asdict(settings.likelihood),
        "words": settings.words,
        "seed": settings.seed,
        "encoder": data.encoder,
    }

    def start() -> tuple[KeyphraseGenerator, Objective]:
        examples = data.training.examples
        vocabulary = build_vocabulary(examples, settings.words)
        hints = fit_token_hints(examples) if settings.shape.hints else None
        model = CatSeq(settings.shape, len(vocabulary), seed=settings.seed, hints=hints)
        model.initialize_vectors(vocabulary)
        generator = KeyphraseGenerator(model, vocabulary, settings.longest)
        return generator, likelihood_objective(generator, data.validation.examples)

    checkpoint = CheckpointFile(folder, recipe)
    return _train(start, data, settings.likelihood, settings.seed, checkpoint, should_stop, log)


def train_stage(
    data: CatSeqData,
    stage: Stage,
    before: Path,
    folder: Path,
    seed: int,
    *,
    should_stop: Callable[[], bool],
    log: Callable[[str], None] = lambda line: None,
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
        return generator, reward_objective(
            generator,
            data.validation.examples,
            metric,
            train_reader=stage.training.train_reader,
        )

    checkpoint = CheckpointFile(folder, recipe)
    return _train(start, data, stage.training, seed, checkpoint, should_stop, log)


def _train(
    start: Callable[[], tuple[KeyphraseGenerator, Objective]],
    data: CatSeqData,
    settings: CatSeqTrainingSettings,
    seed: int,
    checkpoint: CheckpointFile,
    should_stop: Callable[[], bool],
    log: Callable[[str], None],
) -> CatSeqRun:
    """Start or resume training; a run that has ended is saved with its history, and read again."""
    import torch

    folder = checkpoint.folder
    if finished := _load_finished(folder, checkpoint.recipe):
        return finished
    generator, objective = start()
    examples = data.training.examples
    if encoder := generator.model.encoder:
        encoder.keep(each.words for each in (*examples, *data.validation.examples))
    lengths = [objective.length(each) for each in examples]
    steps, batch_at = batches_by_step(
        lambda epoch: epoch_batches(lengths, settings.batch, seed=seed, number=epoch)
    )

    def step(number: int) -> tuple[Any, CatSeqStep]:
        batch = [examples[i] for i in batch_at(number)]
        return objective.loss(batch, torch_generator(seed, number))

    logged = 0

    def log_evaluation(history: History[CatSeqStep]) -> None:
        nonlocal logged
        if len(history.evaluations) > logged:
            logged = len(history.evaluations)
            at, quality = history.evaluations[-1]
            log(f"{folder.name}: step {at} of {history.steps}, validation {quality:.4f}")

    history: History[CatSeqStep] = run_training_loop(
        torch.optim.Adam(generator.model.parts.parameters(), lr=settings.rate),
        step,
        steps=min(settings.epochs * steps, settings.most_steps or settings.epochs * steps),
        schedule="halve" if settings.halve else "constant",
        clip=settings.clip,
        evaluation=Evaluation(
            objective.evaluate,
            every=settings.look_every,
            patience=settings.patience,
            rule="non_improving",
        ),
        checkpoint=checkpoint,
        make_metrics=CatSeqStep,
        on_step=log_evaluation,
        should_stop=should_stop,
    )
    if history.ended:
        kept = {
            "recipe": checkpoint.recipe,
            "steps": history.steps,
            "curves": [astuple(each) for each in history.step_metrics],
            "evaluations": history.evaluations,
        }
        text = json.dumps(kept)
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
    steps = [CatSeqStep(*each) for each in kept["curves"]]
    evaluations = [(int(step), value) for step, value in kept["evaluations"]]
    return CatSeqRun(folder.name, folder, History(kept["steps"], steps, evaluations, True))


def _read_documents(names: Sequence[str]) -> list[Document]:
    return [document for name in names for s in read_documents(name) for document in s.documents]


_DATA_KEYS = ("train", "valid")


def _parse_documents(given: Any, name: str, where: str) -> tuple[str, ...]:
    several = [given] if isinstance(given, str) else given
    if not (isinstance(several, list) and several and all(isinstance(x, str) for x in several)):
        raise InputError(f"{where} needs {name}, a list of document files, got {given!r}")
    return tuple(several)


def _parse_stage(table: dict[str, Any], where: str) -> Stage:
    reward = table.pop("reward", "")
    if not isinstance(reward, str) or not reward:
        raise InputError(f"{where} needs a reward: f1, fg, fb or the spec of a metric")
    training = replace_settings(REINFORCEMENT_DEFAULTS, table, where, others=("reward",))
    return Stage(reward, training)
