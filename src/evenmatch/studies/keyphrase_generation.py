"""What the keyphrase experiment compares: rewards in one stage or two, with parts left out.

The documents of the keyphrase experiment: to learn from, to look at, and to test on.

The runs of the keyphrase experiment: each a course of training that leaves a small result.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.documents import Document, DocumentSet, read_documents
from evenmatch.errors import InputError
from evenmatch.studies.experiment import (
    ResultStore,
    downsample_curve,
    load_or_run,
    read_json_gz,
    slug,
    write_json_gz,
)
from evenmatch.training.keyphrases.catseq import CatSeqShape
from evenmatch.training.keyphrases.catseq_run import CatSeqTrainingSettings
from evenmatch.training.keyphrases.catseq_settings import CatSeqSettings, Stage
from evenmatch.training.keyphrases.decoding import load_generator
from evenmatch.training.keyphrases.objectives import REWARD_SPECS
from evenmatch.training.keyphrases.sequences import tokenize_text
from evenmatch.training.keyphrases.train_catseq import (
    CatSeqData,
    CatSeqRun,
    prepare_catseq_data,
    train_likelihood,
    train_stage,
)
from evenmatch.training.metrics.phrase_scorer import fit_keyphrases

SCORER_PLACEHOLDER = "SCORER"  # stands for the folder of the scorer, which has to be trained first


_F1, _FG = REWARD_SPECS["f1"], REWARD_SPECS["fg"]


_FB = REWARD_SPECS["fb"].replace("fb(", f"fb(model={SCORER_PLACEHOLDER}, ")


MLE = "MLE"


# Table 1 of paper 004: what is trained for, stage by stage.
KEYPHRASE_ARMS: Mapping[str, tuple[str, ...]] = {
    MLE: (),
    "RL(F1)": (_F1,),
    "RL(FG)": (_FG,),
    "RL(FB)": (_FB,),
    "2RL(FG)": (_FG, _F1),
    "2RL(FB)": (_FB, _F1),
}


BASELINE_ARM = "RL(F1)"  # what the paper's own arms are compared with


def _ablate(setting: str) -> tuple[str, str]:
    return _FG.replace("fg(", f"fg({setting}, "), _F1


# Table 2: edit distance, token F1, and the penalties for repetition and number left out.
ABLATIONS: Mapping[str, tuple[str, ...]] = {
    "2RL(FG) w/o ED": _ablate("similarity=token_f1"),
    "2RL(FG) w/o TF": _ablate("similarity=edit"),
    "2RL(FG) w/o RRP": _ablate("repetition=False"),
    "2RL(FG) w/o GNP": _ablate("quantity=False"),
}


# Sized by a pilot so that each run takes some minutes on one core.
LIKELIHOOD_SETTINGS = CatSeqSettings(
    words=6000,
    longest=300,
    shape=CatSeqShape(embedding=64, hidden=64, attention=64),
    likelihood=CatSeqTrainingSettings(epochs=12, batch=16, rate=2e-3, look_every=290),
)


RL_STAGE = Stage(
    course=CatSeqTrainingSettings(epochs=2, batch=32, rate=3e-4, look_every=48, halve=False)
)


@dataclass(frozen=True, slots=True)
class KeyphraseRun:
    """One run: a seed, and the rewards of its stages; without any, maximum likelihood."""

    seed: int
    rewards: tuple[str, ...]

    @property
    def name(self) -> str:
        """What its files are called by."""
        known = {rewards: name for name, rewards in {**KEYPHRASE_ARMS, **ABLATIONS}.items()}
        # Of an ablation's first stage no arm is made, but its second stage has a name.
        first = {r[:1]: f"{n} first stage" for n, r in ABLATIONS.items()}
        return f"{(first | known)[self.rewards]} seed {self.seed}"

    @property
    def parent(self) -> KeyphraseRun:
        """The run that it starts from."""
        return KeyphraseRun(self.seed, self.rewards[:-1])


@dataclass(frozen=True, slots=True)
class KeyphraseDesign:
    """Which arms are run with which seeds, and how."""

    arms: tuple[str, ...] = tuple(KEYPHRASE_ARMS)
    seeds: tuple[int, ...] = (1, 2, 3)
    settings: CatSeqSettings = LIKELIHOOD_SETTINGS
    stage: Stage = RL_STAGE
    scorer: Mapping[str, Any] = field(default_factory=dict)  # settings of its training

    def __post_init__(self) -> None:
        known = {**KEYPHRASE_ARMS, **ABLATIONS}
        for arm in self.arms:
            if arm not in known:
                raise InputError(f"the experiment has no arm {arm!r}; known: {', '.join(known)}")
        if not (self.arms and self.seeds):
            raise InputError("the experiment needs at least one arm and one seed")

    def runs(self) -> list[KeyphraseRun]:
        """Every run, those that others start from first, one seed after the other."""
        known = {**KEYPHRASE_ARMS, **ABLATIONS}
        return list(
            dict.fromkeys(
                KeyphraseRun(seed, known[arm][:depth])
                for seed in self.seeds
                for arm in self.arms
                for depth in range(len(known[arm]) + 1)
            )
        )


_VALIDATION_SIZES = {"kp20k-small": 200, "kp-inspec": 100}  # documents of the sets for validation


_NGRAM_SIZE = 8  # words in a row by which a text is known again


_MAX_OVERLAP = 0.2  # the share of such runs above which two texts are one


@dataclass(frozen=True, slots=True)
class KeyphraseCorpus:
    """Documents by what they are for; the tests by name, in the order of tables."""

    train: tuple[Document, ...]
    valid: tuple[Document, ...]
    tests: Mapping[str, tuple[Document, ...]]

    @property
    def digest(self) -> str:
        """The test documents by content; those to learn from are known by what is made of them."""
        parts = (d.text for each in self.tests.values() for d in each)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def load_keyphrase_corpus() -> KeyphraseCorpus:
    """What is public and at hand: samples of KP20k, Inspec and Krapivin.

    Krapivin has no documents for training of its own: they are those outside the usual test set.
    Documents for validation beyond those looked at are learnt from. Nothing of a test is.
    """
    tests = {
        "Inspec": tuple(_read_split("kp-predictions", "inspec")),
        "Krapivin": tuple(_read_split("kp-predictions", "krapivin")),
        "KP20k": tuple(_read_split("kp20k-small", "test")),
    }
    valid, train = [], [*_read_split("kp-krapivin", "test")]
    for name, count in _VALIDATION_SIZES.items():
        others = list(_read_split(name, "valid"))
        valid += others[:count]
        train += [*_read_split(name, "train"), *others[count:]]
    judged = [*valid, *(d for each in tests.values() for d in each)]
    return KeyphraseCorpus(
        tuple(remove_overlapping(train, judged)),
        tuple(remove_overlapping(valid, judged[len(valid) :])),
        tests,
    )


def remove_overlapping(
    documents: Iterable[Document], judged: Sequence[Document]
) -> Iterator[Document]:
    """The documents whose text is not among those judged, however its words are set."""
    known = {run for document in judged for run in _word_ngrams(document)}
    for document in documents:
        own = _word_ngrams(document)
        if sum(run in known for run in own) <= _MAX_OVERLAP * len(own):
            yield document


def _word_ngrams(document: Document) -> set[tuple[str, ...]]:
    words = [word for word in tokenize_text(document.text) if word.isalpha()]
    return {tuple(words[i : i + _NGRAM_SIZE]) for i in range(len(words) - _NGRAM_SIZE + 1)}


def _read_split(name: str, part: str) -> Iterator[Document]:
    """The documents of one file of a public set, without what others predicted."""
    for found in read_documents(str(find_data_set(name) / f"{part}.jsonl.gz")):
        for document in found.documents:
            yield Document(document.text, document.keyphrases)


Predictions: TypeAlias = Mapping[
    str, tuple[tuple[str, ...], ...]
]  # by test set, document by document


_SCORER_DOCUMENTS = 1200  # documents whose predicted phrases teach the scorer


_SCORER_PAIRS = 8000  # of phrases, to teach it


@dataclass(frozen=True, slots=True)
class KeyphraseRunResult:
    """What a run left: its curves, how long it took, and what its generator predicts."""

    run: KeyphraseRun
    training_curve: Sequence[float]
    evaluations: Sequence[tuple[int, float]]
    steps: int
    seconds: float
    predictions: Predictions


@dataclass
class KeyphraseExperiment:
    """The experiment in its folder: results in `cells` and `predictions`, weights in `models`."""

    corpus: KeyphraseCorpus
    design: KeyphraseDesign
    folder: Path
    should_stop: Callable[[], bool] = lambda: False
    log: Callable[[str], None] = lambda _: None
    _training_data: list[CatSeqData] = field(default_factory=list)

    def __call__(self) -> list[KeyphraseRunResult]:
        """Every result, made now where it is not there; fewer when it was `enough` before."""
        return load_or_run(self.design.runs(), self.load_result, self._train_and_save)

    def results(self) -> list[KeyphraseRunResult]:
        """The results that there are."""
        return [result for node in self.design.runs() if (result := self.load_result(node))]

    def load_result(self, node: KeyphraseRun) -> KeyphraseRunResult | None:
        """The result of a run that was carried out before."""
        found = ResultStore(self.folder).load(node.name, self._recipe(node))
        if found is None:
            return None
        looks = [(int(step), float(value)) for step, value in found["looks"]]
        predictions = _read_predictions(self._predictions_path(node))
        return KeyphraseRunResult(
            node, found["told"], looks, found["steps"], found["seconds"], predictions
        )

    def _train_and_save(self, node: KeyphraseRun) -> KeyphraseRunResult | None:
        start = time.monotonic()
        trained = self._train(node)
        if not trained.history.ended:
            self.log(f"{node.name}: paused after step {len(trained.history.told)}")
            return None
        generator = load_generator(trained.folder)
        predictions = {
            name: tuple(generator(documents)) for name, documents in self.corpus.tests.items()
        }
        write_json_gz(self._predictions_path(node), predictions)
        history = trained.history
        found = {
            "told": downsample_curve(history.told),
            "looks": history.looks,
            "steps": len(history.told),
            "seconds": round(time.monotonic() - start),
        }
        ResultStore(self.folder).save(node.name, self._recipe(node), found)
        step, best = history.best
        self.log(f"{node.name}: {found['steps']} steps, best {best:.3f} at step {step}")
        return self.load_result(node)

    def _train(self, node: KeyphraseRun) -> CatSeqRun:
        """The generator of a run, with those that it starts from."""
        settings = replace(self.design.settings, seed=node.seed)
        place = self.folder / "models" / slug(node.name)
        if not node.rewards:
            return train_likelihood(self.training_data, settings, place, enough=self.should_stop)
        before = self._train(node.parent)
        if not before.history.ended:
            return before
        stage = replace(self.design.stage, reward=self._resolve_reward(node.rewards[-1]))
        return train_stage(
            self.training_data, stage, before.folder, place, node.seed, enough=self.should_stop
        )

    @property
    def training_data(self) -> CatSeqData:
        """The documents prepared, once."""
        if not self._training_data:
            made = prepare_catseq_data(self.corpus.train, self.corpus.valid, self.design.settings)
            self._training_data.append(made)
        return self._training_data[0]

    def _resolve_reward(self, reward: str) -> str:
        """The reward's spec, with the scorer that FB compares phrases by."""
        return (
            reward.replace(SCORER_PLACEHOLDER, repr(str(self._train_scorer())))
            if SCORER_PLACEHOLDER in reward
            else reward
        )

    def _train_scorer(self) -> Path:
        """The folder of a scorer of phrases, taught by what the first generator predicts.

        It sees documents to learn from only: public predictions are for the tests' documents.
        """
        place = self.folder / "scorer"
        if not (place / "README.md").is_file():  # the card is written last
            first = self._train(KeyphraseRun(self.design.seeds[0], ()))
            documents = self.corpus.train[:: max(1, len(self.corpus.train) // _SCORER_DOCUMENTS)]
            phrases = load_generator(first.folder)(documents)
            predicted = tuple(
                Document(d.text, d.keyphrases, {"catSeq": p})
                for d, p in zip(documents, phrases, strict=True)
            )
            sets = [DocumentSet("documents to learn from", predicted, ("catSeq",))]
            fit_keyphrases(sets, place, most=_SCORER_PAIRS, **self.design.scorer)
        return place

    def _recipe(self, node: KeyphraseRun) -> dict[str, Any]:
        settings = replace(self.design.settings, seed=node.seed)
        recipe = {
            "lessons": self.training_data.digest,
            "tests": self.corpus.digest,
            "settings": asdict(settings),
            "rewards": node.rewards,
        }
        return recipe | ({"stage": asdict(self.design.stage)} if node.rewards else {})

    def _predictions_path(self, node: KeyphraseRun) -> Path:
        return self.folder / "predictions" / f"{slug(node.name)}.json.gz"


def _read_predictions(path: Path) -> Predictions:
    found = read_json_gz(path)
    return {name: tuple(map(tuple, each)) for name, each in found.items()}


def keyphrase_results_by_arm(
    results: Sequence[KeyphraseRunResult], arms: Mapping[str, tuple[str, ...]] = KEYPHRASE_ARMS
) -> Iterator[tuple[str, list[KeyphraseRunResult]]]:
    """The results of each arm that has any, seed by seed."""
    for name, rewards in arms.items():
        if own := [result for result in results if result.run.rewards == rewards]:
            yield name, own
