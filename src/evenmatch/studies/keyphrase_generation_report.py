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
from evenmatch.evaluation.keyphrase_scores import score_document_set
from evenmatch.metrics.keyphrases.keyphrase_metric import KeyphraseMetric
from evenmatch.metrics.keyphrases.phrase_reducers import TokenMatch
from evenmatch.metrics.presets import make_metric
from evenmatch.reports.plots import line_plot_svg
from evenmatch.reports.study_page import StudyReport
from evenmatch.stats.paired import resample_scores
from evenmatch.stats.panel import Floats
from evenmatch.studies.experiment import (
    ArmScores,
    Claim,
    Experiment,
    RunResult,
    check_claim,
    format_claim,
    format_interval,
    results_by_arm,
    run_name,
)
from evenmatch.studies.keyphrase_generation import (
    ABLATIONS,
    BASELINE_ARM,
    KEYPHRASE_ARMS,
    MLE,
    KeyphraseCorpus,
    KeyphraseStudy,
)
from evenmatch.types import Run

KeyphraseExperiment: TypeAlias = Experiment[KeyphraseStudy]
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
        [*runs.describe_missing(), *map(format_claim, check_keyphrase_claims(found))],
        tables if found else {},
        keyphrase_figures(found, results) if found else {},
        _notes(runs.study, results),
    )


def score_keyphrase_arms(
    results: Sequence[RunResult], corpus: KeyphraseCorpus
) -> list[KeyphraseArmScores]:
    """Score every arm on every test set; all arms share the same resampled documents."""
    return [each for data in corpus.tests for each in _score_test_set(data, results, corpus)]


@dataclass(frozen=True, slots=True, eq=False)
class KeyphraseArmScores:
    """The scores of one arm on one test set, for present phrases."""

    data: str
    scores: ArmScores
    fg: Floats  # of each document, all seeds together
    token_f1: Floats
    token_prf: tuple[float, ...]  # token F, P and R over all phrases
    phrases_per_document: float  # predicted present phrases per document


def keyphrase_score_table(found: Sequence[KeyphraseArmScores]) -> TextTable:
    """Return the paper's table 1: a row per arm; F1@M, F1@5 and FG of each test set."""
    data = list(dict.fromkeys(each.data for each in found))
    rows = [["", "seeds", *(f"{name} {m}" for name in data for m in METRICS)]]
    for arm in KEYPHRASE_ARMS:
        own = [each.scores for each in found if each.scores.arm == arm]  # one per test set
        if own:
            cells = [format_interval(each.mean(m)) for each in own for m in METRICS]
            rows.append([arm, str(len(own[0].seeds)), *cells])
    return rows


def ablation_table(found: Sequence[KeyphraseArmScores], data: str) -> TextTable:
    """Return the paper's table 2: phrase and token scores on one test set, with ablations."""
    rows = [["", "seeds", *METRICS, "tF", "tP", "tR", "present phrases"]]
    for each in found:
        if each.data == data:
            cells = [format_interval(each.scores.mean(m)) for m in METRICS]
            cells += [f"{value:.3f}" for value in each.token_prf]
            cells.append(f"{each.phrases_per_document:.2f}")
            rows.append([each.scores.arm, str(len(each.scores.seeds)), *cells])
    return rows


def keyphrase_difference_table(found: Sequence[KeyphraseArmScores]) -> TextTable:
    """Return the differences of each arm from maximum likelihood and from RL(F1)."""
    rows = [["data", "arm", "minus", "seeds", *METRICS]]
    by_place = {(each.data, each.scores.arm): each.scores for each in found}
    for (data, arm), scores in by_place.items():
        for other in (MLE, BASELINE_ARM):
            less = by_place.get((data, other))
            if arm not in (MLE, other) and less and (shared := scores.shared_seeds(less)):
                cells = [format_interval(scores.minus(less, m), signed=True) for m in METRICS]
                rows.append([data, arm, other, str(len(shared)), *cells])
    return rows


def check_keyphrase_claims(found: Sequence[KeyphraseArmScores]) -> Iterator[Claim]:
    """Yield each claim whose two arms have results, with a verdict per test set."""
    by_place = {(each.data, each.scores.arm): each.scores for each in found}
    for arm, other, metric, statement in _CLAIMS:
        comparisons = {
            data: (by_place.get((data, arm)), by_place.get((data, other)), metric)
            for data in dict.fromkeys(each.data for each in found)
        }
        yield from check_claim(f"{statement} ({metric}: {arm} minus {other})", comparisons)


def keyphrase_figures(
    found: Sequence[KeyphraseArmScores], results: Sequence[RunResult]
) -> dict[str, str]:
    """Return the paper's figure 3, and the evaluations during training."""
    figures = {}
    for data in dict.fromkeys(each.data for each in found):
        own = {e.scores.arm: e for e in found if e.data == data and e.scores.arm in _PLOTTED_ARMS}
        name = data.lower()
        figures[f"fg-{name}"] = line_plot_svg(
            f"FG of documents, {data}",
            ("FG", "share of documents"),
            {arm: histogram_shares(each.fg) for arm, each in own.items()},
        )
        figures[f"words-{name}"] = line_plot_svg(
            f"Token F1 of predicted phrases, by document, {data}",
            ("token F1", "share of documents with phrases"),
            {arm: histogram_shares(each.token_f1) for arm, each in own.items()},
        )
    for arm, some in results_by_arm(results, KEYPHRASE_ARMS).items():
        lines = {f"seed {each.run.seed}": each.evaluations for each in some}
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


def _notes(study: KeyphraseStudy, results: Sequence[RunResult]) -> list[str]:
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
        "intervals over documents, of the mean over seeds, without the variation between seeds",
        f"{len(results)} runs took {sum(r.seconds for r in results) / 60:.0f} minutes",
    ]


def _score_test_set(
    data: str, results: Sequence[RunResult], corpus: KeyphraseCorpus
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
    for arm, own in results_by_arm(results, {**KEYPHRASE_ARMS, **ABLATIONS}).items():
        names = [run_name(result.run) for result in own]
        fg, tokens = (
            np.concatenate([present[metric, name] for name in names]) for metric in ("FG", TOKEN_F1)
        )
        phrases, totals = tokens[:, 3], tokens.sum(0)
        yield KeyphraseArmScores(
            data,
            ArmScores(
                arm,
                tuple(result.run.seed for result in own),
                {m: tuple(every[m, name] for name in names) for m in METRICS},
            ),
            fg[:, 0],
            (tokens[:, 0] / np.maximum(phrases, 1))[phrases > 0],
            tuple(float(v) for v in totals[:3] / max(totals[3], 1)),
            float(phrases.mean()),
        )
