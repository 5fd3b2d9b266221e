"""train_catseq: a generator of keyphrases, by likelihood and then by stages of reinforcement."""

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
    """What is learnt from and what is looked at."""

    examples: tuple[KeyphraseExample, ...]
    validation: tuple[KeyphraseExample, ...]

    @property
    def digest(self) -> str:
        """The examples by content."""
        text = json.dumps([[asdict(e) for e in side] for side in (self.examples, self.validation)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class CatSeqRun:
    """One course of training: its name, its folder, and what happened; `ended` or paused."""

    name: str
    folder: Path
    history: CatSeqHistory


def train_catseq(
    plan: str | PathLike[str] | CatSeqPlan,
    out: str | PathLike[str],
    *,
    enough: Callable[[], bool] = lambda: False,
) -> list[CatSeqRun]:
    """Carry out a plan, or a TOML file with one, in a folder; go on where it was stopped.

    The generators are in the folders `likelihood`, `stage-1`, `stage-2`, …, each with its history.
    `enough` is asked after every step, and pauses training when it says so.
    """
    wanted = plan if isinstance(plan, CatSeqPlan) else read_catseq_plan(plan)
    settings = wanted.settings
    lessons = prepare_catseq_data(
        _read_documents(wanted.train), _read_documents(wanted.valid), settings
    )
    return list(run_stages(lessons, settings, Path(out).expanduser(), enough=enough))


def prepare_catseq_data(
    documents: Sequence[Document], others: Sequence[Document], settings: CatSeqSettings
) -> CatSeqData:
    """Documents prepared; those that are too long or have too many phrases are left out."""
    limits = {"longest": settings.longest, "most_phrases": settings.most_phrases}
    return CatSeqData(
        *(tuple(make_keyphrase_examples(side, **limits)) for side in (documents, others))
    )


def run_stages(
    lessons: CatSeqData, settings: CatSeqSettings, folder: Path, *, enough: Callable[[], bool]
) -> Iterator[CatSeqRun]:
    """Every course in turn, up to one that was paused."""
    done = train_likelihood(lessons, settings, folder / "likelihood", enough=enough)
    yield done
    for number, stage in enumerate(settings.stages, 1):
        if not done.history.ended:
            return
        name = f"stage-{number}"
        done = train_stage(lessons, stage, done.folder, folder / name, settings.seed, enough=enough)
        yield done


def train_likelihood(
    lessons: CatSeqData, settings: CatSeqSettings, folder: Path, *, enough: Callable[[], bool]
) -> CatSeqRun:
    """Learn to write people's phrases, from the start or from where it was stopped."""
    recipe = {
        "texts": lessons.digest,
        "shape": asdict(settings.shape),
        "course": asdict(settings.likelihood),
        "words": settings.words,
        "seed": settings.seed,
    }

    def begin() -> KeyphraseGenerator:
        vocabulary = build_vocabulary(lessons.examples, settings.words)
        model = CatSeq(settings.shape, len(vocabulary), seed=settings.seed)
        return KeyphraseGenerator(model, vocabulary, settings.longest)

    def learn(generator: KeyphraseGenerator, keeper: CatSeqCheckpointer) -> CatSeqHistory:
        return maximize_likelihood(
            generator.model,
            generator.vocabulary,
            *(lessons.examples, lessons.validation),
            course=settings.likelihood,
            keeper=keeper,
            seed=settings.seed,
            enough=enough,
        )

    return _run_or_load(folder, recipe, begin, learn)


def train_stage(
    lessons: CatSeqData,
    stage: Stage,
    before: Path,
    folder: Path,
    seed: int,
    *,
    enough: Callable[[], bool],
) -> CatSeqRun:
    """One stage of reinforcement on the generator in the folder `before`."""
    metric = reward_metric(stage.reward)
    recipe = {
        "texts": lessons.digest,
        "reward": metric.signature,
        "course": asdict(stage.course),
        "before": _weights_digest(before),
        "seed": seed,
    }

    def learn(generator: KeyphraseGenerator, keeper: CatSeqCheckpointer) -> CatSeqHistory:
        return maximize_reward(
            generator.model,
            generator.vocabulary,
            *(lessons.examples, lessons.validation),
            metric=metric,
            course=stage.course,
            keeper=keeper,
            seed=seed,
            enough=enough,
        )

    return _run_or_load(folder, recipe, lambda: load_generator(before), learn)


def _run_or_load(
    folder: Path,
    recipe: dict[str, Any],
    begin: Callable[[], KeyphraseGenerator],
    learn: Callable[[KeyphraseGenerator, CatSeqCheckpointer], CatSeqHistory],
) -> CatSeqRun:
    """A course as it was kept, or taken now; a finished one is not taken again."""
    keeper = CatSeqCheckpointer(folder / CHECKPOINT_FILE, recipe)
    if is_generator(folder) and (folder / HISTORY_FILE).is_file():
        return CatSeqRun(folder.name, folder, _read_history(folder, recipe))
    generator = begin()
    history = learn(generator, keeper)
    if history.ended:
        text = json.dumps({"recipe": recipe, **asdict(history)})
        with atomic_write(str(folder / HISTORY_FILE)) as place:
            Path(place).write_text(text, "utf-8")
        generator.save(folder)
        keeper.path.unlink()
    return CatSeqRun(folder.name, folder, history)


def _read_history(folder: Path, recipe: dict[str, Any]) -> CatSeqHistory:
    """What happened in a course that has ended, if it was this one."""
    kept = json.loads((folder / HISTORY_FILE).read_text("utf-8"))
    if kept["recipe"] != recipe:
        raise DataError(
            f"{folder} was trained with other settings or documents; "
            "use those, or another folder, or remove it to start again"
        )
    return CatSeqHistory(kept["told"], [(int(n), value) for n, value in kept["looks"]], True)


def _weights_digest(folder: Path) -> str:
    """The weights that a stage starts from, by content."""
    return hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()[:16]


def _read_documents(names: Sequence[str]) -> list[Document]:
    return [document for name in names for s in read_documents(name) for document in s.documents]
