"""The runs of the keyphrase experiment: each a course of training that leaves a small result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.documents import Document, DocumentSet
from evenmatch.uses.study.cells import Cells, slug
from evenmatch.uses.study.keyphrase_arms import ARMS, SCORER, Design, Node
from evenmatch.uses.study.keyphrase_corpus import Corpus
from evenmatch.uses.study.runs import carry_out, read_packed, thinned, write_packed
from evenmatch.uses.train.catseq import Lessons, Trained, lessons_of, train_likelihood, train_stage
from evenmatch.uses.train.catseq_generator import load_generator
from evenmatch.uses.train.keyphrase_fit import fit_keyphrases

Predictions: TypeAlias = Mapping[
    str, tuple[tuple[str, ...], ...]
]  # by test set, document by document

_TAUGHT_BY = 1200  # documents whose predicted phrases teach the scorer
_PAIRS = 8000  # of phrases, to teach it


@dataclass(frozen=True, slots=True)
class Result:
    """What a run left: its curves, how long it took, and what its generator predicts."""

    node: Node
    told: Sequence[float]
    looks: Sequence[tuple[int, float]]
    steps: int
    seconds: float
    predictions: Predictions


@dataclass
class Runs:
    """The experiment in its folder: results in `cells` and `predictions`, weights in `models`."""

    corpus: Corpus
    design: Design
    folder: Path
    enough: Callable[[], bool] = lambda: False
    told: Callable[[str], None] = lambda _: None
    _lessons: list[Lessons] = field(default_factory=list)

    def __call__(self) -> list[Result]:
        """Every result, made now where it is not there; fewer when it was `enough` before."""
        return carry_out(self.design.nodes(), self.kept, self._made)

    def results(self) -> list[Result]:
        """The results that there are."""
        return [result for node in self.design.nodes() if (result := self.kept(node))]

    def kept(self, node: Node) -> Result | None:
        """The result of a run that was carried out before."""
        found = Cells(self.folder).find(node.name, self._recipe(node))
        if found is None:
            return None
        looks = [(int(step), float(value)) for step, value in found["looks"]]
        predictions = _read_predictions(self._predictions(node))
        return Result(node, found["told"], looks, found["steps"], found["seconds"], predictions)

    def _made(self, node: Node) -> Result | None:
        start = time.monotonic()
        trained = self._trained(node)
        if not trained.history.ended:
            self.told(f"{node.name}: paused after step {len(trained.history.told)}")
            return None
        generator = load_generator(trained.folder)
        predictions = {
            name: tuple(generator(documents)) for name, documents in self.corpus.tests.items()
        }
        write_packed(self._predictions(node), predictions)
        history = trained.history
        found = {
            "told": thinned(history.told),
            "looks": history.looks,
            "steps": len(history.told),
            "seconds": round(time.monotonic() - start),
        }
        Cells(self.folder).keep(node.name, self._recipe(node), found)
        step, best = history.best
        self.told(f"{node.name}: {found['steps']} steps, best {best:.3f} at step {step}")
        return self.kept(node)

    def _trained(self, node: Node) -> Trained:
        """The generator of a run, with those that it starts from."""
        settings = replace(self.design.settings, seed=node.seed)
        place = self.folder / "models" / slug(node.name)
        if not node.rewards:
            return train_likelihood(self.lessons, settings, place, enough=self.enough)
        before = self._trained(node.before)
        if not before.history.ended:
            return before
        stage = replace(self.design.stage, reward=self._reward(node.rewards[-1]))
        return train_stage(self.lessons, stage, before.folder, place, node.seed, enough=self.enough)

    @property
    def lessons(self) -> Lessons:
        """The documents prepared, once."""
        if not self._lessons:
            made = lessons_of(self.corpus.train, self.corpus.valid, self.design.settings)
            self._lessons.append(made)
        return self._lessons[0]

    def _reward(self, reward: str) -> str:
        """The reward's spec, with the scorer that FB compares phrases by."""
        return reward.replace(SCORER, repr(str(self._scorer()))) if SCORER in reward else reward

    def _scorer(self) -> Path:
        """The folder of a scorer of phrases, taught by what the first generator predicts.

        It sees documents to learn from only: public predictions are for the tests' documents.
        """
        place = self.folder / "scorer"
        if not (place / "README.md").is_file():  # the card is written last
            first = self._trained(Node(self.design.seeds[0], ()))
            documents = self.corpus.train[:: max(1, len(self.corpus.train) // _TAUGHT_BY)]
            phrases = load_generator(first.folder)(documents)
            predicted = tuple(
                Document(d.text, d.keyphrases, {"catSeq": p})
                for d, p in zip(documents, phrases, strict=True)
            )
            sets = [DocumentSet("documents to learn from", predicted, ("catSeq",))]
            fit_keyphrases(sets, place, most=_PAIRS, **self.design.scorer)
        return place

    def _recipe(self, node: Node) -> dict[str, Any]:
        settings = replace(self.design.settings, seed=node.seed)
        recipe = {
            "lessons": self.lessons.digest,
            "tests": self.corpus.digest,
            "settings": asdict(settings),
            "rewards": node.rewards,
        }
        return recipe | ({"stage": asdict(self.design.stage)} if node.rewards else {})

    def _predictions(self, node: Node) -> Path:
        return self.folder / "predictions" / f"{slug(node.name)}.json.gz"


def _read_predictions(path: Path) -> Predictions:
    found = read_packed(path)
    return {name: tuple(map(tuple, each)) for name, each in found.items()}


def by_arm(
    results: Sequence[Result], arms: Mapping[str, tuple[str, ...]] = ARMS
) -> Iterator[tuple[str, list[Result]]]:
    """The results of each arm that has any, seed by seed."""
    for name, rewards in arms.items():
        if own := [result for result in results if result.node.rewards == rewards]:
            yield name, own
