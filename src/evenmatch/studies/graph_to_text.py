"""The graph-to-text experiment of Jin & Gildea (2022): arms, corpora and runs.

For each seed a small T5 is trained by cross-entropy (the start); every arm then fine-tunes that
model with its own reward. Each run stores its curves and the texts it generates for the test set.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.graphs import GraphText, Triples, read_graphs, write_graphs
from evenmatch.studies.experiment import Experiment, Trained, check_arms
from evenmatch.training.checkpoints import CHECKPOINT_FILE
from evenmatch.training.generator.policy import generate_texts, load_policy
from evenmatch.training.generator.tune import MODEL_FOLDER, tune
from evenmatch.training.generator.tune_settings import T5Shape, TuneSettings

START, XENT = "start", "XENT"

# Table 1 of Jin & Gildea (2022): the reward beside cross-entropy, on the policy's own embeddings.
GRAPH_ARMS: Mapping[str, str] = {
    XENT: "",
    "BL-R": "bleu(smoothing='add-k')",
    "F_BERT": "bertscore",
    "F_CONT": "f_cont",
    "F_DISC": "f_disc",
}

_COMMON = TuneSettings(
    "", "", "", every_text=False, longest_source=100, longest_target=60, clip=5.0, patience=100
)

# Chosen in a pilot: a start takes about eight minutes on one core, an arm less than four.
PRETRAINING = replace(
    _COMMON,
    rl_weight=0.0,
    epochs=6,
    batch=32,
    rate=2e-3,
    shape=T5Shape(words=3000, width=128, layers=2, heads=4, inner=256, dropout=0.05),
)

FINE_TUNING = replace(
    _COMMON,
    epochs=1,
    batch=48,
    rate=5e-4,
    look_every=34,
    longest_target=48,  # sampled texts nearly always reach the limit
)

_MAX_TRIPLES = 3  # larger WebNLG graphs would take a small model too long
_VALIDATION_SIZE = 200  # graphs of WebNLG used for validation, sampled once
_BATCH_SIZE = 160  # graphs per batch when test texts are generated
_CURVES = ("cross_entropy", "reward", "baseline")


@dataclass(frozen=True)
class GraphStudy:
    """The graph-to-text study: every arm continues from the start of its seed."""

    corpus: GraphCorpus
    design: GraphDesign
    output_folder: str = "texts"

    def recipe(self, run: GraphRun) -> dict[str, Any]:
        """Return the hash of the corpus and the settings of the start and of the run."""
        return {
            "corpus": self.corpus.digest,
            "start": asdict(self.design.settings_for(GraphRun(run.seed))),
            "run": asdict(self.design.settings_for(run)),
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
        return Trained(
            tuned.model,
            [(step, round(bleu, 5)) for step, bleu in history.evaluations],
            {name: [each[name] for each in steps] for name in _CURVES},
            len(steps),
            history.ended,
            checkpoint=tuned.model.parent / CHECKPOINT_FILE,
        )

    def generate(self, model: Trained, run: GraphRun) -> list[str]:
        """Generate a text for each test graph by greedy decoding."""
        settings = self.design.settings_for(run)
        return generate_texts(
            load_policy(str(model.folder)),
            [settings.prefix + each.graph.line for each in self.corpus.test],
            longest=(settings.longest_source, settings.longest_target),
            batch_size=_BATCH_SIZE,
        )


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
    pretraining: TuneSettings = PRETRAINING
    fine_tuning: TuneSettings = FINE_TUNING

    def __post_init__(self) -> None:
        check_arms(self.arms, self.seeds, GRAPH_ARMS)

    def runs(self) -> list[GraphRun]:
        """Return every run, seed by seed, each start before its arms."""
        return [GraphRun(seed, arm) for seed in self.seeds for arm in (START, *self.arms)]

    def settings_for(self, run: GraphRun) -> TuneSettings:
        """Return the settings of a run, without paths."""
        if run.arm == START:
            return replace(self.pretraining, seed=run.seed)
        if run.arm == XENT:
            return replace(self.fine_tuning, seed=run.seed, rl_weight=0.0)
        return replace(self.fine_tuning, seed=run.seed, reward=GRAPH_ARMS[run.arm])


def make_graph_design(data: str, arms: tuple[str, ...], seeds: tuple[int, ...]) -> GraphDesign:
    """Return the design for a corpus: fewer graphs get more epochs in smaller batches."""
    if data == "amr":
        first = replace(PRETRAINING, batch=16, longest_source=200, epochs=24, look_every=316)
        second = replace(FINE_TUNING, batch=16, longest_source=200, epochs=3, look_every=48)
        return GraphDesign(arms, seeds, first, second)
    return GraphDesign(arms, seeds)


@dataclass(frozen=True)
class GraphCorpus:
    """Graphs with texts, split into train, valid and test."""

    name: str
    train: tuple[GraphText, ...]
    valid: tuple[GraphText, ...]
    test: tuple[GraphText, ...]

    @cached_property
    def digest(self) -> str:
        """A hash of all splits."""
        parts = [
            [[each.graph.line, each.references] for each in some]
            for some in (self.train, self.valid, self.test)
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def write(self, folder: Path) -> tuple[str, str]:
        """Write the training and validation files of a run; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        train, valid = str(folder / "train.jsonl"), str(folder / "valid.jsonl")
        write_graphs(self.train, train)
        write_graphs(self.valid, valid)
        return train, valid


def load_webnlg() -> GraphCorpus:
    """Load the graphs of WebNLG v2 with one to three triples; most have several texts."""
    train, dev, test = (
        tuple(
            each
            for each in read_graphs(f"webnlg-v2/{part}.jsonl.gz")
            if isinstance(each.graph, Triples) and len(each.graph.triples) <= _MAX_TRIPLES
        )
        for part in ("train", "dev", "test")
    )
    name = f"WebNLG v2, up to {_MAX_TRIPLES} triples"
    return GraphCorpus(name, train, _shuffle(dev)[:_VALIDATION_SIZE], test)


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
