"""train_catseq: a generator of keyphrases, by likelihood and then by stages of reinforcement."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.documents import Document
from evenmatch.data.documents_reading import read_documents
from evenmatch.data.rows import appearing
from evenmatch.errors import DataError
from evenmatch.uses.train.catseq_course import History, Keeper
from evenmatch.uses.train.catseq_generator import WEIGHTS, Generator, is_generator, load_generator
from evenmatch.uses.train.catseq_likelihood import learn_likelihood
from evenmatch.uses.train.catseq_model import CatSeq
from evenmatch.uses.train.catseq_policy import learn_reward
from evenmatch.uses.train.catseq_reward import reward_metric
from evenmatch.uses.train.catseq_settings import Plan, Settings, Stage, read_plan
from evenmatch.uses.train.catseq_vocabulary import vocabulary_of
from evenmatch.uses.train.catseq_words import Example, examples_of

CHECKPOINT, HISTORY = "checkpoint.pt", "history.json"


@dataclass(frozen=True, slots=True)
class Lessons:
    """What is learnt from and what is looked at."""

    examples: tuple[Example, ...]
    others: tuple[Example, ...]

    @property
    def digest(self) -> str:
        """The examples by content."""
        text = json.dumps([[asdict(e) for e in side] for side in (self.examples, self.others)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Trained:
    """One course of training: its name, its folder, and what happened; `ended` or paused."""

    name: str
    folder: Path
    history: History


def train_catseq(
    plan: str | PathLike[str] | Plan,
    out: str | PathLike[str],
    *,
    enough: Callable[[], bool] = lambda: False,
) -> list[Trained]:
    """Carry out a plan, or a TOML file with one, in a folder; go on where it was stopped.

    The generators are in the folders `likelihood`, `stage-1`, `stage-2`, …, each with its history.
    `enough` is asked after every step, and pauses training when it says so.
    """
    wanted = plan if isinstance(plan, Plan) else read_plan(plan)
    settings = wanted.settings
    lessons = lessons_of(_read(wanted.train), _read(wanted.valid), settings)
    return list(train(lessons, settings, Path(out).expanduser(), enough=enough))


def lessons_of(
    documents: Sequence[Document], others: Sequence[Document], settings: Settings
) -> Lessons:
    """Documents prepared; those that are too long or have too many phrases are left out."""
    limits = {"longest": settings.longest, "most_phrases": settings.most_phrases}
    return Lessons(*(tuple(examples_of(side, **limits)) for side in (documents, others)))


def train(
    lessons: Lessons, settings: Settings, folder: Path, *, enough: Callable[[], bool]
) -> Iterator[Trained]:
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
    lessons: Lessons, settings: Settings, folder: Path, *, enough: Callable[[], bool]
) -> Trained:
    """Learn to write people's phrases, from the start or from where it was stopped."""
    recipe = {
        "texts": lessons.digest,
        "shape": asdict(settings.shape),
        "course": asdict(settings.likelihood),
        "words": settings.words,
        "seed": settings.seed,
    }

    def begin() -> Generator:
        vocabulary = vocabulary_of(lessons.examples, settings.words)
        model = CatSeq(settings.shape, len(vocabulary), seed=settings.seed)
        return Generator(model, vocabulary, settings.longest)

    def learn(generator: Generator, keeper: Keeper) -> History:
        return learn_likelihood(
            generator.model,
            generator.vocabulary,
            *(lessons.examples, lessons.others),
            course=settings.likelihood,
            keeper=keeper,
            seed=settings.seed,
            enough=enough,
        )

    return _carried_out(folder, recipe, begin, learn)


def train_stage(
    lessons: Lessons,
    stage: Stage,
    before: Path,
    folder: Path,
    seed: int,
    *,
    enough: Callable[[], bool],
) -> Trained:
    """One stage of reinforcement on the generator in the folder `before`."""
    metric = reward_metric(stage.reward)
    recipe = {
        "texts": lessons.digest,
        "reward": metric.signature,
        "course": asdict(stage.course),
        "before": _content(before),
        "seed": seed,
    }

    def learn(generator: Generator, keeper: Keeper) -> History:
        return learn_reward(
            generator.model,
            generator.vocabulary,
            *(lessons.examples, lessons.others),
            metric=metric,
            course=stage.course,
            keeper=keeper,
            seed=seed,
            enough=enough,
        )

    return _carried_out(folder, recipe, lambda: load_generator(before), learn)


def _carried_out(
    folder: Path,
    recipe: dict[str, Any],
    begin: Callable[[], Generator],
    learn: Callable[[Generator, Keeper], History],
) -> Trained:
    """A course as it was kept, or taken now; a finished one is not taken again."""
    keeper = Keeper(folder / CHECKPOINT, recipe)
    if is_generator(folder) and (folder / HISTORY).is_file():
        return Trained(folder.name, folder, _history(folder, recipe))
    generator = begin()
    history = learn(generator, keeper)
    if history.ended:
        text = json.dumps({"recipe": recipe, **asdict(history)})
        with appearing(str(folder / HISTORY)) as place:
            Path(place).write_text(text, "utf-8")
        generator.save(folder)
        keeper.path.unlink()
    return Trained(folder.name, folder, history)


def _history(folder: Path, recipe: dict[str, Any]) -> History:
    """What happened in a course that has ended, if it was this one."""
    kept = json.loads((folder / HISTORY).read_text("utf-8"))
    if kept["recipe"] != recipe:
        raise DataError(
            f"{folder} was trained with other settings or documents; "
            "use those, or another folder, or remove it to start again"
        )
    return History(kept["told"], [(int(n), value) for n, value in kept["looks"]], True)


def _content(folder: Path) -> str:
    """The weights that a stage starts from, by content."""
    return hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()[:16]


def _read(names: Sequence[str]) -> list[Document]:
    return [document for name in names for s in read_documents(name) for document in s.documents]
