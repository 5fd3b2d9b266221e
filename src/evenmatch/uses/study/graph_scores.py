"""What the texts of every run score: kept for each run, so that a report costs little."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.scoring.together import as_metric, score_together
from evenmatch.stats.arrays import Floats
from evenmatch.stats.totals import mean_score
from evenmatch.types import Array, Pair, Run, Totalled
from evenmatch.uses.keyphrases.resampling import Drawn, draw
from evenmatch.uses.study.cells import Cells
from evenmatch.uses.study.graph_arms import ARMS, START
from evenmatch.uses.study.graph_runs import Result, Runs
from evenmatch.uses.train.rewards_shape import lowered_words, repeated_share

BLEU, REPEATED, LEARNT = "BLEU", "repeated", "learnt"
COUNTED = {BLEU: "bleu", "chrF": "chrf"}  # corpus scores, of totals
JUDGED = {"METEOR": "meteor", "BERTScore": "bertscore", "f_disc": "f_disc"}  # means over texts
_RESAMPLES, _TRIALS = 1000, 5000


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """One arm by its seeds: every metric's score, with the same draws of test graphs for all."""

    arm: str
    seeds: tuple[int, ...]
    drawn: Mapping[str, tuple[Drawn, ...]]


def scored(runs: Runs, *, learnt: str = "") -> list[Scored]:
    """Every arm that has results, the start first; `learnt` names one more metric, as by path."""
    results = runs.results()
    judged = {**JUDGED, **({LEARNT: learnt} if learnt else {})}
    means = _judged(runs, results, judged)
    counts: dict[Any, Array] = {}
    scores: dict[Any, Callable[[Array], Array]] = {}
    for result in results:
        for name, rows, score in _counted(result, runs):
            counts[name, result.node], scores[name, result.node] = rows, score
        for name, values in means[result.node.name].items():
            rows = np.stack([values, np.ones_like(values)], axis=-1)
            counts[name, result.node], scores[name, result.node] = rows, mean_score
    every = draw(counts, scores, resamples=_RESAMPLES, trials=_TRIALS, seed=0)
    names = [*COUNTED, *judged, REPEATED]
    return [
        Scored(
            arm,
            tuple(result.node.seed for result in own),
            {name: tuple(every[name, result.node] for result in own) for name in names},
        )
        for arm, own in by_arm(results)
    ]


def by_arm(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    """The results of each arm that has any, the start first, seed by seed."""
    for arm in (START, *ARMS):
        if own := [result for result in results if result.node.arm == arm]:
            yield arm, own


def pairs_of(result: Result, runs: Runs) -> list[Pair]:
    """What a run wrote for each test graph, beside what people wrote."""
    graphs = runs.corpus.test
    return [Pair(text, each.references) for text, each in zip(result.texts, graphs, strict=True)]


def repetition(texts: Sequence[str]) -> Floats:
    """Of each text, the share of pairs of neighbouring words that stood in it before."""
    return np.array([repeated_share(lowered_words(text)) for text in texts])


def _counted(result: Result, runs: Runs) -> Iterator[tuple[str, Array, Callable[[Array], Array]]]:
    pairs = pairs_of(result, runs)
    for name, spec in COUNTED.items():
        metric = as_metric(spec)
        assert isinstance(metric, Totalled)  # both are
        yield name, metric.counted(pairs)[1], metric.of_totals
    shares = repetition(result.texts)
    yield REPEATED, np.stack([shares, np.ones_like(shares)], axis=-1), mean_score


def _judged(
    runs: Runs, results: Sequence[Result], judged: Mapping[str, str]
) -> dict[str, dict[str, Floats]]:
    """The score of every text by metrics that take their time; what is new is judged in one go."""
    metrics = {name: as_metric(spec) for name, spec in judged.items()}
    cells = Cells(runs.folder)
    found: dict[str, dict[str, Floats]] = {result.node.name: {} for result in results}
    for name, metric in metrics.items():
        recipes = {r.node.name: _recipe(r, runs, metric.signature) for r in results}
        kept = {node: cells.find(f"{node} {name}", recipe) for node, recipe in recipes.items()}
        new = [result for result in results if kept[result.node.name] is None]
        every = [pair for result in new for pair in pairs_of(result, runs)]
        segments = score_together([metric], every, Run())[0].segments if every else ()
        for place, result in enumerate(new):
            node, size = result.node.name, len(result.texts)
            some = segments[place * size : (place + 1) * size]
            values = {"values": [round(each.value, 4) for each in some]}
            cells.keep(f"{node} {name}", recipes[node], values)
            kept[node] = values
        for node, own in kept.items():
            found[node][name] = np.array((own or {})["values"])
    return found


def _recipe(result: Result, runs: Runs, signature: str) -> dict[str, str]:
    texts = hashlib.sha256(json.dumps(result.texts).encode()).hexdigest()[:16]
    return {"texts": texts, "corpus": runs.corpus.digest, "metric": signature}
