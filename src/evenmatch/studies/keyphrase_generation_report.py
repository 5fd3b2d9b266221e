"""The report of the keyphrase experiment: scores, tables, figures and claims.

`score_keyphrase_arms` scores every arm on every test set; `keyphrase_report` puts together the
tables and figures of Luo et al. (2021) and their claims with the differences found here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from evenmatch.data.documents import Document, DocumentSet
from evenmatch.data.tables import TextTable
from evenmatch.evaluation.keyphrase_scores import KeyphraseCounts, score_document_set
from evenmatch.metrics.keyphrases.keyphrase_metric import KeyphraseMetric
from evenmatch.metrics.keyphrases.phrase_reducers import TokenMatch
from evenmatch.metrics.presets import make_metric
from evenmatch.reports.plots import line_plot_svg
from evenmatch.reports.study_page import StudyReport
from evenmatch.stats.paired import ResampledScore, resample_scores
from evenmatch.stats.panel import Floats
from evenmatch.studies.experiment import (
    Claim,
    Experiment,
    RunResult,
    arm_difference,
    check_claim,
    format_claim,
    format_interval,
    mean_over_seeds,
    results_by_arm,
    run_name,
    shared_seeds,
)
from evenmatch.studies.keyphrase_generation import (
    ABLATIONS,
    BASELINE_ARM,
    KEYPHRASE_ARMS,
    MLE,
    KeyphraseCorpus,
    KeyphraseRun,
    KeyphraseStudy,
)
from evenmatch.types import Run

KeyphraseExperiment: TypeAlias = Experiment[KeyphraseStudy]
KeyphraseRunResult: TypeAlias = RunResult[KeyphraseRun]
METRICS: Mapping[str, KeyphraseMetric] = {
    label: make_metric(name)
    for label, name in {"F1@M": "f1_at_m", "F1@5": "f1_at_5", "FG": "fg"}.items()
}
TOKEN_F1 = "token F1"

# Claimed: by this metric, the first arm scores above the second.
_CLAIMS = (
    (BASELINE_ARM, MLE, "F1@M", "rewarding F1 raises F1 beyond likelihood"),
    ("RL(FG)", BASELINE_ARM, "FG", "rewarding FG raises FG beyond rewarding F1"),
    (BASELINE_ARM, "RL(FG)", "F1@M", "rewarding F1 raises F1 beyond rewarding FG"),
    ("2RL(FG)", BASELINE_ARM, "F1@M", "FG first, then F1, reaches a higher F1 than F1 alone"),
    ("2RL(FG)", BASELINE_ARM, "FG", "FG first, then F1, keeps a higher FG than F1 alone"),
    ("RL(FB)", "RL(FG)", "FG", "as a reward the scorer FB raises FG beyond FG itself"),
    ("2RL(FB)", "2RL(FG)", "F1@M", "as a first stage FB reaches a higher F1 than FG"),
)

_PLOTTED_ARMS = (MLE, "RL(F1)", "RL(FG)", "2RL(FG)")
_BINS = 5  # bins between 0 and 1, which have bins of their own
_RESAMPLES = 1000


def keyphrase_report(
    runs: KeyphraseExperiment, found: Sequence[KeyphraseArmScores] | None = None
) -> StudyReport:
    """Report the stored results; runs without results are listed.

    `found` are their scores, if computed before.
    """
    results, corpus = runs.results(), runs.study.corpus
    if found is None:
        found = score_keyphrase_arms(results, corpus) if results else []
    tables = {
        "present phrases": keyphrase_score_table(found),
        "differences": keyphrase_difference_table(found),
    }
    tables |= {f"words of phrases, {d}": ablation_table(found, d) for d in corpus.tests if found}
    return StudyReport(
        "Keyphrases: maximum likelihood, and reinforcement learning in one stage or two",
        [
            *runs.describe_missing(),
            *map(format_claim, check_keyphrase_claims(found)),
        ],
        tables if found else {},
        keyphrase_figures(found, results) if found else {},
        _notes(runs.study, results),
    )


def score_keyphrase_arms(
    results: Sequence[KeyphraseRunResult], corpus: KeyphraseCorpus
) -> list[KeyphraseArmScores]:
    """Score every arm on every test set; all arms share the same resampled documents."""
    return [each for data in corpus.tests for each in _score_test_set(data, results, corpus)]


@dataclass(frozen=True, slots=True, eq=False)
class KeyphraseArmScores:
    """The scores of one arm on one test set, for present phrases, by seed."""

    arm: str
    data: str
    seeds: tuple[int, ...]
    resampled: Mapping[str, tuple[ResampledScore, ...]]  # by metric, seed by seed
    fg: Floats  # of each document, all seeds together
    token_f1: Floats
    token_prf: tuple[float, float, float]  # token F, P and R over all phrases
    phrases_per_document: float  # predicted present phrases per document


def keyphrase_score_table(found: Sequence[KeyphraseArmScores]) -> TextTable:
    """Return the paper's table 1: a row per arm; F1@M, F1@5 and FG of each test set."""
    data = list(dict.fromkeys(each.data for each in found))
    header = ["", "seeds", *(f"{name} {m}" for name in data for m in METRICS)]
    lines = []
    for arm, own in _scores_by_arm(found, KEYPHRASE_ARMS):
        cells = [format_interval(mean_over_seeds(own[name], m)) for name in data for m in METRICS]
        lines.append([arm, str(len(own[data[0]].seeds)), *cells])
    return [header, *lines]


def ablation_table(found: Sequence[KeyphraseArmScores], data: str) -> TextTable:
    """Return the paper's table 2: phrase and token scores on one test set, with ablations."""
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
    """Return the differences of each arm from maximum likelihood and from RL(F1)."""
    header = ["data", "arm", "minus", "seeds", *METRICS]
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


def check_keyphrase_claims(found: Sequence[KeyphraseArmScores]) -> Iterator[Claim]:
    """Yield each claim whose two arms have results, with a verdict per test set."""
    by_place = {(each.data, each.arm): each for each in found}
    for arm, other, metric, statement in _CLAIMS:
        comparisons = {
            data: (by_place.get((data, arm)), by_place.get((data, other)), metric)
            for data in dict.fromkeys(each.data for each in found)
        }
        yield from check_claim(f"{statement} ({metric}: {arm} minus {other})", comparisons)


def keyphrase_figures(
    found: Sequence[KeyphraseArmScores], results: Sequence[KeyphraseRunResult]
) -> dict[str, str]:
    """Return the paper's figure 3, and the evaluations during training."""
    figures = {}
    for data in dict.fromkeys(each.data for each in found):
        own = [each for each in found if each.data == data and each.arm in _PLOTTED_ARMS]
        name = data.lower()
        figures[f"fg-{name}"] = line_plot_svg(
            f"FG of documents, {data}",
            ("FG", "share of documents"),
            {each.arm: histogram_shares(each.fg) for each in own},
        )
        figures[f"words-{name}"] = line_plot_svg(
            f"Token F1 of predicted phrases, by document, {data}",
            ("token F1", "share of documents with phrases"),
            {each.arm: histogram_shares(each.token_f1) for each in own},
        )
    for arm, some in results_by_arm(results, KEYPHRASE_ARMS):
        lines = {
            f"seed {each.run.seed}": [(float(step), value) for step, value in each.evaluations]
            for each in some
        }
        quality = "log-probability per word" if arm == MLE else "reward, present plus absent"
        title = f"{arm}: validation during training"
        figures[f"looks-{arm}"] = line_plot_svg(title, ("step", quality), lines)
    return {name.replace("(", "-").replace(")", ""): figure for name, figure in figures.items()}


def histogram_shares(values: Floats) -> list[tuple[float, float]]:
    """Return the share of values that are 0, in each bin between 0 and 1, and that are 1.

    >>> [share for _, share in histogram_shares(np.array([0.0, 0.1, 0.95, 1.0]))]
    [0.25, 0.25, 0.0, 0.0, 0.0, 0.25, 0.25]
    """
    bands = np.ceil(np.asarray(values) * _BINS - 1e-9)
    bands = np.where(np.asarray(values) >= 1 - 1e-9, _BINS + 1, bands)
    counts = np.bincount(bands.astype(int), minlength=_BINS + 2)
    places = [0.0, *((i + 0.5) / _BINS for i in range(_BINS)), 1.0]
    total = max(len(values), 1)  # an arm may have generated nothing at all
    return [(at, float(count) / total) for at, count in zip(places, counts, strict=True)]


def _notes(study: KeyphraseStudy, results: Sequence[KeyphraseRunResult]) -> list[str]:
    corpus, design = study.corpus, study.design
    tests = ", ".join(f"{name} {len(each)}" for name, each in corpus.tests.items())
    shape, first, stage = design.settings.shape, design.settings.likelihood, design.stage.training
    return [
        f"{len(corpus.train)} training documents (those with over {design.settings.longest} "
        f"words or {design.settings.most_phrases} phrases are left out), {len(corpus.valid)} "
        f"validation documents; tests: {tests}; no test document is in the training data",
        f"catSeq with {design.settings.words} words, embeddings of size {shape.embedding}, "
        f"encoders of size {shape.hidden}, attention of size {shape.attention}; maximum "
        f"likelihood: {first.epochs} epochs, learning rate {first.rate:g}; each stage: "
        f"{stage.epochs} epochs, learning rate {stage.rate:g}; the checkpoint with the best "
        "validation result is tested with greedy decoding",
        "present phrases only, by the rules of Chan et al. (2019); in brackets: 95 % bootstrap "
        "intervals over documents, of the mean over seeds",
        f"{len(results)} runs took {sum(r.seconds for r in results) / 60:.0f} minutes",
    ]


def _score_test_set(
    data: str, results: Sequence[KeyphraseRunResult], corpus: KeyphraseCorpus
) -> Iterator[KeyphraseArmScores]:
    named = {run_name(result.run): result for result in results}
    documents = tuple(
        Document(d.text, d.keyphrases, {n: tuple(r.outputs[data][i]) for n, r in named.items()})
        for i, d in enumerate(corpus.tests[data])
    )
    metrics = {**METRICS, TOKEN_F1: KeyphraseMetric(scoring=TokenMatch())}
    scored = score_document_set(DocumentSet(data, documents, tuple(named)), metrics, Run())
    present = {(m, s): counts for (m, c, s), counts in scored.counts.items() if c == "present"}
    every = resample_scores(
        present,
        {key: metrics[key[0]].score_totals for key in present},
        resamples=_RESAMPLES,
        trials=0,
        seed=0,
    )
    for arm, own in results_by_arm(results, {**KEYPHRASE_ARMS, **ABLATIONS}):
        yield _arm_scores(arm, scored, every, own)


def _arm_scores(
    arm: str,
    scored: KeyphraseCounts,
    every: Mapping[tuple[str, str], ResampledScore],
    own: Sequence[KeyphraseRunResult],
) -> KeyphraseArmScores:
    names = [run_name(result.run) for result in own]
    counts = {
        m: np.concatenate([scored.counts[m, "present", name] for name in names])
        for m in ("FG", TOKEN_F1)
    }
    totals = counts[TOKEN_F1].sum(0)
    phrases = counts[TOKEN_F1][:, 3]
    return KeyphraseArmScores(
        arm,
        scored.data,
        tuple(result.run.seed for result in own),
        {m: tuple(every[m, name] for name in names) for m in METRICS},
        counts["FG"][:, 0],
        (counts[TOKEN_F1][:, 0] / np.maximum(phrases, 1))[phrases > 0],
        tuple(float(v) for v in totals[:3] / max(totals[3], 1)),  # type: ignore[arg-type]  # three
        float(phrases.mean()),
    )


def _scores_by_arm(
    found: Sequence[KeyphraseArmScores], arms: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, dict[str, KeyphraseArmScores]]]:
    for arm in arms:
        if own := {each.data: each for each in found if each.arm == arm}:
            yield arm, own
