"""What the arms of the keyphrase experiment score on the test sets, document by document.

`score_keyphrase_arms` scores every arm, and other systems beside them; the report of the experiment
reads its result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from evenmatch.data.documents import Document, DocumentSet
from evenmatch.evaluation.keyphrase_scores import score_document_set
from evenmatch.evaluation.keyphrase_table import COLUMNS
from evenmatch.metrics.keyphrases.keyphrase_metric import KeyphraseMetric
from evenmatch.metrics.keyphrases.phrase_reducers import TokenMatch
from evenmatch.metrics.presets import make_metric
from evenmatch.stats.paired import ResampledScore, mean_score, resample_scores
from evenmatch.stats.panel import Floats
from evenmatch.studies.experiment import ArmScores, RunResult, results_by_arm, run_name
from evenmatch.studies.keyphrase_generation import ABLATIONS, KEYPHRASE_ARMS, MLE, KeyphraseCorpus
from evenmatch.studies.phrase_counts import PhraseCounts, count_phrases, count_repeated_words
from evenmatch.types import Run

Predictions: TypeAlias = Mapping[str, Mapping[str, Sequence[Sequence[str]]]]  # by system, test set

METRICS: Mapping[str, KeyphraseMetric] = {
    label: make_metric(name)
    for label, name in {"F1@M": "f1_at_m", "F1@5": "f1_at_5", "FG": "fg"}.items()
}
TOKEN_F1 = "token F1"
PEOPLE = "people"  # the gold phrases, described like those of a system
_REPETITION = ("repetition", "repetition without doubled words")
_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class RunScores:
    """The scores of one run on one test set, by column and metric, and its phrases."""

    seed: int
    scores: Mapping[tuple[str, str], float]
    phrases: PhraseCounts
    # The share of repeated words in absent phrases: of all, and without doubled words.
    repetition: tuple[ResampledScore, ResampledScore]


@dataclass(frozen=True, slots=True, eq=False)
class KeyphraseArmScores:
    """The scores of one arm, or of another system, on one test set."""

    data: str
    scores: ArmScores  # by "column metric", such as "present FG"
    runs: tuple[RunScores, ...]
    fg: Floats  # of present phrases of each document, all seeds together
    outputs: tuple[Sequence[Sequence[str]], ...]  # the predictions of each run
    token_prf: tuple[float, ...]  # token F, P and R over all predicted present phrases


def score_keyphrase_arms(
    results: Sequence[RunResult],
    corpus: KeyphraseCorpus,
    baselines: Predictions | None = None,
    *,
    shared_start: bool = False,
) -> list[KeyphraseArmScores]:
    """Score every arm on every test set; all arms share the same resampled documents.

    With `shared_start`, the start counts as that of every seed.
    """
    return [
        each
        for data in corpus.tests
        for each in _score_test_set(data, results, corpus, baselines or {}, shared_start)
    ]


def _score_test_set(
    data: str,
    results: Sequence[RunResult],
    corpus: KeyphraseCorpus,
    baselines: Predictions,
    shared_start: bool,
) -> Iterator[KeyphraseArmScores]:
    outputs = {name: each[data] for name, each in baselines.items() if data in each}
    outputs |= {run_name(result.run): result.outputs[data] for result in results}
    if not outputs:
        return
    texts = corpus.tests[data]
    outputs = {PEOPLE: [each.keyphrases for each in texts]} | outputs
    others = {PEOPLE, *baselines}
    documents = tuple(
        Document(d.text, d.keyphrases, {name: tuple(rows[i]) for name, rows in outputs.items()})
        for i, d in enumerate(texts)
    )
    metrics = {**METRICS, TOKEN_F1: KeyphraseMetric(scoring=TokenMatch())}
    scored = score_document_set(DocumentSet(data, documents, tuple(outputs)), metrics, Run()).counts
    counts = dict(scored)
    for name, rows in outputs.items():
        repeated = count_repeated_words(rows, texts)
        for kind, columns in zip(_REPETITION, (repeated[:, :2], repeated[:, 2:]), strict=True):
            counts[kind, "absent", name] = columns
    every = resample_scores(
        counts,
        {key: metrics[key[0]].score_totals if key in scored else mean_score for key in counts},
        resamples=_RESAMPLES,
        trials=0,
        seed=0,
    )
    seeds = tuple(sorted({result.run.seed for result in results}))
    arms: dict[str, dict[int, str]] = {name: {0: name} for name in outputs if name in others}
    for arm, own in results_by_arm(results, {**KEYPHRASE_ARMS, **ABLATIONS}).items():
        names = {result.run.seed: run_name(result.run) for result in own}
        shared = shared_start and arm == MLE
        arms[arm] = dict.fromkeys(seeds, next(iter(names.values()))) if shared else names
    for arm, named in arms.items():
        different: dict[str, int] = {}  # a shared start has one run, listed with the first seed
        for seed, name in named.items():
            different.setdefault(name, seed)
        fg, tokens = (
            np.concatenate([counts[metric, "present", name] for name in different])
            for metric in ("FG", TOKEN_F1)
        )
        totals = tokens.sum(0)
        yield KeyphraseArmScores(
            data,
            ArmScores(
                arm,
                tuple(named),
                {
                    f"{c} {m}": tuple(every[m, c, name] for name in named.values())
                    for c in COLUMNS
                    for m in METRICS
                },
                resample_seeds=True,
            ),
            tuple(
                RunScores(
                    seed,
                    {(c, m): every[m, c, name].value for c in COLUMNS for m in METRICS},
                    count_phrases(
                        outputs[name],
                        float(counts[TOKEN_F1, "present", name][:, 3].mean()),
                        float(counts[TOKEN_F1, "absent", name][:, 3].mean()),
                    ),
                    (every[_REPETITION[0], "absent", name], every[_REPETITION[1], "absent", name]),
                )
                for name, seed in different.items()
            ),
            fg[:, 0],
            tuple(outputs[name] for name in different),
            tuple(float(v) for v in totals[:3] / max(totals[3], 1)),
        )


def phrase_token_f1(
    documents: Sequence[Document], outputs: Sequence[Sequence[Sequence[str]]]
) -> Floats:
    """Return the token F1 of each predicted present phrase with the gold phrase it is nearest."""
    single = tuple(
        Document(document.text, document.keyphrases, {"phrase": (phrase,)})
        for rows in outputs
        for document, phrases in zip(documents, rows, strict=True)
        for phrase in phrases
    )
    if not single:
        return np.zeros(0)
    metrics = {TOKEN_F1: KeyphraseMetric(scoring=TokenMatch())}
    found = score_document_set(DocumentSet("phrases", single, ("phrase",)), metrics, Run())
    counts = found.counts[TOKEN_F1, "present", "phrase"]
    return np.asarray(counts[counts[:, 3] > 0, 0], float)
