"""train_catseq: train a keyphrase generator by maximum likelihood, then by reinforcement."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.documents import Document, read_documents
from evenmatch.data.scores import atomic_write
from evenmatch.errors import DataError
from evenmatch.training.keyphrases.catseq import CatSeq
from evenmatch.training.keyphrases.catseq_run import CatSeqCheckpointer, CatSeqHistory
from evenmatch.training.keyphrases.catseq_settings import (
    CatSeqPlan,
    CatSeqSettings,
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
    maximize_likelihood,
    maximize_reward,
    reward_metric,
)
from evenmatch.training.keyphrases.sequences import (
    KeyphraseExample,
    build_vocabulary,
    make_keyphrase_examples,
)

CHECKPOINT_FILE, HISTORY_FILE = "checkpoint.pt", "history.json"


@dataclass(frozen=True, slots=True)
class CatSeqData:
    """Training and validation examples."""

    examples: tuple[KeyphraseExample, ...]
    validation: tuple[KeyphraseExample, ...]

    @property
    def digest(self) -> str:
        """A hash of all examples."""
        text = json.dumps([[asdict(e) for e in side] for side in (self.examples, self.validation)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class CatSeqRun:
    """One training run: its name, its folder, and its history, which has ended or is paused."""

    name: str
    folder: Path
    history: CatSeqHistory


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
    data = prepare_catseq_data(
        _read_documents(parsed.train), _read_documents(parsed.valid), parsed.settings
    )
    runs = run_stages(data, parsed.settings, Path(out).expanduser(), should_stop=should_stop)
    return list(runs)


def prepare_catseq_data(
    documents: Sequence[Document], validation: Sequence[Document], settings: CatSeqSettings
) -> CatSeqData:
    """Convert documents to examples, without those that are too long or have too many phrases."""
    limits = {"longest": settings.longest, "most_phrases": settings.most_phrases}
    return CatSeqData(
        *(tuple(make_keyphrase_examples(side, **limits)) for side in (documents, validation))
    )


def run_stages(
    data: CatSeqData, settings: CatSeqSettings, folder: Path, *, should_stop: Callable[[], bool]
) -> Iterator[CatSeqRun]:
    """Run maximum likelihood and each stage in turn, up to a run that is paused."""
    done = train_likelihood(data, settings, folder / "likelihood", should_stop=should_stop)
    yield done
    for number, stage in enumerate(settings.stages, 1):
        if not done.history.ended:
            return
        name = f"stage-{number}"
        done = train_stage(
            data, stage, done.folder, folder / name, settings.seed, should_stop=should_stop
        )
        yield done


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

    def initialize() -> KeyphraseGenerator:
        vocabulary = build_vocabulary(data.examples, settings.words)
        model = CatSeq(settings.shape, len(vocabulary), seed=settings.seed)
        return KeyphraseGenerator(model, vocabulary, settings.longest)

    def train(generator: KeyphraseGenerator, checkpointer: CatSeqCheckpointer) -> CatSeqHistory:
        return maximize_likelihood(
            generator.model,
            generator.vocabulary,
            *(data.examples, data.validation),
            settings=settings.likelihood,
            checkpointer=checkpointer,
            seed=settings.seed,
            should_stop=should_stop,
        )

    return _run_or_load(folder, recipe, initialize, train)


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
        "before": _weights_digest(before),
        "seed": seed,
    }

    def train(generator: KeyphraseGenerator, checkpointer: CatSeqCheckpointer) -> CatSeqHistory:
        return maximize_reward(
            generator.model,
            generator.vocabulary,
            *(data.examples, data.validation),
            metric=metric,
            settings=stage.training,
            checkpointer=checkpointer,
            seed=seed,
            should_stop=should_stop,
        )

    return _run_or_load(folder, recipe, lambda: load_generator(before), train)


def _run_or_load(
    folder: Path,
    recipe: dict[str, Any],
    initialize: Callable[[], KeyphraseGenerator],
    train: Callable[[KeyphraseGenerator, CatSeqCheckpointer], CatSeqHistory],
) -> CatSeqRun:
    """Return a finished run from its folder; otherwise start or resume it."""
    checkpointer = CatSeqCheckpointer(folder / CHECKPOINT_FILE, recipe)
    if is_generator(folder) and (folder / HISTORY_FILE).is_file():
        return CatSeqRun(folder.name, folder, _read_history(folder, recipe))
    generator = initialize()
    history = train(generator, checkpointer)
    if history.ended:
        text = json.dumps({"recipe": recipe, **history.to_dict()})
        with atomic_write(str(folder / HISTORY_FILE)) as place:
            Path(place).write_text(text, "utf-8")
        generator.save(folder)
        checkpointer.path.unlink()
    return CatSeqRun(folder.name, folder, history)


def _read_history(folder: Path, recipe: dict[str, Any]) -> CatSeqHistory:
    """Return the history of a finished run; a folder with another recipe is refused."""
    kept = json.loads((folder / HISTORY_FILE).read_text("utf-8"))
    if kept["recipe"] != recipe:
        raise DataError(
            f"{folder} was trained with other settings or documents; "
            "use those, choose another folder, or remove it to start again"
        )
    return CatSeqHistory(kept["told"], [(int(n), value) for n, value in kept["looks"]], True)


def _weights_digest(folder: Path) -> str:
    """Return a hash of a generator's weights."""
    return hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()[:16]


def _read_documents(names: Sequence[str]) -> list[Document]:
    return [document for name in names for s in read_documents(name) for document in s.documents]
