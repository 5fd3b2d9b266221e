"""The keyphrase experiment as a folder to look at: tables, distributions, curves, claims.

The scores of every arm on every test set: mean over seeds, intervals, and differences.

What paper 004 says of its stages, and whether it is seen here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.data.documents import Document, DocumentSet
from evenmatch.data.tables import TextTable
from evenmatch.evaluation.keyphrase_scores import KeyphraseCounts, score_document_set
from evenmatch.metrics.keyphrases.keyphrase_metric import KeyphraseMetric, f1_at_5, f1_at_m, fg
from evenmatch.metrics.keyphrases.phrase_reducers import TokenMatch
from evenmatch.reports.plots import line_plot_svg
from evenmatch.reports.study_page import StudyReport
from evenmatch.stats.paired import ResampledScore, resample_scores
from evenmatch.stats.panel import Floats
from evenmatch.studies.experiment import (
    Claim,
    arm_difference,
    describe_missing,
    evaluate_claim,
    format_claim,
    format_interval,
    mean_over_seeds,
    shared_seeds,
)
from evenmatch.studies.keyphrase_generation import (
    ABLATIONS,
    BASELINE_ARM,
    KEYPHRASE_ARMS,
    MLE,
    KeyphraseCorpus,
    KeyphraseDesign,
    KeyphraseExperiment,
    KeyphraseRunResult,
    keyphrase_results_by_arm,
)
from evenmatch.types import Run

_BINS = 5  # between nothing and everything, which have bands of their own


_PLOTTED_ARMS = (MLE, "RL(F1)", "RL(FG)", "2RL(FG)")


def keyphrase_report(
    runs: KeyphraseExperiment, found: Sequence[KeyphraseArmScores] | None = None
) -> StudyReport:
    """What the results that there are say; runs that are missing are said to be.

    `found` are their scores, where they were made before.
    """
    results = runs.results()
    if found is None:
        found = score_keyphrase_arms(results, runs.corpus) if results else []
    lacking = [node.name for node in runs.design.runs() if runs.load_result(node) is None]
    tables = {
        "present phrases": keyphrase_score_table(found),
        "differences": keyphrase_difference_table(found),
    }
    tables |= {
        f"words of phrases, {d}": ablation_table(found, d) for d in runs.corpus.tests if found
    }
    return StudyReport(
        "Keyphrases: likelihood, and reinforcement in one stage or two",
        [
            *describe_missing(lacking, len(results)),
            *map(format_claim, check_keyphrase_claims(found)),
        ],
        tables if found else {},
        keyphrase_figures(found, results) if found else {},
        _notes(runs.corpus, runs.design, results),
    )


def keyphrase_figures(
    found: Sequence[KeyphraseArmScores], results: Sequence[KeyphraseRunResult]
) -> dict[str, str]:
    """The paper's figure 3, and how training went."""
    made = {}
    for data in dict.fromkeys(each.data for each in found):
        own = [each for each in found if each.data == data and each.arm in _PLOTTED_ARMS]
        name = data.lower()
        made[f"fg-{name}"] = line_plot_svg(
            f"FG of documents, {data}",
            ("FG", "share of documents"),
            {each.arm: histogram_shares(each.fg) for each in own},
        )
        made[f"words-{name}"] = line_plot_svg(
            f"Token F1 of predicted phrases, by document, {data}",
            ("token F1", "share of documents with phrases"),
            {each.arm: histogram_shares(each.token_f1) for each in own},
        )
    for arm, some in keyphrase_results_by_arm(results):
        lines = {
            f"seed {each.run.seed}": [(float(step), value) for step, value in each.evaluations]
            for each in some
        }
        what = "log-probability of a word" if arm == MLE else "reward, both groups"
        made[f"looks-{arm}"] = line_plot_svg(f"{arm}: documents looked at", ("step", what), lines)
    return {name.replace("(", "-").replace(")", ""): figure for name, figure in made.items()}


def histogram_shares(values: Floats) -> list[tuple[float, float]]:
    """The share of values that are 0, in each band above it, and 1.

    >>> [share for _, share in histogram_shares(np.array([0.0, 0.1, 0.95, 1.0]))]
    [0.25, 0.25, 0.0, 0.0, 0.0, 0.25, 0.25]
    """
    bands = np.ceil(np.asarray(values) * _BINS - 1e-9)
    bands = np.where(np.asarray(values) >= 1 - 1e-9, _BINS + 1, bands)
    counts = np.bincount(bands.astype(int), minlength=_BINS + 2)
    places = [0.0, *((i + 0.5) / _BINS for i in range(_BINS)), 1.0]
    every = max(len(values), 1)  # an arm may have written nothing at all
    return [(at, float(count) / every) for at, count in zip(places, counts, strict=True)]


def _notes(
    corpus: KeyphraseCorpus, design: KeyphraseDesign, results: Sequence[KeyphraseRunResult]
) -> list[str]:
    tests = ", ".join(f"{name} {len(each)}" for name, each in corpus.tests.items())
    shape, course, stage = design.settings.shape, design.settings.likelihood, design.stage.course
    return [
        f"{len(corpus.train)} documents to learn from (those with over {design.settings.longest} "
        f"words or {design.settings.most_phrases} phrases are left out), {len(corpus.valid)} to "
        f"look at; tests: {tests}; no text of a test is learnt from",
        f"catSeq with {design.settings.words} words, vectors of {shape.embedding}, readers of "
        f"{shape.hidden}, attention of {shape.attention}; likelihood: {course.epochs} epochs at "
        f"{course.rate:g}; each stage: {stage.epochs} epochs at {stage.rate:g}; the model at its "
        "best look is kept; greedy decoding",
        "present phrases only, by Chan et al.'s rules; in brackets: 95 % by bootstrap over "
        "documents, of the mean over seeds",
        f"{len(results)} runs took {sum(r.seconds for r in results) / 60:.0f} minutes",
    ]


METRICS: Mapping[str, KeyphraseMetric] = {"F1@M": f1_at_m(), "F1@5": f1_at_5(), "FG": fg()}


TOKEN_F1 = "token F1"


_RESAMPLES = 1000


@dataclass(frozen=True, slots=True, eq=False)
class KeyphraseArmScores:
    """One arm on one test set, over present phrases, by its seeds."""

    arm: str
    data: str
    seeds: tuple[int, ...]
    resampled: Mapping[str, tuple[ResampledScore, ...]]  # by metric, seed by seed
    fg: Floats  # of each document, all seeds together
    token_f1: Floats
    token_prf: tuple[float, float, float]  # token F, P and R over all phrases
    phrases_per_document: float  # predicted present phrases per document


def score_keyphrase_arms(
    results: Sequence[KeyphraseRunResult], corpus: KeyphraseCorpus
) -> list[KeyphraseArmScores]:
    """Every arm on every test set; the same draws of documents serve all arms."""
    return [each for data in corpus.tests for each in _score_test_set(data, results, corpus)]


def _score_test_set(
    data: str, results: Sequence[KeyphraseRunResult], corpus: KeyphraseCorpus
) -> Iterator[KeyphraseArmScores]:
    named = {result.run.name: result for result in results}
    documents = tuple(
        Document(d.text, d.keyphrases, {n: r.predictions[data][i] for n, r in named.items()})
        for i, d in enumerate(corpus.tests[data])
    )
    metrics = {**METRICS, TOKEN_F1: KeyphraseMetric(scoring=TokenMatch())}
    judged = score_document_set(DocumentSet(data, documents, tuple(named)), metrics, Run())
    present = {(m, s): counts for (m, c, s), counts in judged.counts.items() if c == "present"}
    every = resample_scores(
        present,
        {key: metrics[key[0]].score_totals for key in present},
        resamples=_RESAMPLES,
        trials=0,
        seed=0,
    )
    for arm, own in keyphrase_results_by_arm(results, {**KEYPHRASE_ARMS, **ABLATIONS}):
        yield _arm_scores(arm, judged, every, own)


def _arm_scores(
    arm: str,
    judged: KeyphraseCounts,
    every: Mapping[tuple[str, str], ResampledScore],
    own: Sequence[KeyphraseRunResult],
) -> KeyphraseArmScores:
    names = [result.run.name for result in own]
    counts = {
        m: np.concatenate([judged.counts[m, "present", name] for name in names])
        for m in ("FG", TOKEN_F1)
    }
    totals = counts[TOKEN_F1].sum(0)
    phrases = counts[TOKEN_F1][:, 3]
    return KeyphraseArmScores(
        arm,
        judged.data,
        tuple(result.run.seed for result in own),
        {m: tuple(every[m, name] for name in names) for m in METRICS},
        counts["FG"][:, 0],
        (counts[TOKEN_F1][:, 0] / np.maximum(phrases, 1))[phrases > 0],
        tuple(float(v) for v in totals[:3] / max(totals[3], 1)),  # type: ignore[arg-type]  # three
        float(phrases.mean()),
    )


def keyphrase_score_table(found: Sequence[KeyphraseArmScores]) -> TextTable:
    """The paper's table 1: a line per arm, and of each test set F1@M, F1@5 and FG."""
    data = list(dict.fromkeys(each.data for each in found))
    header = ["", "seeds", *(f"{name} {m}" for name in data for m in METRICS)]
    lines = []
    for arm, own in _scores_by_arm(found, KEYPHRASE_ARMS):
        cells = [format_interval(mean_over_seeds(own[name], m)) for name in data for m in METRICS]
        lines.append([arm, str(len(own[data[0]].seeds)), *cells])
    return [header, *lines]


def ablation_table(found: Sequence[KeyphraseArmScores], data: str) -> TextTable:
    """The paper's table 2: phrases and their words on one test set, with parts left out."""
    header = ["", "seeds", *METRICS, "tF", "tP", "tR", "present phrases"]
    lines = []
    for arm, own in _scores_by_arm(found, {**KEYPHRASE_ARMS, **ABLATIONS}):
        here = own[data]
        cells = [format_interval(mean_over_seeds(here, m)) for m in METRICS]
        words = [f"{value:.3f}" for value in here.token_prf]
        lines.append(
            [arm, str(len(here.seeds)), *cells, *words, f"{here.phrases_per_document:.2f}"]
        )
    return [header, *lines]


def keyphrase_difference_table(found: Sequence[KeyphraseArmScores]) -> TextTable:
    """What each arm scores beyond maximum likelihood, and beyond RL for F1, on seeds both have."""
    header = ["data", "arm", "beyond", "seeds", *METRICS]
    by_place = {(each.data, each.arm): each for each in found}
    lines = []
    for (data, arm), each in by_place.items():
        for other in (MLE, BASELINE_ARM):
            less = by_place.get((data, other))
            if arm not in (MLE, other) and less and (shared := shared_seeds(each, less)):
                cells = [
                    format_interval(arm_difference(each, less, m), signed=True) for m in METRICS
                ]
                lines.append([data, arm, other, str(len(shared)), *cells])
    return [header, *lines]


def _scores_by_arm(
    found: Sequence[KeyphraseArmScores], arms: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, dict[str, KeyphraseArmScores]]]:
    for arm in arms:
        if own := {each.data: each for each in found if each.arm == arm}:
            yield arm, own


# By the metric, the first arm scores above the second.
_CLAIMS = (
    (BASELINE_ARM, MLE, "F1@M", "rewarding F1 raises F1 beyond likelihood"),
    ("RL(FG)", BASELINE_ARM, "FG", "rewarding FG raises FG beyond rewarding F1"),
    (BASELINE_ARM, "RL(FG)", "F1@M", "rewarding F1 raises F1 beyond rewarding FG"),
    ("2RL(FG)", BASELINE_ARM, "F1@M", "FG first, then F1, reaches a higher F1 than F1 alone"),
    ("2RL(FG)", BASELINE_ARM, "FG", "FG first, then F1, keeps a higher FG than F1 alone"),
    ("RL(FB)", "RL(FG)", "FG", "as a reward the scorer FB raises FG beyond FG itself"),
    ("2RL(FB)", "2RL(FG)", "F1@M", "as a first stage FB reaches a higher F1 than FG"),
)


def check_keyphrase_claims(found: Sequence[KeyphraseArmScores]) -> Iterator[Claim]:
    """Each claim whose two arms there are, test set by test set."""
    by_place = {(each.data, each.arm): each for each in found}
    for arm, other, metric, said in _CLAIMS:
        both = {
            data: (by_place.get((data, arm)), by_place.get((data, other)))
            for data in dict.fromkeys(each.data for each in found)
        }
        seen = {
            data: evaluate_claim(one, less, metric)
            for data, (one, less) in both.items()
            if one and less and shared_seeds(one, less)
        }
        if seen:
            yield Claim(f"{said} ({metric}: {arm} less {other})", seen)
