"""The report of the keyphrase experiment: tables, figures and claims.

`keyphrase_report` puts together the tables and figures of Luo et al. (2021) and their claims with
the differences found here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from evenmatch.data.documents import Document
from evenmatch.data.tables import TextTable
from evenmatch.evaluation.keyphrase_table import COLUMNS
from evenmatch.reports.plots import line_plot_svg
from evenmatch.reports.study_page import StudyReport
from evenmatch.stats.bootstrap import Interval, percentile_bounds
from evenmatch.stats.paired import ResampledScore
from evenmatch.stats.panel import Floats
from evenmatch.studies.experiment import (
    CONFIDENCE,
    NOT_DECIDED,
    NOT_SEEN,
    REVERSED,
    SEEN,
    Experiment,
    RunResult,
    format_interval,
    results_by_arm,
    run_name,
)
from evenmatch.studies.keyphrase_arms import (
    METRICS,
    PEOPLE,
    KeyphraseArmScores,
    Predictions,
    phrase_token_f1,
    score_keyphrase_arms,
)
from evenmatch.studies.keyphrase_generation import (
    ABLATIONS,
    BASELINE_ARM,
    KEYPHRASE_ARMS,
    MLE,
    KeyphraseCorpus,
    KeyphraseStudy,
)

KeyphraseExperiment: TypeAlias = Experiment[KeyphraseStudy]
LEAST_SEEDS = 3  # for a verdict


@dataclass(frozen=True, slots=True)
class PublishedClaim:
    """A claim: by this metric of present phrases, the first arm scores above the second.

    `published` is the difference in the paper, in the order of the tests.
    """

    arm: str
    other: str
    metric: str
    statement: str
    published: Mapping[str, float]


def _claim(arm: str, other: str, metric: str, statement: str, *published: float) -> PublishedClaim:
    tests = dict(zip(("Inspec", "Krapivin", "KP20k"), published, strict=True))
    return PublishedClaim(arm, other, metric, statement, tests)


# With the differences in table 1 of Luo et al. (2021).
CLAIMS = (
    _claim(
        BASELINE_ARM, MLE, "F1@M", "rewarding F1 raises F1 beyond likelihood", 0.038, 0.008, 0.016
    ),
    _claim(
        "RL(FG)",
        BASELINE_ARM,
        "FG",
        "rewarding FG raises FG beyond rewarding F1",
        *(0.078, 0.053, 0.071),
    ),
    _claim(
        BASELINE_ARM,
        "RL(FG)",
        "F1@M",
        "rewarding F1 raises F1 beyond rewarding FG",
        *(0.048, 0.003, 0.018),
    ),
    _claim(
        "2RL(FG)",
        BASELINE_ARM,
        "F1@M",
        "FG first, then F1, reaches a higher F1 than F1 alone",
        *(0.008, 0.013, 0.008),
    ),
    _claim(
        "2RL(FG)",
        BASELINE_ARM,
        "FG",
        "FG first, then F1, keeps a higher FG than F1 alone",
        *(0.043, 0.029, 0.012),
    ),
    _claim(
        "RL(FB)",
        "RL(FG)",
        "FG",
        "as a reward the scorer FB raises FG beyond FG itself",
        *(0.003, 0.003, 0.004),
    ),
    _claim(
        "2RL(FB)",
        "2RL(FG)",
        "F1@M",
        "as a first stage FB reaches a higher F1 than FG",
        *(0.002, -0.001, 0.001),
    ),
)

_PLOTTED_ARMS = (MLE, "RL(F1)", "RL(FG)", "2RL(FG)")
_BINS = 5  # bins between 0 and 1, which have bins of their own
_DEGENERATE = 2.0  # times the share of repeated words in people's absent phrases


def keyphrase_report(
    runs: KeyphraseExperiment,
    found: Sequence[KeyphraseArmScores] | None = None,
    baselines: Predictions | None = None,
) -> StudyReport:
    """Report the stored results; runs without results are listed.

    `found` are their scores, if computed before; `baselines` are predictions of other systems.
    """
    results, corpus = runs.results(), runs.study.corpus
    if found is None:
        shared = runs.study.design.shared_start
        found = score_keyphrase_arms(results, corpus, baselines or {}, shared_start=shared)
    tables = {
        "present phrases": keyphrase_score_table(found, "present"),
        "absent phrases": keyphrase_score_table(found, "absent"),
        "every run": keyphrase_run_table(found),
        "claims": keyphrase_claim_table(found),
        "repetition in absent phrases": repetition_table(found),
    }
    if any(each.scores.arm in ABLATIONS for each in found):
        tables |= {f"words of phrases, {d}": ablation_table(found, d) for d in corpus.tests}
    return StudyReport(
        "Keyphrases: maximum likelihood, and reinforcement learning in one stage or two",
        [
            *runs.describe_missing(),
            *map(str, check_keyphrase_claims(found)),
            *describe_repetition(found),
        ],
        tables if found else {},
        keyphrase_figures(found, results, corpus),
        _notes(runs, results),
    )


def keyphrase_score_table(found: Sequence[KeyphraseArmScores], column: str) -> TextTable:
    """Return the paper's table 1 for present, absent or all phrases: a row per arm."""
    data = list(dict.fromkeys(each.data for each in found))
    rows = [["", "seeds", *(f"{name} {m}" for name in data for m in METRICS)]]
    hidden = (PEOPLE, *ABLATIONS)
    for arm in dict.fromkeys(each.scores.arm for each in found if each.scores.arm not in hidden):
        own = {each.data: each for each in found if each.scores.arm == arm}
        cells = [
            format_interval(own[name].scores.mean(f"{column} {m}") if name in own else None)
            for name in data
            for m in METRICS
        ]
        rows.append([arm, _count_seeds(next(iter(own.values()))), *cells])
    return rows


def keyphrase_run_table(found: Sequence[KeyphraseArmScores]) -> TextTable:
    """Return a row for every arm and seed: F1@M and FG, and the phrases that it predicts."""
    scored = [(c, m) for m in ("F1@M", "FG") for c in COLUMNS]
    rows = [
        [
            *("data", "arm", "seed", *(f"{m} {c}" for c, m in scored)),
            *("present phrases", "absent phrases", "words per phrase"),
            *("phrases over 8 words", "repeated words", "repeated in absent"),
        ]
    ]
    for each in found:
        for run in each.runs:
            counts = run.phrases
            rows.append(
                [
                    *(each.data, each.scores.arm, str(run.seed or "")),
                    *(f"{run.scores[key]:.3f}" for key in scored),
                    *(f"{n:.2f}" for n in (counts.present, counts.absent, counts.words)),
                    *(
                        f"{100 * n:.1f} %"
                        for n in (counts.overlong, counts.repeated, run.repetition[0].value)
                    ),
                ]
            )
    return rows


def ablation_table(found: Sequence[KeyphraseArmScores], data: str) -> TextTable:
    """Return the paper's table 2: phrase and token scores on one test set, with ablations."""
    rows = [["", "seeds", *METRICS, "tF", "tP", "tR", "present phrases"]]
    for each in found:
        if each.data == data and each.scores.arm != PEOPLE:
            cells = [format_interval(each.scores.mean(f"present {m}")) for m in METRICS]
            cells += [f"{value:.3f}" for value in each.token_prf]
            cells.append(f"{np.mean([run.phrases.present for run in each.runs]):.2f}")
            rows.append([each.scores.arm, _count_seeds(each), *cells])
    return rows


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """What was found of a claim on one test set.

    `detectable` is the true difference that the experiment would find with a power of 80 %.
    """

    claim: PublishedClaim
    data: str
    seeds: int
    difference: Interval
    detectable: float
    verdict: str

    def __str__(self) -> str:
        """Return the claim and the result in one line."""
        claim = self.claim
        return (
            f"{claim.statement} ({claim.metric}: {claim.arm} minus {claim.other}), {self.data}: "
            f"{format_interval(self.difference, signed=True)}, {self.verdict}"
        )


def check_keyphrase_claims(found: Sequence[KeyphraseArmScores]) -> Iterator[ClaimResult]:
    """Yield each claim whose two arms have results, test set by test set."""
    by_place = {(each.data, each.scores.arm): each.scores for each in found}
    for claim in CLAIMS:
        for data in dict.fromkeys(each.data for each in found):
            one, less = (by_place.get((data, arm)) for arm in (claim.arm, claim.other))
            if one and less and (shared := one.shared_seeds(less)):
                metric = f"present {claim.metric}"
                difference = one.minus(less, metric)
                yield ClaimResult(
                    claim,
                    data,
                    len(shared),
                    difference,
                    one.detectable_difference(less, metric),
                    judge_difference(difference, claim.published.get(data), len(shared)),
                )


def judge_difference(difference: Interval, published: float | None, seeds: int) -> str:
    """Return the verdict on a claimed difference above 0.

    Seen: the interval is above 0. Reversed: it is below. Not seen: it has 0 in it and lies below
    the published difference. All else is not decided, and so is everything with few seeds.

    >>> judge_difference(Interval(0.01, 0.005, 0.02), 0.03, 3)
    'seen'
    >>> judge_difference(Interval(0.01, -0.005, 0.02), 0.03, 3)
    'not seen'
    >>> judge_difference(Interval(0.01, -0.005, 0.04), 0.03, 3)
    'not decided'
    """
    if seeds < LEAST_SEEDS:
        return NOT_DECIDED
    if difference.low > 0:
        return SEEN
    if difference.high < 0:
        return REVERSED
    return NOT_SEEN if published is not None and difference.high < published else NOT_DECIDED


def keyphrase_claim_table(found: Sequence[KeyphraseArmScores]) -> TextTable:
    """Return the claims of the paper with their verdicts; differences are times 100."""
    rows = [["claim", "data", "seeds", "paper", "here", "detectable", "verdict"]]
    for each in check_keyphrase_claims(found):
        claim, published = each.claim, each.claim.published.get(each.data)
        rows.append(
            [
                f"{claim.statement} ({claim.metric}: {claim.arm} - {claim.other})",
                *(each.data, str(each.seeds)),
                "" if published is None else f"{100 * published:+.1f}",
                format_interval(each.difference, signed=True, times=100, places=1),
                *(f"{100 * each.detectable:.1f}", each.verdict),
            ]
        )
    return rows


@dataclass(frozen=True, slots=True)
class Repetition:
    """How often the absent phrases of an arm repeat a word of their own, on one test set.

    The words are those of the worst seed, `share` is its share of repeated words and `limit` twice
    people's. `guarded` is the share without the phrases in which a word follows itself, which a
    generator leaves out.
    """

    data: str
    arm: str
    repeated: int
    words: int
    share: Interval
    limit: float
    degenerate: bool
    guarded: Interval
    guarded_degenerate: bool

    def verdict(self, *, guarded: bool = False) -> str:
        """Return the verdict in words."""
        degenerate = self.guarded_degenerate if guarded else self.degenerate
        return "degenerate" if degenerate else "not degenerate"


def measure_repetition(found: Sequence[KeyphraseArmScores]) -> Iterator[Repetition]:
    """Yield the repetition in absent phrases of each arm and system on each test set.

    An arm is degenerate if for one of its seeds the interval of the difference from twice people's
    share, over the same resampled documents, is above 0.
    """
    people = {e.data: e.runs[0].repetition for e in found if e.scores.arm == PEOPLE}
    for each in found:
        gold, _ = people[each.data]
        worst, guarded = (
            max((run.repetition[kind] for run in each.runs), key=lambda seed: seed.value)
            for kind in (0, 1)
        )

        degenerate = [
            any(_exceeds(run.repetition[kind], gold) for run in each.runs) for kind in (0, 1)
        ]
        yield Repetition(
            each.data,
            each.scores.arm,
            int(worst.total[0]),
            int(worst.total[1]),
            _interval(worst),
            _DEGENERATE * gold.value,
            degenerate[0],
            _interval(guarded),
            degenerate[1],
        )


def repetition_table(found: Sequence[KeyphraseArmScores]) -> TextTable:
    """Return the repetition in absent phrases, in percent: a row for each test set and arm."""
    rows = [["data", "", "repeated / words", "share, %", "limit, %", "verdict"]]
    rows[0] += ["without doubled words, %", "verdict"]
    for each in measure_repetition(found):
        rows.append(
            [
                *(each.data, each.arm, f"{each.repeated} / {each.words}"),
                format_interval(each.share, times=100, places=1),
                *(f"{100 * each.limit:.1f}", "" if each.arm == PEOPLE else each.verdict()),
                format_interval(each.guarded, times=100, places=1),
                "" if each.arm == PEOPLE else each.verdict(guarded=True),
            ]
        )
    return rows


def describe_repetition(found: Sequence[KeyphraseArmScores]) -> Iterator[str]:
    """Yield for each arm with FB how often its absent phrases repeat words, beside people's."""
    for each in measure_repetition(found):
        if each.arm in KEYPHRASE_ARMS and "FB" in each.arm:
            yield (
                f"{each.arm}, {each.data}: {each.repeated} of {each.words} words of absent phrases "
                f"repeat an earlier one in the worst seed, "
                f"{format_interval(each.share, times=100, places=1)} %; twice people's share is "
                f"{100 * each.limit:.1f} %: {each.verdict()}; without phrases in which a word "
                f"follows itself: {each.verdict(guarded=True)}"
            )


def _exceeds(share: ResampledScore, gold: ResampledScore) -> bool:
    excess = share.resamples - _DEGENERATE * gold.resamples
    return percentile_bounds(excess, CONFIDENCE)[0] > 0


def _interval(score: ResampledScore) -> Interval:
    return Interval(score.value, *percentile_bounds(score.resamples, CONFIDENCE))


def case_study(
    texts: Sequence[Document], outputs: Mapping[str, Sequence[Sequence[str]]], number: int
) -> TextTable:
    """Return the phrases of a document, gold and predicted by each system (figure 2)."""
    rows = [["", "phrases"], ["gold", "; ".join(texts[number].keyphrases)]]
    return [*rows, *([name, "; ".join(each[number])] for name, each in outputs.items())]


def keyphrase_figures(
    found: Sequence[KeyphraseArmScores], results: Sequence[RunResult], corpus: KeyphraseCorpus
) -> dict[str, str]:
    """Return the paper's figure 3, and the evaluations and curves of training."""
    figures = {}
    for data, texts in corpus.tests.items():
        own = {e.scores.arm: e for e in found if e.data == data and e.scores.arm in _PLOTTED_ARMS}
        if not own:
            continue
        name = data.lower()
        figures[f"fg-{name}"] = line_plot_svg(
            f"FG of documents, {data}",
            ("FG", "share of documents"),
            {arm: histogram_shares(each.fg) for arm, each in own.items()},
        )
        figures[f"words-{name}"] = line_plot_svg(
            f"Token F1 of predicted phrases, {data}",
            ("token F1", "share of predicted present phrases"),
            {
                arm: histogram_shares(phrase_token_f1(texts, each.outputs))
                for arm, each in own.items()
            },
        )
    for arm, some in results_by_arm(results, KEYPHRASE_ARMS).items():
        lines = {f"seed {each.run.seed}": each.evaluations for each in some}
        quality = "log-probability per token" if arm == MLE else "reward, present plus absent"
        title = f"{arm}: validation during training"
        figures[f"looks-{arm}"] = line_plot_svg(title, ("step", quality), lines)
    for curve, label in (("entropy", "entropy per token"), ("length", "tokens per output")):
        lines = {
            run_name(each.run): list(enumerate(each.curves[curve]))
            for each in results
            if curve in each.curves and each.run.rewards
        }
        if lines:
            title = f"Sampled outputs during reinforcement learning: {label}"
            figures[curve] = line_plot_svg(title, ("part of training", label), lines)
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


def _notes(runs: KeyphraseExperiment, results: Sequence[RunResult]) -> list[str]:
    study = runs.study
    corpus, design = study.corpus, study.design
    tests = ", ".join(f"{name} {len(each)}" for name, each in corpus.tests.items())
    settings, stage = design.settings, design.stage.training
    shape, first = settings.shape, settings.likelihood
    reader = f"the states of {shape.encoder}, layer {shape.layer}" if shape.encoder else "words"
    chosen = study.load_rate(runs)
    rates = ", ".join(f"{rate:g}: {reward:.4f}" for rate, reward in chosen.get("validation", []))
    return [
        f"training: {study.training_data.training}; validation: {study.training_data.validation}; "
        f"tests: {tests}, none of which is in the training data",
        f"catSeq with {settings.words} tokens, word vectors of size {shape.embedding}, an encoder "
        f"of size {shape.hidden} per direction on {reader}, attention of size {shape.attention}; "
        f"maximum likelihood: at most {first.epochs} epochs, batches of {first.batch}, learning "
        f"rate {first.rate:g}",
        f"each stage: at most {stage.most_steps or 'all'} steps with {stage.batch} documents, "
        f"evaluated every {stage.look_every} steps; the best evaluation of the stage is tested, "
        "greedily, never the model that the stage started from"
        + ("" if stage.train_reader else "; the weights that encode documents are not trained"),
        f"learning rate of the stages: {chosen['rate']:g}, by the validation reward of RL(F1) "
        f"({rates})"
        if chosen
        else "learning rate of the stages: not chosen yet",
        "all seeds share one start, so that intervals leave out the variation between starts"
        if design.shared_start
        else "each seed has a start of its own",
        "scores by the rules of Chan et al. (2019); in brackets: 95 % bootstrap intervals over "
        "seeds and documents",
        f"{len(results)} runs took {sum(r.seconds for r in results) / 60:.0f} minutes, without "
        "what was trained before a run was resumed",
    ]


def _count_seeds(each: KeyphraseArmScores) -> str:
    return "" if each.scores.seeds == (0,) else str(len(each.scores.seeds))
