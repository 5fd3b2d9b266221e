"""The scores of every arm on every test set: mean over seeds, intervals, and differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.data.documents import Document, DocumentSet
from evenmatch.data.tables import Table
from evenmatch.scoring.keyphrase import KeyphraseMetric
from evenmatch.scoring.keyphrase_f1 import TokenMatch
from evenmatch.scoring.keyphrase_named import f1_at_5, f1_at_m, fg
from evenmatch.stats.arrays import Floats
from evenmatch.types import Run
from evenmatch.uses.keyphrases.judging import Judged, judge_documents
from evenmatch.uses.keyphrases.resampling import Drawn, draw
from evenmatch.uses.study.keyphrase_arms import ABLATIONS, ARMS, FIRST, MLE
from evenmatch.uses.study.keyphrase_corpus import Corpus
from evenmatch.uses.study.keyphrase_runs import Result, by_arm
from evenmatch.uses.study.seeds import cell, gap, mean_over_seeds, shared_seeds

METRICS: Mapping[str, KeyphraseMetric] = {"F1@M": f1_at_m(), "F1@5": f1_at_5(), "FG": fg()}
TOKENS = "token F1"
_RESAMPLES = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """One arm on one test set, over present phrases, by its seeds."""

    arm: str
    data: str
    seeds: tuple[int, ...]
    drawn: Mapping[str, tuple[Drawn, ...]]  # by metric, seed by seed
    fg: Floats  # of each document, all seeds together
    token_f1: Floats
    tokens: tuple[float, float, float]  # token F, P and R over all phrases
    phrases: float  # predicted present phrases per document


def scored(results: Sequence[Result], corpus: Corpus) -> list[Scored]:
    """Every arm on every test set; the same draws of documents serve all arms."""
    return [each for data in corpus.tests for each in _on(data, results, corpus)]


def _on(data: str, results: Sequence[Result], corpus: Corpus) -> Iterator[Scored]:
    named = {result.node.name: result for result in results}
    documents = tuple(
        Document(d.text, d.keyphrases, {n: r.predictions[data][i] for n, r in named.items()})
        for i, d in enumerate(corpus.tests[data])
    )
    metrics = {**METRICS, TOKENS: KeyphraseMetric(scoring=TokenMatch())}
    judged = judge_documents(DocumentSet(data, documents, tuple(named)), metrics, Run())
    present = {(m, s): counts for (m, c, s), counts in judged.counts.items() if c == "present"}
    every = draw(
        present,
        {key: metrics[key[0]].of_totals for key in present},
        resamples=_RESAMPLES,
        trials=0,
        seed=0,
    )
    for arm, own in by_arm(results, {**ARMS, **ABLATIONS}):
        yield _scored(arm, judged, every, own)


def _scored(
    arm: str, judged: Judged, every: Mapping[tuple[str, str], Drawn], own: Sequence[Result]
) -> Scored:
    names = [result.node.name for result in own]
    counts = {
        m: np.concatenate([judged.counts[m, "present", name] for name in names])
        for m in ("FG", TOKENS)
    }
    totals = counts[TOKENS].sum(0)
    phrases = counts[TOKENS][:, 3]
    return Scored(
        arm,
        judged.data,
        tuple(result.node.seed for result in own),
        {m: tuple(every[m, name] for name in names) for m in METRICS},
        counts["FG"][:, 0],
        (counts[TOKENS][:, 0] / np.maximum(phrases, 1))[phrases > 0],
        tuple(float(v) for v in totals[:3] / max(totals[3], 1)),  # type: ignore[arg-type]  # three
        float(phrases.mean()),
    )


def table_one(found: Sequence[Scored]) -> Table:
    """The paper's table 1: a line per arm, and of each test set F1@M, F1@5 and FG."""
    data = list(dict.fromkeys(each.data for each in found))
    header = ["", "seeds", *(f"{name} {m}" for name in data for m in METRICS)]
    lines = []
    for arm, own in _lines(found, ARMS):
        cells = [cell(mean_over_seeds(own[name], m)) for name in data for m in METRICS]
        lines.append([arm, str(len(own[data[0]].seeds)), *cells])
    return [header, *lines]


def table_two(found: Sequence[Scored], data: str) -> Table:
    """The paper's table 2: phrases and their words on one test set, with parts left out."""
    header = ["", "seeds", *METRICS, "tF", "tP", "tR", "present phrases"]
    lines = []
    for arm, own in _lines(found, {**ARMS, **ABLATIONS}):
        here = own[data]
        cells = [cell(mean_over_seeds(here, m)) for m in METRICS]
        words = [f"{value:.3f}" for value in here.tokens]
        lines.append([arm, str(len(here.seeds)), *cells, *words, f"{here.phrases:.2f}"])
    return [header, *lines]


def differences(found: Sequence[Scored]) -> Table:
    """What each arm scores beyond maximum likelihood, and beyond RL for F1, on seeds both have."""
    header = ["data", "arm", "beyond", "seeds", *METRICS]
    by_place = {(each.data, each.arm): each for each in found}
    lines = []
    for (data, arm), each in by_place.items():
        for other in (MLE, FIRST):
            less = by_place.get((data, other))
            if arm not in (MLE, other) and less and (shared := shared_seeds(each, less)):
                cells = [cell(gap(each, less, m), signed=True) for m in METRICS]
                lines.append([data, arm, other, str(len(shared)), *cells])
    return [header, *lines]


def _lines(
    found: Sequence[Scored], arms: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, dict[str, Scored]]]:
    for arm in arms:
        if own := {each.data: each for each in found if each.arm == arm}:
            yield arm, own
