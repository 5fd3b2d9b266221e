"""What the graph-to-text experiment compares: rewards, from one start per seed.

The graphs of the graph-to-text experiment: to learn from, to look at, and to test on.

The runs of the graph-to-text experiment: each leaves its curves and what it writes.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.graphs import GraphText, Triples, read_graphs, write_graphs
from evenmatch.errors import InputError
from evenmatch.studies.experiment import (
    ResultStore,
    downsample_curve,
    load_or_run,
    read_json_gz,
    slug,
    write_json_gz,
)
from evenmatch.training.generator.policy import generate_texts, load_policy
from evenmatch.training.generator.tune import TuneResult, tune
from evenmatch.training.generator.tune_run import CHECKPOINT_FILE, MODEL_FOLDER
from evenmatch.training.generator.tune_settings import T5Shape, TuneSettings

START, XENT = "start", "XENT"


# Table 1 of paper 000: what is trained for beside cross-entropy, on the policy's own embeddings.
GRAPH_ARMS: Mapping[str, str] = {
    XENT: "",
    "BL-R": "bleu(smoothing='add-k')",
    "F_BERT": "bertscore",
    "F_CONT": "f_cont",
    "F_DISC": "f_disc",
}


_COMMON = TuneSettings("", "", "", every_text=False, longest_source=100, longest_target=60)


# Sized by a pilot: a start takes some eight minutes on one core, a run from it less than four.
PRETRAINING = replace(
    _COMMON,
    rl_weight=0.0,
    epochs=6,
    batch=32,
    rate=2e-3,
    clip=5.0,
    patience=100,
    shape=T5Shape(words=3000, width=128, layers=2, heads=4, inner=256, dropout=0.05),
)


FINE_TUNING = replace(
    _COMMON,
    epochs=1,
    batch=48,
    rate=5e-4,
    clip=5.0,
    patience=100,
    look_every=34,
    longest_target=48,  # something drawn is nearly always as long as it may be
)


@dataclass(frozen=True, slots=True)
class GraphRun:
    """One run: a seed, and an arm or the start of them all."""

    seed: int
    arm: str = START

    @property
    def name(self) -> str:
        """What its files are called by."""
        return f"{self.arm} seed {self.seed}"


@dataclass(frozen=True, slots=True)
class GraphDesign:
    """Which arms are run with which seeds, and how: the start, and what goes on from it."""

    arms: tuple[str, ...] = tuple(GRAPH_ARMS)
    seeds: tuple[int, ...] = (1, 2, 3)
    pretraining: TuneSettings = PRETRAINING
    fine_tuning: TuneSettings = FINE_TUNING

    def __post_init__(self) -> None:
        for arm in self.arms:
            if arm not in GRAPH_ARMS:
                raise InputError(
                    f"the experiment has no arm {arm!r}; known: {', '.join(GRAPH_ARMS)}"
                )
        if not (self.arms and self.seeds):
            raise InputError("the experiment needs at least one arm and one seed")

    def runs(self) -> list[GraphRun]:
        """Every run, a start before those that go on from it, one seed after the other."""
        return [GraphRun(seed, arm) for seed in self.seeds for arm in (START, *self.arms)]

    def settings_for(self, node: GraphRun) -> TuneSettings:
        """The settings of a run, but for where its files lie."""
        if node.arm == START:
            return replace(self.pretraining, seed=node.seed)
        if node.arm == XENT:
            return replace(self.fine_tuning, seed=node.seed, rl_weight=0.0)
        return replace(self.fine_tuning, seed=node.seed, reward=GRAPH_ARMS[node.arm])


def make_graph_design(data: str, arms: tuple[str, ...], seeds: tuple[int, ...]) -> GraphDesign:
    """The design for one of the corpora: fewer graphs take more passes in smaller batches."""
    if data == "amr":
        first = replace(PRETRAINING, batch=16, longest_source=200, epochs=24, look_every=316)
        second = replace(FINE_TUNING, batch=16, longest_source=200, epochs=3, look_every=48)
        return GraphDesign(arms, seeds, first, second)
    return GraphDesign(arms, seeds)


_MAX_TRIPLES = (
    3  # triples in a graph of WebNLG: longer ones take a small model more time than there is
)


_VALIDATION_SIZE = 200  # of WebNLG's graphs for validation, drawn once and for all


_LITTLE_PRINCE_SIZES = {
    "valid": 100,
    "test": 200,
}  # of the Little Prince's; the rest is learnt from


@dataclass(frozen=True)
class GraphCorpus:
    """Graphs with texts by what they are for."""

    name: str
    train: tuple[GraphText, ...]
    valid: tuple[GraphText, ...]
    test: tuple[GraphText, ...]

    @cached_property
    def digest(self) -> str:
        """All of it by content."""
        parts = [
            [[each.graph.line, each.references] for each in some]
            for some in (self.train, self.valid, self.test)
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def write(self, folder: Path) -> tuple[str, str]:
        """The files that a run learns from and looks at."""
        folder.mkdir(parents=True, exist_ok=True)
        train, valid = (str(folder / f"{name}.jsonl") for name in ("train", "valid"))
        write_graphs(self.train, train)
        write_graphs(self.valid, valid)
        return train, valid


def load_webnlg() -> GraphCorpus:
    """WebNLG v2's graphs of one to three triples, with up to a handful of texts each."""
    parts = {
        part: [
            each
            for each in read_graphs(f"webnlg-v2/{part}.jsonl.gz")
            if isinstance(each.graph, Triples) and len(each.graph.triples) <= _MAX_TRIPLES
        ]
        for part in ("train", "dev", "test")
    }
    few = _shuffle(parts["dev"])[:_VALIDATION_SIZE]
    return GraphCorpus(
        f"WebNLG v2, up to {_MAX_TRIPLES} triples",
        tuple(parts["train"]),
        tuple(few),
        tuple(parts["test"]),
    )


def load_little_prince() -> GraphCorpus:
    """The Little Prince in AMR, one text a graph, parted by lot: it comes in one piece."""
    graphs = _shuffle(read_graphs(find_data_set("amr-little-prince") / "lpp_v3.0.jsonl.gz"))
    valid, test = _LITTLE_PRINCE_SIZES["valid"], _LITTLE_PRINCE_SIZES["test"]
    parts = graphs[valid + test :], graphs[:valid], graphs[valid : valid + test]
    return GraphCorpus("The Little Prince, AMR 3", *map(tuple, parts))


GRAPH_CORPORA: Mapping[str, Callable[[], GraphCorpus]] = {
    "webnlg": load_webnlg,
    "amr": load_little_prince,
}


def _shuffle(graphs: Sequence[GraphText]) -> list[GraphText]:
    """The graphs in an order that says nothing of their place, the same each time."""
    return [graphs[i] for i in np.random.default_rng(0).permutation(len(graphs))]


_BATCH_SIZE = 160  # graphs whose texts are written together


_CURVES = ("cross_entropy", "reward", "baseline")


@dataclass(frozen=True, slots=True)
class GraphRunResult:
    """What a run left: (step, BLEU) at each look, curves, and a text for each test graph."""

    run: GraphRun
    evaluations: Sequence[tuple[int, float]]
    curves: Mapping[str, Sequence[float]]
    steps: int
    seconds: float
    texts: tuple[str, ...]


@dataclass(frozen=True)
class GraphExperiment:
    """The experiment in its folder: results in `cells` and `texts`, weights in `models`."""

    corpus: GraphCorpus
    design: GraphDesign
    folder: Path
    should_stop: Callable[[], bool] = lambda: False
    log: Callable[[str], None] = lambda _: None

    def __call__(self) -> list[GraphRunResult]:
        """Every result, made now where it is not there; fewer when it was `enough` before."""
        return load_or_run(self.design.runs(), self.load_result, self._train_and_save)

    def results(self) -> list[GraphRunResult]:
        """The results that there are."""
        return [result for node in self.design.runs() if (result := self.load_result(node))]

    def load_result(self, node: GraphRun) -> GraphRunResult | None:
        """The result of a run that was carried out before."""
        found = ResultStore(self.folder).load(node.name, self._recipe(node))
        if found is None:
            return None
        looks = [(int(step), float(bleu)) for step, bleu in found["looks"]]
        texts = tuple(read_json_gz(self._texts_path(node)))
        return GraphRunResult(node, looks, found["curves"], found["steps"], found["seconds"], texts)

    def _train_and_save(self, node: GraphRun) -> GraphRunResult | None:
        start = time.monotonic()
        tuned = self._train(node)
        history = tuned.history
        if not history.ended:
            self.log(f"{node.name}: paused after step {len(history.step_metrics)}")
            return None
        settings = self.design.settings_for(node)
        write_json_gz(
            self._texts_path(node), generate_graph_texts(tuned.model, self.corpus.test, settings)
        )
        told = [asdict(each) for each in history.step_metrics]
        found = {
            "looks": [(step, round(bleu, 5)) for step, bleu in history.evaluations],
            "curves": {name: downsample_curve([each[name] for each in told]) for name in _CURVES},
            "steps": len(history.step_metrics),
            "seconds": round(time.monotonic() - start),
        }
        ResultStore(self.folder).save(node.name, self._recipe(node), found)
        (tuned.model.parent / CHECKPOINT_FILE).unlink()  # large, and of no use any more
        step, best = history.best
        self.log(
            f"{node.name}: {found['steps']} steps in {found['seconds']} s, "
            f"best BLEU {100 * best:.2f} at step {step}"
        )
        return self.load_result(node)

    def _train(self, node: GraphRun) -> TuneResult:
        """The model of a run; that of its start is made before."""
        train, valid = self.corpus.write(self.folder / "models")
        usual, out = self.design.settings_for(node), str(self._model_folder(node))
        settings = replace(usual, train=train, valid=valid, out=out)
        if node.arm == START:
            return tune(settings, enough=self.should_stop)
        first = GraphRun(node.seed)
        model = self._model_folder(first) / MODEL_FOLDER
        if not (self.load_result(first) and model.is_dir()):
            before = self._train(first)
            if not before.history.ended:
                return before
        return tune(replace(settings, model=str(model)), enough=self.should_stop)

    def _model_folder(self, node: GraphRun) -> Path:
        return self.folder / "models" / slug(node.name)

    def _recipe(self, node: GraphRun) -> dict[str, Any]:
        start = self.design.settings_for(GraphRun(node.seed))
        return {
            "corpus": self.corpus.digest,
            "start": asdict(start),
            "run": asdict(self.design.settings_for(node)),
        }

    def _texts_path(self, node: GraphRun) -> Path:
        return self.folder / "texts" / f"{slug(node.name)}.json.gz"


def generate_graph_texts(
    model: Path, graphs: Sequence[GraphText], settings: TuneSettings
) -> list[str]:
    """What a model writes for graphs: the likeliest piece each time."""
    return generate_texts(
        load_policy(str(model)),
        [settings.prefix + each.graph.line for each in graphs],
        longest=(settings.longest_source, settings.longest_target),
        at_a_time=_BATCH_SIZE,
    )
