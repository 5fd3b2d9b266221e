"""The report of the graph-to-text experiment: scores, tables, figures, examples and claims.

`score_graph_arms` scores the texts of every run and stores the scores, so that a report is quick
to make again. `graph_report` puts together the tables and figures of Jin & Gildea (2022) and
their claims with the differences found here.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from evenmatch.data.tables import TextTable
from evenmatch.protocols import CorpusMetric, Metric
from evenmatch.reports.plots import line_plot_svg
from evenmatch.reports.study_page import StudyReport
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.stats.p_values import holm
from evenmatch.stats.paired import (
    ResampledScore,
    mean_score,
    minimum_detectable_difference,
    paired_t_test,
    resample_scores,
)
from evenmatch.stats.panel import Floats
from evenmatch.studies.experiment import (
    Claim,
    Experiment,
    ResultStore,
    RunResult,
    arm_difference,
    check_claim,
    format_claim,
    format_interval,
    mean_over_seeds,
    permutation_p_value,
    results_by_arm,
    run_name,
    seed_differences,
    shared_seeds,
)
from evenmatch.studies.graph_to_text import GRAPH_ARMS, START, XENT, GraphRun, GraphStudy
from evenmatch.training.rewards.terms import lowercase_words, repeated_share
from evenmatch.types import Array, Pair, Run

GraphExperiment: TypeAlias = Experiment[GraphStudy]
GraphRunResult: TypeAlias = RunResult[GraphRun]
BLEU, REPETITION, EXTRA_METRIC = "BLEU", "repeated", "learnt"

_ALL_ARMS = (START, *GRAPH_ARMS)

# Corpus scores, computed from summed counts.
CORPUS_METRICS = {BLEU: "bleu", "chrF": "chrf"}

# Means over texts.
SEGMENT_METRICS = {"METEOR": "meteor", "BERTScore": "bertscore", "f_disc": "f_disc"}

_RESAMPLES, _PERMUTATIONS = 1000, 5000
_EXAMPLE_COUNT = 6

# Claimed: the first arm scores above the second on every metric.
_CLAIMS = (
    ("F_DISC", XENT, "rewarding F_DISC beats cross-entropy alone"),
    ("BL-R", XENT, "rewarding BLEU beats cross-entropy alone"),
    ("F_DISC", "BL-R", "F_DISC is a better reward than BLEU"),
    ("F_DISC", "F_CONT", "F_DISC is a better reward than F_CONT"),
    ("F_CONT", "F_BERT", "F_CONT is a better reward than F_BERT"),
    ("F_DISC", "F_BERT", "F_DISC is a better reward than F_BERT"),
)

_DIFFERENCE_HEADER = ["metric", "arm", "seeds", "minus XENT", "each seed", "p, graphs", "p, seeds"]


def graph_report(
    runs: GraphExperiment, found: Sequence[GraphArmScores] | None = None, *, learnt: str = ""
) -> StudyReport:
    """Report the stored results; runs without results are listed.

    `found` are their scores, if computed before.
    """
    results = runs.results()
    if found is None:
        found = score_graph_arms(runs, learnt=learnt) if results else []
    tables = {
        "scores": graph_score_table(found),
        "differences": graph_difference_table(found),
        "examples": example_table(runs, results),
    }
    return StudyReport(
        f"Graph to text with rewards: {runs.study.corpus.name}",
        [
            *runs.describe_missing(),
            *map(format_claim, check_graph_claims(found)),
            *describe_power(found),
        ],
        tables if found else {},
        graph_figures(results) if results else {},
        _notes(runs, results),
    )


def score_graph_arms(runs: GraphExperiment, *, learnt: str = "") -> list[GraphArmScores]:
    """Score every arm that has results, the start first; `learnt` is one more metric to use."""
    results = runs.results()
    specs = {**SEGMENT_METRICS, **({EXTRA_METRIC: learnt} if learnt else {})}
    means = _segment_scores(runs, results, specs)
    counts: dict[Any, Array] = {}
    scores: dict[Any, Callable[[Array], Array]] = {}
    for result in results:
        for name, rows, score in _corpus_counts(result, runs):
            counts[name, result.run], scores[name, result.run] = rows, score
        for name, values in means[result.run].items():
            rows = np.stack([values, np.ones_like(values)], axis=-1)
            counts[name, result.run], scores[name, result.run] = rows, mean_score
    every = resample_scores(counts, scores, resamples=_RESAMPLES, trials=_PERMUTATIONS, seed=0)
    names = [*CORPUS_METRICS, *specs, REPETITION]
    return [
        GraphArmScores(
            arm,
            tuple(result.run.seed for result in own),
            {name: tuple(every[name, result.run] for result in own) for name in names},
        )
        for arm, own in results_by_arm(results, _ALL_ARMS)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class GraphArmScores:
    """The scores of one arm by metric and seed, on the same resampled test graphs for all arms."""

    arm: str
    seeds: tuple[int, ...]
    resampled: Mapping[str, tuple[ResampledScore, ...]]


def graph_score_table(found: Sequence[GraphArmScores]) -> TextTable:
    """Return the paper's table 1: a row per arm, times 100, with intervals over test graphs."""
    names = scored_metrics(found)
    lines = [
        [
            each.arm,
            str(len(each.seeds)),
            *(format_interval(mean_over_seeds(each, m), times=100, places=2) for m in names),
        ]
        for each in found
    ]
    return [["", "seeds", *names], *lines]


def graph_difference_table(found: Sequence[GraphArmScores]) -> TextTable:
    """Return the differences of each arm from cross-entropy alone, with two significance tests.

    `p, graphs` is a permutation test that swaps the two arms' texts graph by graph, for these
    seeds; `p, seeds` is a t-test over the differences of the seeds. Both are corrected for the
    number of arms by Holm's method.
    """
    plain = next((each for each in found if each.arm == XENT), None)
    others = [each for each in found if each.arm not in (START, XENT)]
    names = scored_metrics(found) if plain and others else []
    lines = [line for metric in names if plain for line in _difference_rows(others, plain, metric)]
    return [_DIFFERENCE_HEADER, *lines]


def example_table(runs: GraphExperiment, results: Sequence[GraphRunResult]) -> TextTable:
    """Return the paper's table 2: the texts of all arms for some graphs, first seed.

    The test set is divided into equal segments; of each, the graph whose texts differ most is
    shown.
    """
    seed = runs.study.design.seeds[0]
    own = {
        arm: r
        for arm, some in results_by_arm(results, _ALL_ARMS)
        for r in some
        if r.run.seed == seed
    }
    own.pop(START, None)
    if not own:
        return [["graph", "who", "text"]]
    lines = []
    for place in _pick_examples([result.outputs for result in own.values()]):
        each = runs.study.corpus.test[place]
        name = each.id or str(place)
        lines.append([name, "graph", each.graph.line])
        lines.append([name, "reference", each.references[0]])
        lines += [[name, arm, result.outputs[place]] for arm, result in own.items()]
    return [["graph", "who", "text"], *lines]


def check_graph_claims(found: Sequence[GraphArmScores]) -> Iterator[Claim]:
    """Yield each claim whose two arms have results; the paper makes none about repetition."""
    by_name = {each.arm: each for each in found}
    metrics = scored_metrics(found)[:-1]
    for arm, other, statement in _CLAIMS:
        arms = by_name.get(arm), by_name.get(other)
        yield from check_claim(statement, {metric: (*arms, metric) for metric in metrics})


def describe_power(found: Sequence[GraphArmScores]) -> Iterator[str]:
    """Yield a line with the smallest difference that the comparison can detect."""
    least = pooled_detectable_difference(found)
    if least is not None:
        yield (
            f"with this number of seeds, a t-test detects differences in {BLEU} of at least "
            f"{100 * least:.2f} with power 0.8; smaller ones may exist and go undetected"
        )


def pooled_detectable_difference(
    found: Sequence[GraphArmScores], metric: str = BLEU
) -> float | None:
    """Return the difference from cross-entropy that a t-test over seeds detects with power 0.8.

    Uses the standard deviation of seed-by-seed differences, pooled over arms; None with fewer than
    two seeds.
    """
    by_name = {each.arm: each for each in found}
    others = [each for each in found if each.arm not in (START, XENT)]
    gaps = (
        [seed_differences(each, by_name[XENT], metric) for each in others]
        if XENT in by_name
        else []
    )
    several = [g for g in gaps if len(g) > 1]
    if not several:
        return None
    spread = math.sqrt(float(np.mean([np.var(g, ddof=1) for g in several])))
    return minimum_detectable_difference(spread, min(map(len, several)))


def graph_figures(results: Sequence[GraphRunResult]) -> dict[str, str]:
    """Return the paper's figure 1, and the rewards of sampled texts during training."""
    started = {r.run.seed: max(b for _, b in r.evaluations) for r in results if r.run.arm == START}
    arms = [(arm, own) for arm, own in results_by_arm(results, _ALL_ARMS) if arm != START]
    figures = {}
    if starts := [r for r in results if r.run.arm == START]:
        figures["start"] = line_plot_svg(
            "Training from random weights, by cross-entropy",
            ("step", "validation BLEU"),
            {f"seed {r.run.seed}": [(s, 100 * b) for s, b in r.evaluations] for r in starts},
        )
    if arms:
        figures["validation-bleu"] = line_plot_svg(
            "From the same start: validation BLEU, mean over seeds",
            ("step", "difference from the start"),
            {arm: _mean_curve(own, started) for arm, own in arms},
        )
    for arm, own in arms:
        if GRAPH_ARMS[arm]:
            figures[f"reward-{arm.lower()}"] = line_plot_svg(
                f"{arm}: mean reward of texts, over seeds",
                ("part of the run", "reward"),
                {n: _reward_curve(own, n) for n in ("reward", "baseline")},
            )
    return figures


def result_pairs(result: GraphRunResult, runs: GraphExperiment) -> list[Pair]:
    """Return the text of a run for each test graph, paired with the human references."""
    graphs = runs.study.corpus.test
    return [Pair(text, each.references) for text, each in zip(result.outputs, graphs, strict=True)]


def repetition_rates(texts: Sequence[str]) -> Floats:
    """Return the share of bigrams that repeat an earlier one, for each text."""
    return np.array([repeated_share(lowercase_words(text)) for text in texts])


def scored_metrics(found: Sequence[GraphArmScores]) -> list[str]:
    """Return the names of the metrics, repetition last."""
    names = list(found[0].resampled) if found else []
    return sorted(names, key=lambda name: name == REPETITION)


def _corpus_counts(
    result: GraphRunResult, runs: GraphExperiment
) -> Iterator[tuple[str, Array, Callable[[Array], Array]]]:
    pairs = result_pairs(result, runs)
    for name, spec in CORPUS_METRICS.items():
        metric = as_metric(spec)
        assert isinstance(metric, CorpusMetric)  # both are
        yield name, metric(pairs).counts, metric.score_totals
    shares = repetition_rates(result.outputs)
    yield REPETITION, np.stack([shares, np.ones_like(shares)], axis=-1), mean_score


def _segment_scores(
    runs: GraphExperiment, results: Sequence[GraphRunResult], specs: Mapping[str, str]
) -> dict[GraphRun, dict[str, Floats]]:
    """Load or compute the scores of every text; missing ones are scored in one pass per metric."""
    found: dict[GraphRun, dict[str, Floats]] = {result.run: {} for result in results}
    for name, spec in specs.items():
        metric = as_metric(spec)
        cells = {f"{run_name(result.run)} {name}": result for result in results}
        recipes = {cell: _score_recipe(r, runs, metric.signature) for cell, r in cells.items()}

        def compute(
            missing: list[str], metric: Metric = metric, cells: dict[str, GraphRunResult] = cells
        ) -> Iterator[dict[str, Any]]:
            every = [result_pairs(cells[cell], runs) for cell in missing]
            scores = iter(score_metrics([metric], list(chain(*every)), Run())[0].segments)
            for own in every:
                yield {"values": [round(next(scores).value, 4) for _ in own]}

        for cell, kept in ResultStore(runs.folder).load_or_compute(recipes, compute).items():
            found[cells[cell].run][name] = np.array(kept["values"])
    return found


def _score_recipe(result: GraphRunResult, runs: GraphExperiment, signature: str) -> dict[str, str]:
    texts = hashlib.sha256(json.dumps(result.outputs).encode()).hexdigest()[:16]
    return {"texts": texts, "corpus": runs.study.corpus.digest, "metric": signature}


def _difference_rows(
    others: Sequence[GraphArmScores], plain: GraphArmScores, metric: str
) -> Iterator[list[str]]:
    graphs = holm([permutation_p_value(each, plain, metric) for each in others])
    seeds = holm([paired_t_test(seed_differences(each, plain, metric)) for each in others])
    for each, p_graphs, p_seeds in zip(others, graphs, seeds, strict=True):
        yield [
            metric,
            each.arm,
            str(len(shared_seeds(each, plain))),
            format_interval(arm_difference(each, plain, metric), signed=True, times=100, places=2),
            " ".join(f"{100 * d:+.2f}" for d in seed_differences(each, plain, metric)),
            f"{float(p_graphs):.3f}",
            f"{float(p_seeds):.3f}",
        ]


def _pick_examples(texts: Sequence[Sequence[str]]) -> list[int]:
    """Return, for equal segments of the test set, the first graph with the most distinct texts."""
    counts = [len(set(some)) for some in zip(*texts, strict=True)]
    size = max(1, len(counts) // _EXAMPLE_COUNT)
    starts = range(0, size * min(_EXAMPLE_COUNT, len(counts)), size)
    return [start + int(np.argmax(counts[start : start + size])) for start in starts]


def _mean_curve(
    own: Sequence[GraphRunResult], started: dict[int, float]
) -> list[tuple[float, float]]:
    """Return BLEU minus that of the seed's start, averaged over seeds, from step 0 on."""
    rows = [[bleu - started.get(r.run.seed, 0.0) for _, bleu in r.evaluations] for r in own]
    steps = [step for step, _ in own[0].evaluations]
    means = 100 * np.mean(rows, axis=0)
    return [(0.0, 0.0), *((float(s), float(v)) for s, v in zip(steps, means, strict=True))]


def _reward_curve(own: Sequence[GraphRunResult], name: str) -> list[tuple[float, float]]:
    means = np.mean([r.curves[name] for r in own], axis=0)
    return [((i + 0.5) / len(means), float(value)) for i, value in enumerate(means)]


def _notes(runs: GraphExperiment, results: Sequence[GraphRunResult]) -> list[str]:
    corpus, first, second = (
        runs.study.corpus,
        runs.study.design.pretraining,
        runs.study.design.fine_tuning,
    )
    shape = first.shape
    references = [text for each in corpus.test for text in each.references]
    return [
        f"{len(corpus.train)} training, {len(corpus.valid)} validation and {len(corpus.test)} "
        f"test graphs; in the human references "
        f"{100 * repetition_rates(references).mean():.2f} % of bigrams repeat an earlier one",
        f"model: a T5 with {shape.layers} encoder and {shape.layers} decoder layers, width "
        f"{shape.width}, and {shape.words} sub-words learnt from the training texts; trained from "
        f"random weights by cross-entropy for {first.epochs} epochs in batches of {first.batch} "
        f"with learning rate {first.rate:g}",
        f"each arm continues from the same start: epochs: {second.epochs}, batches of "
        f"{second.batch}, learning rate {second.rate:g}; rewards have weight "
        f"{second.rl_weight:g} and use the policy's current input embeddings, detached; learning "
        "rates decay to 0",
        "the checkpoint with the best validation BLEU is tested with greedy decoding; scores are "
        "times 100, over all references; repeated: bigrams that occurred earlier in the text",
        "in brackets: 95 % bootstrap intervals over test graphs, of the mean over seeds; "
        "replicated: the interval and the difference of every seed are above 0; reversed: below",
        f"{len(results)} runs took {sum(r.seconds for r in results) / 60:.0f} minutes",
    ]
