"""The keyphrase experiment of Luo et al. (2021): arms, documents and runs.

Every arm trains catSeq by maximum likelihood and then with rewards in one stage or two. Runs with
the same first stages share them. Each run stores its curves and its predictions for the tests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.documents import Document, DocumentSet, read_documents
from evenmatch.studies.experiment import Experiment, Trained, check_arms
from evenmatch.training.keyphrases.catseq import CatSeqShape
from evenmatch.training.keyphrases.catseq_settings import (
    CatSeqSettings,
    CatSeqTrainingSettings,
    Stage,
)
from evenmatch.training.keyphrases.decoding import load_generator
from evenmatch.training.keyphrases.objectives import REWARD_SPECS
from evenmatch.training.keyphrases.sequences import tokenize_text
from evenmatch.training.keyphrases.train_catseq import (
    CatSeqData,
    prepare_catseq_data,
    train_likelihood,
    train_stage,
)
from evenmatch.training.metrics.phrase_scorer import fit_keyphrases

SCORER_PLACEHOLDER = "SCORER"  # replaced by the folder of the trained phrase scorer
MLE = "MLE"
BASELINE_ARM = "RL(F1)"  # the arm that the paper compares its own with
_F1, _FG = REWARD_SPECS["f1"], REWARD_SPECS["fg"]
_FB = REWARD_SPECS["fb"].replace("fb(", f"fb(model={SCORER_PLACEHOLDER}, ")

# Table 1 of Luo et al. (2021): the rewards of each arm, stage by stage.
KEYPHRASE_ARMS: Mapping[str, tuple[str, ...]] = {
    MLE: (),
    "RL(F1)": (_F1,),
    "RL(FG)": (_FG,),
    "RL(FB)": (_FB,),
    "2RL(FG)": (_FG, _F1),
    "2RL(FB)": (_FB, _F1),
}


def _ablate(setting: str) -> tuple[str, str]:
    return _FG.replace("fg(", f"fg({setting}, "), _F1


# Table 2: without edit distance, token F1, the repetition penalty or the quantity penalty.
ABLATIONS: Mapping[str, tuple[str, ...]] = {
    "2RL(FG) w/o ED": _ablate("similarity=token_f1"),
    "2RL(FG) w/o TF": _ablate("similarity=edit"),
    "2RL(FG) w/o RRP": _ablate("repetition=False"),
    "2RL(FG) w/o GNP": _ablate("quantity=False"),
}

_ALL_ARMS = {**KEYPHRASE_ARMS, **ABLATIONS}

# Chosen in a pilot, so that each run takes some minutes on one core.
LIKELIHOOD_SETTINGS = CatSeqSettings(
    words=6000,
    longest=300,
    shape=CatSeqShape(embedding=64, hidden=64, attention=64),
    likelihood=CatSeqTrainingSettings(epochs=12, batch=16, rate=2e-3, look_every=290),
)

RL_STAGE = Stage(
    training=CatSeqTrainingSettings(epochs=2, batch=32, rate=3e-4, look_every=48, halve=False)
)

_VALIDATION_SIZES = {"kp20k-small": 200, "kp-inspec": 100}  # validation documents by data set
_NGRAM_SIZE = 8  # words of the n-grams by which overlapping texts are found
_MAX_OVERLAP = 0.2  # the share of common n-grams above which two texts count as the same
_SCORER_DOCUMENTS = 1200  # documents whose predicted phrases train the phrase scorer
_SCORER_PAIRS = 8000  # pairs of phrases that train it


@dataclass(frozen=True)
class KeyphraseStudy:
    """The keyphrase study: runs with the same first stages share them."""

    corpus: KeyphraseCorpus
    design: KeyphraseDesign
    output_folder: str = "predictions"

    @cached_property
    def training_data(self) -> CatSeqData:
        """The documents converted to examples."""
        return prepare_catseq_data(self.corpus.train, self.corpus.valid, self.design.settings)

    def recipe(self, run: KeyphraseRun) -> dict[str, Any]:
        """Return the hashes of the documents and the settings and rewards of the run."""
        recipe = {
            "lessons": self.training_data.digest,
            "tests": self.corpus.digest,
            "settings": asdict(replace(self.design.settings, seed=run.seed)),
            "rewards": run.rewards,
        }
        return recipe | ({"stage": self.design.stage.to_dict()} if run.rewards else {})

    def train(self, run: KeyphraseRun, experiment: Experiment[Any]) -> Trained:
        """Train the generator of a run, after those of the runs it starts from."""
        place, should_stop = experiment.model_folder(run), experiment.should_stop
        if run.rewards:
            before = self.train(run.parent, experiment)
            if not before.ended:
                return before
            reward = run.rewards[-1]
            if SCORER_PLACEHOLDER in reward:
                scorer = repr(str(self._train_scorer(experiment)))
                reward = reward.replace(SCORER_PLACEHOLDER, scorer)
            stage = replace(self.design.stage, reward=reward)
            trained = train_stage(
                self.training_data, stage, before.folder, place, run.seed, should_stop=should_stop
            )
        else:
            settings = replace(self.design.settings, seed=run.seed)
            trained = train_likelihood(self.training_data, settings, place, should_stop=should_stop)
        history, values = trained.history, trained.history.step_metrics
        return Trained(
            trained.folder, history.evaluations, {"told": values}, len(values), history.ended
        )

    def generate(self, model: Trained, run: KeyphraseRun) -> dict[str, list[tuple[str, ...]]]:
        """Predict the phrases of every test document."""
        generator = load_generator(model.folder)
        return {name: list(generator(each)) for name, each in self.corpus.tests.items()}

    def _train_scorer(self, experiment: Experiment[Any]) -> Path:
        """Train a phrase scorer on predictions of the first generator; return its folder.

        It uses training documents only: public predictions exist for the test documents.
        """
        place = experiment.folder / "scorer"
        if not (place / "README.md").is_file():  # the card is written last
            first = self.train(KeyphraseRun(self.design.seeds[0], ()), experiment)
            documents = self.corpus.train[:: max(1, len(self.corpus.train) // _SCORER_DOCUMENTS)]
            phrases = load_generator(first.folder)(documents)
            predicted = tuple(
                Document(d.text, d.keyphrases, {"catSeq": p})
                for d, p in zip(documents, phrases, strict=True)
            )
            sets = [DocumentSet("documents to learn from", predicted, ("catSeq",))]
            fit_keyphrases(sets, place, most=_SCORER_PAIRS, **self.design.scorer)
        return place


@dataclass(frozen=True, slots=True)
class KeyphraseDesign:
    """Arms and seeds of the experiment, and the settings of training."""

    arms: tuple[str, ...] = tuple(KEYPHRASE_ARMS)
    seeds: tuple[int, ...] = (1, 2, 3)
    settings: CatSeqSettings = LIKELIHOOD_SETTINGS
    stage: Stage = RL_STAGE
    scorer: Mapping[str, Any] = field(default_factory=dict)  # arguments of `fit_keyphrases`

    def __post_init__(self) -> None:
        check_arms(self.arms, self.seeds, _ALL_ARMS)

    def runs(self) -> list[KeyphraseRun]:
        """Return every run, seed by seed, each after the run it starts from."""
        return list(
            dict.fromkeys(
                KeyphraseRun(seed, _ALL_ARMS[arm][:depth])
                for seed in self.seeds
                for arm in self.arms
                for depth in range(len(_ALL_ARMS[arm]) + 1)
            )
        )


@dataclass(frozen=True, slots=True)
class KeyphraseRun:
    """One run: a seed, and the rewards of its stages; without rewards, maximum likelihood."""

    seed: int
    rewards: tuple[str, ...]

    @property
    def arm(self) -> str:
        """The arm with these rewards."""
        known = {rewards: name for name, rewards in _ALL_ARMS.items()}
        # The first stage of an ablation is no arm; it is named after its second stage.
        first = {r[:1]: f"{n} first stage" for n, r in ABLATIONS.items()}
        return (first | known)[self.rewards]

    @property
    def parent(self) -> KeyphraseRun:
        """The run that it starts from."""
        return KeyphraseRun(self.seed, self.rewards[:-1])


@dataclass(frozen=True, slots=True)
class KeyphraseCorpus:
    """Documents split into train, valid, and tests by name, in the order of the tables."""

    train: tuple[Document, ...]
    valid: tuple[Document, ...]
    tests: Mapping[str, tuple[Document, ...]]

    @property
    def digest(self) -> str:
        """A hash of the test documents; training data have a hash of their own."""
        parts = (d.text for each in self.tests.values() for d in each)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def load_keyphrase_corpus() -> KeyphraseCorpus:
    """Load the public samples of KP20k, Inspec and Krapivin.

    Krapivin has no training split: documents outside the usual test set are used. Validation
    documents beyond the number needed are used for training. No test document is.
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
    held_out = [*valid, *(d for each in tests.values() for d in each)]
    return KeyphraseCorpus(
        tuple(remove_overlapping(train, held_out)),
        tuple(remove_overlapping(valid, held_out[len(valid) :])),
        tests,
    )


def remove_overlapping(
    documents: Iterable[Document], held_out: Sequence[Document]
) -> Iterator[Document]:
    """Yield the documents that share few n-grams with the held-out ones, whatever the layout."""
    known = {ngram for document in held_out for ngram in _word_ngrams(document)}
    for document in documents:
        ngrams = _word_ngrams(document)
        if sum(ngram in known for ngram in ngrams) <= _MAX_OVERLAP * len(ngrams):
            yield document


def _word_ngrams(document: Document) -> set[tuple[str, ...]]:
    words = [word for word in tokenize_text(document.text) if word.isalpha()]
    return {tuple(words[i : i + _NGRAM_SIZE]) for i in range(len(words) - _NGRAM_SIZE + 1)}


def _read_split(name: str, part: str) -> Iterator[Document]:
    """Yield the documents of one file of a public data set, without predictions."""
    for found in read_documents(str(find_data_set(name) / f"{part}.jsonl.gz")):
        for document in found.documents:
            yield Document(document.text, document.keyphrases)
