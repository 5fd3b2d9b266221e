"""The keyphrase experiment of Luo et al. (2021): arms, documents and runs.

Every arm trains catSeq by maximum likelihood and then with rewards in one stage or two. Runs with
the same first stages share them; the runs of all seeds may share the start. The learning rate of
the stages is chosen on validation documents. Each run stores its curves and its predictions for
the tests; `baseline_predictions` are those of systems that are not trained here.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.documents import Document, DocumentSet, read_documents
from evenmatch.errors import InputError
from evenmatch.studies.experiment import (
    Experiment,
    ResultStore,
    Trained,
    check_arms,
    slug,
    write_atomically,
)
from evenmatch.training.keyphrases.candidate_ranker import fit_candidate_ranker, fit_tfidf_ranker
from evenmatch.training.keyphrases.catseq import CatSeqShape
from evenmatch.training.keyphrases.decoding import load_generator
from evenmatch.training.keyphrases.objectives import REWARD_SPECS
from evenmatch.training.keyphrases.sequences import make_keyphrase_example, tokenize_text
from evenmatch.training.keyphrases.train_catseq import (
    CatSeqData,
    CatSeqRun,
    CatSeqSettings,
    CatSeqTrainingSettings,
    Stage,
    prepare_catseq_data,
    train_likelihood,
    train_stage,
)
from evenmatch.training.metrics.phrase_scorer import fit_keyphrases

TestPredictions: TypeAlias = dict[str, list[tuple[str, ...]]]  # by test set

SCORER_PLACEHOLDER = "SCORER"  # replaced by the folder of the trained phrase scorer
MLE = "MLE"
RATE_CELL = "learning rate"  # the stored result that holds the chosen one
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

# Sizes for some minutes on one core.
START_SETTINGS = CatSeqSettings(
    words=3000,
    longest=300,
    shape=CatSeqShape(
        embedding=384,
        hidden=128,
        attention=96,
        dropout=0.25,
        encoder="minilm",
        layer=4,
        pieces=False,
        salience=1.0,
        tied=True,
        hints=True,
        history=True,
        recurrent=False,
        dot=True,
    ),
    likelihood=CatSeqTrainingSettings(epochs=4, batch=16, rate=1e-3, look_every=106),
)

# Patience, batch and the fixed rate within a stage are those of Chan et al. (2019).
RL_STAGE = Stage(
    training=CatSeqTrainingSettings(
        batch=32, look_every=20, halve=False, most_steps=80, train_reader=False
    )
)
RATES = (1e-5, 3e-5, 1e-4)

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
        design = self.design
        recipe = {
            "lessons": self.training_data.digest,
            "tests": self.corpus.digest,
            "settings": asdict(replace(design.settings, seed=design.start_seed(run))),
            "rewards": run.rewards,
        }
        if run.rewards:
            stage = {"stage": design.stage.to_dict(), "rates": design.rates, "seed": run.seed}
            return recipe | stage
        return recipe

    def train(self, run: KeyphraseRun, experiment: Experiment[Any]) -> Trained:
        """Train the generator of a run, after those of the runs it starts from."""
        place = experiment.model_folder(run)
        if not run.rewards:
            settings = replace(self.design.settings, seed=run.seed)
            return _describe_run(
                train_likelihood(
                    self.training_data,
                    settings,
                    place,
                    should_stop=experiment.should_stop,
                    log=experiment.log,
                )
            )
        if run == self.design.rate_run:
            return self.choose_rate(experiment)
        if not self.load_rate(experiment):
            chosen = self.choose_rate(experiment)
            if not chosen.ended:
                return chosen
        before = self.train(self.design.parent(run), experiment)
        if not before.ended:
            return before
        rate = self.load_rate(experiment)["rate"]
        return self._train_stage(run, rate, before.folder, place, experiment)

    def choose_rate(self, experiment: Experiment[Any]) -> Trained:
        """Train RL(F1) with each rate; return the one with the best reward on validation documents.

        All arms use its rate. It is itself the run of RL(F1) with the first seed.
        """
        run = self.design.rate_run
        before = self.train(self.design.parent(run), experiment)
        if not before.ended:
            return before
        found: dict[float, Trained] = {}
        for rate in self.design.rates:
            place = experiment.folder / "models" / slug(f"rate {rate:g}")
            found[rate] = self._train_stage(run, rate, before.folder, place, experiment)
            if not found[rate].ended:
                return found[rate]
        rewards = {rate: max(v for _, v in each.evaluations) for rate, each in found.items()}
        best = max(rewards, key=rewards.__getitem__)
        rows = [[rate, reward] for rate, reward in rewards.items()]
        ResultStore(experiment.folder).save(
            RATE_CELL, self.recipe(run), {"rate": best, "validation": rows}
        )
        return found[best]

    def load_rate(self, experiment: Experiment[Any]) -> dict[str, Any]:
        """Return the rate that was chosen, and the validation reward of each; empty before."""
        found = ResultStore(experiment.folder).load(RATE_CELL, self.recipe(self.design.rate_run))
        return found or {}

    def _train_stage(
        self,
        run: KeyphraseRun,
        rate: float,
        before: Path,
        place: Path,
        experiment: Experiment[Any],
    ) -> Trained:
        reward = run.rewards[-1]
        if SCORER_PLACEHOLDER in reward:
            scorer = repr(str(self._train_scorer(experiment)))
            reward = reward.replace(SCORER_PLACEHOLDER, scorer)
        stage = Stage(reward, replace(self.design.stage.training, rate=rate))
        return _describe_run(
            train_stage(
                self.training_data,
                stage,
                before,
                place,
                run.seed,
                should_stop=experiment.should_stop,
                log=experiment.log,
            )
        )

    def generate(self, model: Trained, run: KeyphraseRun) -> dict[str, list[tuple[str, ...]]]:
        """Predict the phrases of every test document, whatever words they repeat."""
        generator, tests = load_generator(model.folder), self.corpus.tests
        if encoder := generator.model.encoder:
            encoder.keep(
                make_keyphrase_example(document, generator.longest, encoder.split).words
                for each in tests.values()
                for document in each
            )
        return {name: list(generator(each, doubled=True)) for name, each in tests.items()}

    def _train_scorer(self, experiment: Experiment[Any]) -> Path:
        """Train a phrase scorer on predictions of the first generator; return its folder.

        It uses training documents only: public predictions exist for the test documents.
        """
        place = experiment.folder / "scorer"
        if not (place / "README.md").is_file():  # the card is written last
            first = self.train(KeyphraseRun(self.design.seeds[0], ()), experiment)
            documents = self.corpus.train[:: max(1, len(self.corpus.train) // _SCORER_DOCUMENTS)]
            phrases = load_generator(first.folder)(documents, doubled=True)
            predicted = tuple(
                Document(d.text, d.keyphrases, {"catSeq": p})
                for d, p in zip(documents, phrases, strict=True)
            )
            sets = [DocumentSet("documents to learn from", predicted, ("catSeq",))]
            fit_keyphrases(sets, place, most=_SCORER_PAIRS, **self.design.scorer)
        return place


def _describe_run(run: CatSeqRun) -> Trained:
    steps = run.history.step_metrics
    curves = {
        name: [getattr(each, name) for each in steps] for name in ("value", "entropy", "length")
    }
    history = run.history
    return Trained(run.folder, history.evaluations, curves, len(steps), history.ended)


@dataclass(frozen=True, slots=True)
class KeyphraseDesign:
    """Arms and seeds of the experiment, and the settings of training.

    With `shared_start`, the stages of all seeds start from one model, that of the first seed; their
    seeds then settle the order of documents and the sampled outputs. `rates` are the learning rates
    to choose from.
    """

    arms: tuple[str, ...] = tuple(KEYPHRASE_ARMS)
    seeds: tuple[int, ...] = (1, 2, 3)
    settings: CatSeqSettings = START_SETTINGS
    stage: Stage = RL_STAGE
    rates: tuple[float, ...] = RATES
    shared_start: bool = True
    scorer: Mapping[str, Any] = field(default_factory=dict)  # arguments of `fit_keyphrases`

    def __post_init__(self) -> None:
        check_arms(self.arms, self.seeds, _ALL_ARMS)
        if not self.rates:
            raise InputError("the experiment needs at least one learning rate to choose from")

    def runs(self) -> list[KeyphraseRun]:
        """Return every run, seed by seed, each after the run it starts from."""
        return list(
            dict.fromkeys(
                KeyphraseRun(seed if depth or not self.shared_start else self.seeds[0], rewards)
                for seed in self.seeds
                for arm in self.arms
                for depth in range(len(_ALL_ARMS[arm]) + 1)
                for rewards in (_ALL_ARMS[arm][:depth],)
            )
        )

    def parent(self, run: KeyphraseRun) -> KeyphraseRun:
        """Return the run that a run starts from."""
        rewards = run.rewards[:-1]
        return KeyphraseRun(run.seed if rewards else self.start_seed(run), rewards)

    def start_seed(self, run: KeyphraseRun) -> int:
        """Return the seed of the start of a run."""
        return self.seeds[0] if self.shared_start else run.seed

    @property
    def rate_run(self) -> KeyphraseRun:
        """The run by which the learning rate is chosen."""
        return KeyphraseRun(self.seeds[0], KEYPHRASE_ARMS[BASELINE_ARM])


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


def load_keyphrase_corpus(*, train_on_inspec: bool = False) -> KeyphraseCorpus:
    """Load the public samples of KP20k, Inspec and Krapivin.

    Krapivin has no training split: documents outside the usual test set are used. Validation
    documents beyond the number needed are used for training. No test document is, and, as in the
    paper, nothing of Inspec, unless `train_on_inspec`.
    """
    tests = {
        "Inspec": tuple(_read_split("kp-predictions", "inspec")),
        "Krapivin": tuple(_read_split("kp-predictions", "krapivin")),
        "KP20k": tuple(_read_split("kp20k-small", "test")),
    }
    valid: list[Document] = []
    train = [*_read_split("kp-krapivin", "test")]
    for name, count in _VALIDATION_SIZES.items():
        if name != "kp-inspec" or train_on_inspec:
            others = list(_read_split(name, "valid"))
            valid += others[:count]
            train += [*_read_split(name, "train"), *others[count:]]
    held_out = [*valid, *(d for each in tests.values() for d in each)]
    return KeyphraseCorpus(
        tuple(remove_overlapping(train, held_out)),
        tuple(remove_overlapping(valid, held_out[len(valid) :])),
        tests,
    )


def baseline_predictions(study: KeyphraseStudy, folder: Path) -> dict[str, TestPredictions]:
    """Return the predictions of other systems for the tests, by system and test set.

    They are TF-IDF and the candidate ranker, trained on the same documents and stored in the
    folder, and the published systems whose predictions are public, for Inspec and Krapivin only.
    """
    corpus, path = study.corpus, folder / study.output_folder / "baselines.json.gz"
    recipe = {"lessons": study.training_data.digest, "tests": corpus.digest}
    stored = json.loads(gzip.decompress(path.read_bytes())) if path.exists() else {}
    found: dict[str, TestPredictions] = stored.get("found", {})
    if stored.get("recipe") != recipe:
        for name, fit in (("TF-IDF", fit_tfidf_ranker), ("candidate ranker", fit_candidate_ranker)):
            ranker = fit(corpus.train, corpus.valid)
            found[name] = {test: ranker(documents) for test, documents in corpus.tests.items()}
        content = json.dumps({"recipe": recipe, "found": found}).encode()
        write_atomically(path, gzip.compress(content, mtime=0))
    return found | _published_predictions(corpus)


def _published_predictions(corpus: KeyphraseCorpus) -> dict[str, TestPredictions]:
    found: dict[str, TestPredictions] = {}
    for test in corpus.tests:
        path = find_data_set("kp-predictions") / f"{test.lower()}.jsonl.gz"
        for each in read_documents(str(path)) if path.exists() else ():
            for system in each.predictions:
                rows = [document.predictions.get(system, ()) for document in each.documents]
                found.setdefault(system, {})[test] = rows
    return found


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
