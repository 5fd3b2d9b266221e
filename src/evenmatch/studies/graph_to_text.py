"""The graph-to-text experiment of Jin & Gildea (2022): arms, corpora and runs.

For each seed a pretrained causal language model is fine-tuned by cross-entropy (the start); every
arm then continues from that model with its own loss, on the same examples and with the same random
numbers. A run stores its curves, and the texts that its best and its last model write for the test
set.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.graphs import GraphText, Triples, read_graphs, write_graphs
from evenmatch.studies.experiment import Experiment, Trained, check_arms
from evenmatch.training.checkpoints import CHECKPOINT_FILE, content_digest
from evenmatch.training.generator.decoding import generate_texts
from evenmatch.training.generator.loss import reference_cross_entropy
from evenmatch.training.generator.policy import load_policy
from evenmatch.training.generator.tune import LAST_FOLDER, MODEL_FOLDER, tune
from evenmatch.training.generator.tune_settings import TuneSettings

START, XENT = "start", "XENT"
BEST, LAST, BEAM = "best", "last", "beam"

# Table 1 of Jin & Gildea (2022): the reward beside cross-entropy, on the policy's own embeddings.
GRAPH_ARMS: Mapping[str, Mapping[str, Any]] = {
    XENT: {"rl_weight": 0.0},
    "BL-R": {"reward": "bleu(smoothing='add-k')"},
    "F_BERT": {"reward": "bertscore"},
    "F_CONT": {"reward": "f_cont"},
    "F_DISC": {"reward": "f_disc"},
}

_PROBE_RATE = 2e-4  # higher than that of the other arms, so that a model soon shows what it does

# Beyond the paper: other weights of the reward, several samples with leave-one-out baselines,
# contextual embeddings of another model, other metrics, and each reward alone (to see what a
# model does to raise it).
FURTHER_ARMS: Mapping[str, Mapping[str, Any]] = {
    **{f"F_DISC {weight}": {"reward": "f_disc", "rl_weight": weight} for weight in (0.1, 0.6)},
    "F_DISC x4": {"reward": "f_disc", "samples": 4, "baseline": "leave_one_out"},
    **{
        f"contextual {name}": {"reward": name, "own_embeddings": False}
        for name in ("bertscore", "f_disc", "f_cont", "f_partial", "wmt_blend")
    },
    **{
        f"only {name}": {**changes, "rl_weight": 1.0, "rate": _PROBE_RATE}
        for name, changes in GRAPH_ARMS.items()
        if name != XENT
    },
}
ALL_ARMS = {**GRAPH_ARMS, **FURTHER_ARMS}

_COMMON = TuneSettings(
    "",
    "",
    "",
    batch=8,
    bf16=True,
    every_text=False,
    longest_source=120,
    longest_target=60,
    patience=100,
    keep_last=True,
)
PRETRAINING = replace(_COMMON, rl_weight=0.0, epochs=1, steps=128, rate=2e-4, look_every=64)
FINE_TUNING = replace(_COMMON, epochs=1, steps=200, rate=5e-5, look_every=25)

_MAX_TRIPLES = 3  # larger WebNLG graphs would take too long on a CPU
_UNSEEN = ("Astronaut", "ComicsCharacter", "Monument", "University")  # left out of training
_VALIDATION_SIZE = 300  # graphs of WebNLG used for validation, sampled once
_BATCH_SIZE = 128  # graphs per batch when test texts are generated
_LIKELIHOOD_SIZE = 200  # test graphs, sampled once, whose references' cross-entropy is computed
_ARM_SEED = 1000  # added to the seed of arms, so that they go on with other examples
_CURVES = ("cross_entropy", "reward", "baseline", "length", "repetition")
_EVALUATION_CURVES = ("chrf", "greedy_length", "greedy_repetition")


@dataclass(frozen=True)
class GraphStudy:
    """The graph-to-text study: every arm continues from the start of its seed.

    With `beams`, the last model also writes texts by beam search. They are no part of the recipe:
    a result without them stays valid.
    """

    corpus: GraphCorpus
    design: GraphDesign
    beams: int = 0
    output_folder: str = "texts"

    def recipe(self, run: GraphRun) -> dict[str, Any]:
        """Return the hash of the corpus, and the settings of the start and of the run.

        Settings with default values are left out, so that new ones do not change old recipes.
        """
        return {
            "corpus": self.corpus.digest,
            "start": _changed_settings(self.design.settings_for(GraphRun(run.seed))),
            "run": _changed_settings(self.design.settings_for(run)),
        }

    def train(self, run: GraphRun, experiment: Experiment[Any]) -> Trained:
        """Train the model of a run, after that of its start."""
        train, valid = self.corpus.write(experiment.folder / "models")
        out = experiment.model_folder(run)
        settings = replace(self.design.settings_for(run), train=train, valid=valid, out=str(out))
        if run.arm != START:
            first = GraphRun(run.seed)
            model = experiment.model_folder(first) / MODEL_FOLDER
            if not (experiment.load_result(first) and model.is_dir()):
                before = self.train(first, experiment)
                if not before.ended:
                    return before
            settings = replace(settings, model=str(model))
        tuned = tune(settings, should_stop=experiment.should_stop)
        history = tuned.history
        steps = [asdict(each) for each in history.step_metrics]
        looks = [tuned.evaluations[step] for step, _ in history.evaluations]
        return Trained(
            tuned.model,
            [(step, round(bleu, 5)) for step, bleu in history.evaluations],
            {
                **{name: [each[name] for each in steps] for name in _CURVES},
                **{name: [each[name] for each in looks] for name in _EVALUATION_CURVES},
            },
            len(steps),
            history.ended,
            checkpoint=tuned.model.parent / CHECKPOINT_FILE,
        )

    def generate(self, model: Trained, run: GraphRun) -> dict[str, Any]:
        """Write a text for each test graph with the best and with the last model.

        All runs are decoded alike, greedily, and the last model also by beam search if `beams` is
        set. Also returns the cross-entropy per token of some references. The models are then
        removed, except the start, from which arms continue.
        """
        settings = self.design.settings_for(run)
        longest = settings.longest_source, settings.longest_target
        sources = self._sources(settings)
        chosen = np.random.default_rng(0).permutation(len(sources))[:_LIKELIHOOD_SIZE]
        best, _ = max(model.evaluations, key=lambda each: each[1])
        folders = {BEST: model.folder, LAST: model.folder.with_name(LAST_FOLDER)}
        found: dict[str, Any] = {"steps": {BEST: best, LAST: model.steps}, "cross_entropy": {}}
        for name, folder in folders.items():
            if name == LAST and best == model.steps:
                found[LAST], found["cross_entropy"][LAST] = (
                    found[BEST],
                    found["cross_entropy"][BEST],
                )
                continue
            policy = load_policy(str(folder), settings.decoding)
            found[name] = generate_texts(policy, sources, longest=longest, batch_size=_BATCH_SIZE)
            found["cross_entropy"][name] = reference_cross_entropy(
                policy,
                [sources[i] for i in chosen],
                [self.corpus.test[i].references[0] for i in chosen],
                longest=longest,
                batch_size=settings.batch,
            )
        if self.beams:
            found[self.beam_name] = self.search(folders[LAST], run)
        for folder in folders.values() if run.arm != START else [folders[LAST]]:
            shutil.rmtree(folder, ignore_errors=True)
        return found

    @property
    def beam_name(self) -> str:
        """The name under which the texts of beam search are stored."""
        return f"{BEAM} {self.beams}"

    def search(self, folder: Path, run: GraphRun) -> list[str]:
        """Write a text for each test graph by beam search, with the model in a folder."""
        settings = self.design.settings_for(run)
        return generate_texts(
            load_policy(str(folder), settings.decoding),
            self._sources(settings),
            longest=(settings.longest_source, settings.longest_target),
            batch_size=_BATCH_SIZE,
            beams=self.beams,
        )

    def _sources(self, settings: TuneSettings) -> list[str]:
        return [settings.prefix + each.graph.line for each in self.corpus.test]


def add_beam_texts(runs: Experiment[GraphStudy]) -> None:
    """Decode by beam search for the results without such texts whose last model is still there.

    That is the start of each seed, if its last step was its best one.
    """
    study = runs.study
    for result in runs.results() if study.beams else ():
        folder, steps = runs.model_folder(result.run) / MODEL_FOLDER, result.outputs["steps"]
        if study.beam_name in result.outputs or not folder.is_dir() or steps[BEST] != steps[LAST]:
            continue
        if runs.should_stop():
            return
        found = {**result.outputs, study.beam_name: study.search(folder, result.run)}
        runs.save_outputs(result.run, found)


def _changed_settings(settings: TuneSettings) -> dict[str, Any]:
    defaults = TuneSettings("", "", "")
    names = (each.name for each in fields(TuneSettings) if each.name != "shape")
    values = {name: getattr(settings, name) for name in names}
    return {name: value for name, value in values.items() if value != getattr(defaults, name)}


@dataclass(frozen=True, slots=True)
class GraphRun:
    """One run: a seed, and an arm or the start that all arms continue."""

    seed: int
    arm: str = START


@dataclass(frozen=True, slots=True)
class GraphDesign:
    """Arms and seeds of the experiment, and the settings of the start and of the arms."""

    arms: tuple[str, ...] = tuple(GRAPH_ARMS)
    seeds: tuple[int, ...] = (1, 2, 3)
    pretraining: TuneSettings = field(default_factory=lambda: replace(PRETRAINING, model="smollm2"))
    fine_tuning: TuneSettings = FINE_TUNING

    def __post_init__(self) -> None:
        check_arms(self.arms, self.seeds, ALL_ARMS)

    def runs(self) -> list[GraphRun]:
        """Return every run, seed by seed, each start before its arms."""
        return [GraphRun(seed, arm) for seed in self.seeds for arm in (START, *self.arms)]

    def settings_for(self, run: GraphRun) -> TuneSettings:
        """Return the settings of a run, without paths."""
        if run.arm == START:
            return replace(self.pretraining, seed=run.seed)
        return replace(self.fine_tuning, seed=_ARM_SEED + run.seed, **ALL_ARMS[run.arm])


def make_graph_design(
    data: str,
    arms: tuple[str, ...],
    seeds: tuple[int, ...],
    *,
    model: str = "smollm2",
    start_steps: int = PRETRAINING.steps,
    steps: int = FINE_TUNING.steps,
    valid_graphs: int = 0,
) -> GraphDesign:
    """Return the design for a corpus; AMR graphs are longer than triples, and there are fewer.

    `valid_graphs` is the number of validation graphs of the arms; 0 for all.
    """
    longest, epochs = (200, 20) if data == "amr" else (_COMMON.longest_source, 1)
    common: dict[str, Any] = {"longest_source": longest, "epochs": epochs}
    first = replace(
        PRETRAINING, model=model, steps=start_steps, look_every=-(-start_steps // 2), **common
    )
    second = replace(
        FINE_TUNING, steps=steps, look_every=-(-steps // 4), valid_count=valid_graphs, **common
    )
    return GraphDesign(arms, seeds, first, second)


@dataclass(frozen=True)
class GraphCorpus:
    """Graphs with texts, split into train, valid and test.

    `unseen` are the categories of test graphs that no training graph has.
    """

    name: str
    train: tuple[GraphText, ...]
    valid: tuple[GraphText, ...]
    test: tuple[GraphText, ...]
    unseen: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """A hash of all splits."""
        splits = (self.train, self.valid, self.test)
        return content_digest([[[e.graph.line, e.references] for e in some] for some in splits])

    @cached_property
    def unseen_rows(self) -> Any:
        """Whether each test graph is of a category that no training graph has."""
        return np.array([_category(each) in self.unseen for each in self.test])

    def with_test_size(self, count: int) -> GraphCorpus:
        """Return the corpus with `count` test graphs, the first of a random order; 0 for all."""
        return replace(self, test=self.test[: count or None])

    def write(self, folder: Path) -> tuple[str, str]:
        """Write the training and validation files of a run; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        train, valid = str(folder / "train.jsonl"), str(folder / "valid.jsonl")
        write_graphs(self.train, train)
        write_graphs(self.valid, valid)
        return train, valid


def load_webnlg() -> GraphCorpus:
    """Load the graphs of WebNLG v2 with one to three triples; most have several texts.

    All categories of the test set occur in the training set; four small ones are left out of
    training and validation here, so that there are unseen ones.
    """
    train, dev, test = (
        tuple(
            each
            for each in read_graphs(f"webnlg-v2/{part}.jsonl.gz")
            if isinstance(each.graph, Triples) and len(each.graph.triples) <= _MAX_TRIPLES
        )
        for part in ("train", "dev", "test")
    )
    name = f"WebNLG v2, up to {_MAX_TRIPLES} triples"
    train, dev = (
        tuple(each for each in some if _category(each) not in _UNSEEN) for some in (train, dev)
    )
    return GraphCorpus(name, train, _shuffle(dev)[:_VALIDATION_SIZE], _shuffle(test), _UNSEEN)


def _category(each: GraphText) -> str:
    """Return the category of a WebNLG graph, which its id names: 'test/Airport/1/Id34'."""
    return each.id.split("/")[1] if each.id.count("/") > 1 else ""


def load_little_prince() -> GraphCorpus:
    """Load The Little Prince in AMR, one text per graph, split at random (it has no splits)."""
    graphs = _shuffle(read_graphs(find_data_set("amr-little-prince") / "lpp_v3.0.jsonl.gz"))
    return GraphCorpus("The Little Prince, AMR 3", graphs[300:], graphs[:100], graphs[100:300])


GRAPH_CORPORA: Mapping[str, Callable[[], GraphCorpus]] = {
    "webnlg": load_webnlg,
    "amr": load_little_prince,
}


def _shuffle(graphs: Sequence[GraphText]) -> tuple[GraphText, ...]:
    """Shuffle graphs with a fixed seed."""
    return tuple(graphs[i] for i in np.random.default_rng(0).permutation(len(graphs)))
