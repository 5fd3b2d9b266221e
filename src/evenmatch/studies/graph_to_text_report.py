"""The report of the graph-to-text experiment: scores, tables, figures, examples and claims.

`score_graph_arms` scores the texts of every run and stores the scores, so that a report is quick
to make again. `graph_report` puts together the tables and figures of Jin & Gildea (2022) and
their claims with the differences found here.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from evenmatch.data.tables import TextTable
from evenmatch.protocols import CorpusMetric
from evenmatch.reports.plots import line_plot_svg
from evenmatch.reports.study_page import StudyReport
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.stats.p_values import holm
from evenmatch.stats.paired import (
    mean_score,
    minimum_detectable_difference,
    paired_t_test,
    resample_scores,
)
from evenmatch.stats.panel import Floats
from evenmatch.studies.experiment import (
    ArmScores,
    Claim,
    Experiment,
    ResultStore,
    RunResult,
    check_claim,
    format_claim,
    format_interval,
    results_by_arm,
    run_name,
)
from evenmatch.studies.graph_to_text import GRAPH_ARMS, START, XENT, GraphRun, GraphStudy
from evenmatch.training.rewards.terms import lowercase_words, repeated_share
from evenmatch.types import Array, Pair, Run

GraphExperiment: TypeAlias = Experiment[GraphStudy]
BLEU, REPETITION, EXTRA_METRIC = "BLEU", "repeated", "learnt"

_ALL_ARMS = (START, *GRAPH_ARMS)
# Corpus scores are computed from summed counts, segment scores are means over texts.
CORPUS_METRICS = {BLEU: "bleu", "chrF": "chrf"}
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
    runs: GraphExperiment, found: Sequence[ArmScores] | None = None, *, learnt: str = ""
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


def score_graph_arms(runs: GraphExperiment, *, learnt: str = "") -> list[ArmScores]:
    """Score every arm that has results, the start first; `learnt` is one more metric to use."""
    results = runs.results()
    specs = {**SEGMENT_METRICS, **({EXTRA_METRIC: learnt} if learnt else {})}
    means = {name: _segment_scores(runs, results, name, spec) for name, spec in specs.items()}
    means[REPETITION] = {result.run: repetition_rates(result.outputs) for result in results}
    counts: dict[Any, Array] = {}
    scores: dict[Any, Callable[[Array], Array]] = {}
    for name, spec in CORPUS_METRICS.items():
        metric = as_metric(spec)
        assert isinstance(metric, CorpusMetric)  # both are
        for result in results:
            counts[name, result.run] = metric(result_pairs(result, runs)).counts
            scores[name, result.run] = metric.score_totals
    for name, by_run in means.items():
        for run, values in by_run.items():
            counts[name, run] = np.stack([values, np.ones_like(values)], axis=-1)
            scores[name, run] = mean_score
    every = resample_scores(counts, scores, resamples=_RESAMPLES, trials=_PERMUTATIONS, seed=0)
    return [
        ArmScores(
            arm,
            tuple(result.run.seed for result in own),
            {m: tuple(every[m, result.run] for result in own) for m in (*CORPUS_METRICS, *means)},
        )
        for arm, own in results_by_arm(results, _ALL_ARMS).items()
    ]


def graph_score_table(found: Sequence[ArmScores]) -> TextTable:
    """Return the paper's table 1: a row per arm, times 100, with intervals over test graphs."""
    names = scored_metrics(found)
    lines = []
    for each in found:
        means = [each.mean(name) for name in names]
        cells = [format_interval(mean, times=100, places=2) for mean in means]
        lines.append([each.arm, str(len(each.seeds)), *cells])
    return [["", "seeds", *names], *lines]


def graph_difference_table(found: Sequence[ArmScores]) -> TextTable:
    """Return the differences of each arm from cross-entropy alone, with two significance tests.

    `p, graphs` is a permutation test that swaps the two arms' texts graph by graph, for these
    seeds; `p, seeds` is a t-test over the differences of the seeds. Both are corrected for the
    number of arms by Holm's method.
    """
    rows = [_DIFFERENCE_HEADER]
    plain, others = _split_arms(found)
    if plain and others:
        for metric in scored_metrics(found):
            rows += _difference_rows(others, plain, metric)
    return rows


def example_table(runs: GraphExperiment, results: Sequence[RunResult]) -> TextTable:
    """Return the paper's table 2: the texts of all arms for some graphs, first seed.

    The test set is divided into equal segments; of each, the graph whose texts differ most is
    shown.
    """
    seed = runs.study.design.seeds[0]
    first = [result for result in results if result.run.seed == seed]
    texts = {arm: own[0].outputs for arm, own in results_by_arm(first, GRAPH_ARMS).items()}
    rows = [["graph", "who", "text"]]
    for place in _pick_examples(list(texts.values())) if texts else []:
        each = runs.study.corpus.test[place]
        name = each.id or str(place)
        rows.append([name, "graph", each.graph.line])
        rows.append([name, "reference", each.references[0]])
        rows += [[name, arm, own[place]] for arm, own in texts.items()]
    return rows


def check_graph_claims(found: Sequence[ArmScores]) -> Iterator[Claim]:
    """Yield each claim whose two arms have results; the paper makes none about repetition."""
    by_name = {each.arm: each for each in found}
    metrics = scored_metrics(found)[:-1]
    for arm, other, statement in _CLAIMS:
        arms = by_name.get(arm), by_name.get(other)
        yield from check_claim(statement, {metric: (*arms, metric) for metric in metrics})


def describe_power(found: Sequence[ArmScores]) -> Iterator[str]:
    """Yield a line with the smallest difference from cross-entropy that a t-test can detect.

    Uses the standard deviation of seed-by-seed differences, pooled over arms; there is no line
    with fewer than two seeds.
    """
    plain, others = _split_arms(found)
    gaps = [each.seed_differences(plain, BLEU) for each in others] if plain else []
    several = [gap for gap in gaps if len(gap) > 1]
    if several:
        spread = math.sqrt(float(np.mean([np.var(gap, ddof=1) for gap in several])))
        least = minimum_detectable_difference(spread, min(map(len, several)))
        yield (
            f"with this number of seeds, a t-test detects differences in {BLEU} of at least "
            f"{100 * least:.2f} with power 0.8; smaller ones may exist and go undetected"
        )


def _split_arms(found: Sequence[ArmScores]) -> tuple[ArmScores | None, list[ArmScores]]:
    """Return the arm of cross-entropy alone, if there, and the arms with rewards."""
    plain = next((each for each in found if each.arm == XENT), None)
    return plain, [each for each in found if each.arm not in (START, XENT)]


def graph_figures(results: Sequence[RunResult]) -> dict[str, str]:
    """Return the paper's figure 1, and the rewards of sampled texts during training."""
    started = {r.run.seed: max(b for _, b in r.evaluations) for r in results if r.run.arm == START}
    arms = results_by_arm(results, GRAPH_ARMS)
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
            {arm: _mean_curve(own, started) for arm, own in arms.items()},
        )
    for arm, own in arms.items():
        if GRAPH_ARMS[arm]:
            figures[f"reward-{arm.lower()}"] = line_plot_svg(
                f"{arm}: mean reward of texts, over seeds",
                ("part of the run", "reward"),
                {n: _reward_curve(own, n) for n in ("reward", "baseline")},
            )
    return figures


def result_pairs(result: RunResult, runs: GraphExperiment) -> list[Pair]:
    """Return the text of a run for each test graph, paired with the human references."""
    graphs = runs.study.corpus.test
    return [Pair(text, each.references) for text, each in zip(result.outputs, graphs, strict=True)]


def repetition_rates(texts: Sequence[str]) -> Floats:
    """Return the share of bigrams that repeat an earlier one, for each text."""
    return np.array([repeated_share(lowercase_words(text)) for text in texts])


def scored_metrics(found: Sequence[ArmScores]) -> list[str]:
    """Return the names of the metrics, repetition last."""
    return list(found[0].resampled) if found else []


def _segment_scores(
    runs: GraphExperiment, results: Sequence[RunResult], name: str, spec: str
) -> dict[GraphRun, Floats]:
    """Load or compute a metric's score of every text; missing ones are scored in one pass."""
    metric = as_metric(spec)
    cells = {f"{run_name(result.run)} {name}": result for result in results}
    recipes = {cell: _score_recipe(r, runs, metric.signature) for cell, r in cells.items()}

    def compute(missing: list[str]) -> Iterator[dict[str, Any]]:
        every = [result_pairs(cells[cell], runs) for cell in missing]
        scores = iter(score_metrics([metric], list(chain(*every)), Run())[0].segments)
        for own in every:
            yield {"values": [round(next(scores).value, 4) for _ in own]}

    found = ResultStore(runs.folder).load_or_compute(recipes, compute)
    return {cells[cell].run: np.array(kept["values"]) for cell, kept in found.items()}


def _score_recipe(result: RunResult, runs: GraphExperiment, signature: str) -> dict[str, str]:
    texts = hashlib.sha256(json.dumps(result.outputs).encode()).hexdigest()[:16]
    return {"texts": texts, "corpus": runs.study.corpus.digest, "metric": signature}


def _difference_rows(
    others: Sequence[ArmScores], plain: ArmScores, metric: str
) -> Iterator[list[str]]:
    graphs = holm([each.permutation_p_value(plain, metric) for each in others])
    seeds = holm([paired_t_test(each.seed_differences(plain, metric)) for each in others])
    for each, p_graphs, p_seeds in zip(others, graphs, seeds, strict=True):
        yield [
            metric,
            each.arm,
            str(len(each.shared_seeds(plain))),
            format_interval(each.minus(plain, metric), signed=True, times=100, places=2),
            " ".join(f"{100 * d:+.2f}" for d in each.seed_differences(plain, metric)),
            f"{float(p_graphs):.3f}",
            f"{float(p_seeds):.3f}",
        ]


def _pick_examples(texts: Sequence[Sequence[str]]) -> list[int]:
    """Return, for equal segments of the test set, the first graph with the most distinct texts."""
    counts = [len(set(some)) for some in zip(*texts, strict=True)]
    size = max(1, len(counts) // _EXAMPLE_COUNT)
    starts = range(0, size * min(_EXAMPLE_COUNT, len(counts)), size)
    return [start + int(np.argmax(counts[start : start + size])) for start in starts]


def _mean_curve(own: Sequence[RunResult], started: dict[int, float]) -> list[tuple[float, float]]:
    """Return BLEU minus that of the seed's start, averaged over seeds, from step 0 on."""
    rows = [[bleu - started.get(r.run.seed, 0.0) for _, bleu in r.evaluations] for r in own]
    steps = [step for step, _ in own[0].evaluations]
    means = 100 * np.mean(rows, axis=0)
    return [(0.0, 0.0), *((float(s), float(v)) for s, v in zip(steps, means, strict=True))]


def _reward_curve(own: Sequence[RunResult], name: str) -> list[tuple[float, float]]:
    means = np.mean([r.curves[name] for r in own], axis=0)
    return [((i + 0.5) / len(means), float(value)) for i, value in enumerate(means)]


def _notes(runs: GraphExperiment, results: Sequence[RunResult]) -> list[str]:
    corpus, design = runs.study.corpus, runs.study.design
    first, second, shape = design.pretraining, design.fine_tuning, design.pretraining.shape
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
        "in brackets: 95 % bootstrap intervals over test graphs, of the mean over seeds, without "
        "the variation between seeds; "
        "replicated: the interval and the difference of every seed are above 0; reversed: below",
        f"{len(results)} runs took {sum(r.seconds for r in results) / 60:.0f} minutes",
    ]
