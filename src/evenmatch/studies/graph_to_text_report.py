"""The report of the graph-to-text experiment: scores, tables, figures, examples and claims.

`score_graph_arms` scores the texts of every run and stores the scores, so that a report is quick
to make again. `graph_report` puts together the tables and figures of Jin & Gildea (2022), the form
of the texts (`TEXT_MEASURES`), and the paper's claims with the differences found here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from evenmatch.data.graphs import GraphText, Triples
from evenmatch.data.tables import TextTable
from evenmatch.protocols import CorpusMetric
from evenmatch.reports.plots import line_plot, line_plot_svg
from evenmatch.reports.study_page import StudyReport
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.stats.p_values import holm
from evenmatch.stats.paired import mean_counts, mean_score, paired_t_test, resample_scores
from evenmatch.stats.panel import Floats
from evenmatch.studies.experiment import (
    ArmScores,
    Experiment,
    ResultStore,
    RunResult,
    format_claim,
    format_interval,
    results_by_arm,
    run_name,
)
from evenmatch.studies.graph_claims import (
    BLEU,
    CHRF,
    METEOR,
    REPETITION,
    check_graph_claims,
    describe_power,
    split_arms,
)
from evenmatch.studies.graph_to_text import (
    ALL_ARMS,
    BEAM,
    BEST,
    LAST,
    START,
    GraphRun,
    GraphStudy,
)
from evenmatch.training.checkpoints import content_digest
from evenmatch.training.rewards import lowercase_words, repeated_share
from evenmatch.types import Array, Pair, Run

GraphExperiment: TypeAlias = Experiment[GraphStudy]
EXTRA_METRIC = "learnt"

# Corpus scores are computed from summed counts, segment scores are means over texts.
CORPUS_METRICS = {BLEU: "bleu", CHRF: "chrf"}
SEGMENT_METRICS = {METEOR: "meteor", "BERTScore": "bertscore", "f_disc": "f_disc"}
TEMPLATE, COPY = "template", "copy"
_ROWS = (TEMPLATE, COPY, START, *ALL_ARMS)
_LOOP_LENGTHS, _LOOP_COUNT = range(1, 9), 3  # so many words, so many times in a row
_NAMES = re.compile(r"(?<=[\w,;:)] )[A-Z]\w+|\d+(?:[.,]\d+)*")  # not at the start of a sentence
_RESAMPLES, _PERMUTATIONS = 1000, 5000
_EXAMPLE_COUNT = 6
# Curves of the arms that are rewarded alone: of each step, then of each evaluation.
_SAMPLED_CURVES = {
    "reward": "reward of sampled texts",
    "repetition": "repeated bigrams of sampled texts",
    "length": "tokens of sampled texts",
}
_PROBE_CURVES = {
    **_SAMPLED_CURVES,
    "bleu": "BLEU of greedy texts, validation",
    "chrf": "chrF of greedy texts, validation",
    "greedy_repetition": "repeated bigrams of greedy texts",
}

_DIFFERENCE_HEADER = ["metric", "arm", "seeds", "minus XENT", "each seed", "p, graphs", "p, seeds"]


def graph_report(runs: GraphExperiment, *, learnt: str = "") -> StudyReport:
    """Report the stored results; runs without results are listed."""
    results = runs.results()
    last = score_graph_arms(runs, learnt=learnt) if results else []
    tables: dict[str, TextTable] = {}
    if last:
        tables["scores"] = graph_score_table(last)
        beams = {name for r in results for name in r.outputs if name.startswith(BEAM)}
        for which in (BEST, *sorted(beams)):
            title = f"scores of the {which} step" if which == BEST else f"scores, {which}"
            found = score_graph_arms(runs, learnt=learnt, which=which)
            tables[title] = graph_score_table(found)
        for part, rows in _parts(runs).items():
            found = score_graph_arms(runs, learnt=learnt, rows=rows)
            tables[f"scores, {part} categories"] = graph_score_table(found)
        tables["differences"] = graph_difference_table(last)
        tables["runs"] = run_table(results)
        tables["examples"] = example_table(runs, results)
    return StudyReport(
        f"Graph to text with rewards: {runs.study.corpus.name}",
        [
            *runs.describe_missing(),
            *map(format_claim, check_graph_claims(last)),
            *describe_power(last),
        ],
        tables,
        graph_figures(results) if results else {},
        _notes(runs, results),
    )


def score_graph_arms(
    runs: GraphExperiment, *, learnt: str = "", which: str = LAST, rows: Array | None = None
) -> list[ArmScores]:
    """Score every arm that has results.

    `which` chooses the texts: those of the last model (after two baselines, the template and the
    copy of the graph), of the best one, or of beam search. `rows` are the test graphs to use, and
    `learnt` is one more metric.
    """
    corpus = runs.study.corpus
    texts = _baseline_texts(corpus.test) if which == LAST else {}
    texts |= {r.run: r.outputs[which] for r in runs.results() if which in r.outputs}
    pairs = {run: pair_texts(own, corpus.test) for run, own in texts.items()}
    specs = {**SEGMENT_METRICS, **({EXTRA_METRIC: learnt} if learnt else {})}
    means = {name: _segment_scores(runs, pairs, name, spec, which) for name, spec in specs.items()}
    for name, measure in TEXT_MEASURES.items():
        if name != "covered" or isinstance(corpus.test[0].graph, Triples):
            means[name] = {
                run: np.array([measure(t, g) for t, g in zip(own, corpus.test, strict=True)])
                for run, own in texts.items()
            }
    counts: dict[Any, Array] = {}
    scores: dict[Any, Callable[[Array], Array]] = {}
    chosen = slice(None) if rows is None else rows
    for name, spec in CORPUS_METRICS.items():
        metric = as_metric(spec)
        assert isinstance(metric, CorpusMetric)  # both are
        for run, own in pairs.items():
            every = metric(own).counts
            assert every is not None
            counts[name, run], scores[name, run] = every[chosen], metric.score_totals
    for name, by_run in means.items():
        for run, values in by_run.items():
            counts[name, run], scores[name, run] = mean_counts(values)[chosen], mean_score
    found = resample_scores(counts, scores, resamples=_RESAMPLES, trials=_PERMUTATIONS, seed=0)
    by_arm: dict[str, list[GraphRun]] = {}
    for run in sorted(texts, key=lambda run: (_ROWS.index(run.arm), run.seed)):
        by_arm.setdefault(run.arm, []).append(run)
    return [
        ArmScores(
            arm,
            tuple(run.seed for run in own),
            {m: tuple(found[m, run] for run in own) for m in (*CORPUS_METRICS, *means)},
            resample_seeds=True,
        )
        for arm, own in by_arm.items()
    ]


def graph_score_table(found: Sequence[ArmScores]) -> TextTable:
    """Return the paper's table 1: a row per arm, times 100, with intervals."""
    names = list(found[0].resampled) if found else []
    lines = []
    for each in found:
        means = [each.mean(name) for name in names]
        cells = [format_interval(mean, times=100, places=2) for mean in means]
        seeds = "" if each.arm in (TEMPLATE, COPY) else str(len(each.seeds))
        lines.append([each.arm, seeds, *cells])
    return [["", "seeds", *names], *lines]


def graph_difference_table(found: Sequence[ArmScores]) -> TextTable:
    """Return the differences of each arm from cross-entropy alone, with two significance tests.

    `p, graphs` is a permutation test that swaps the two arms' texts graph by graph, for these
    seeds; `p, seeds` is a t-test over the differences of the seeds. Both are corrected for the
    number of arms by Holm's method.
    """
    rows = [_DIFFERENCE_HEADER]
    plain, others = split_arms(found)
    if plain and others:
        for metric in found[0].resampled:
            rows += _difference_rows(others, plain, metric)
    return rows


def run_table(results: Sequence[RunResult]) -> TextTable:
    """Return the steps, duration, rewards and cross-entropy of every run."""
    rows = [
        ["run", "best step", "last step", "minutes", "reward, first tenth", "reward, last tenth"]
    ]
    rows[0] += ["cross-entropy on references, best", "last"]
    for result in results:
        steps, entropy = result.outputs["steps"], result.outputs["cross_entropy"]
        rewards = result.curves["reward"]
        part = max(1, len(rewards) // 10)
        ends = [f"{np.mean(each):.3f}" for each in (rewards[:part], rewards[-part:])]
        rows.append(
            [
                run_name(result.run),
                *(str(steps[which]) for which in (BEST, LAST)),
                f"{result.seconds / 60:.0f}",
                *(ends if any(rewards) else ["", ""]),
                *(f"{entropy[which]:.3f}" for which in (BEST, LAST)),
            ]
        )
    return rows


def example_table(runs: GraphExperiment, results: Sequence[RunResult]) -> TextTable:
    """Return the paper's table 2: the last texts of all arms for some graphs, first seed.

    The test set is divided into equal segments; of each, the graph whose texts differ most is
    shown.
    """
    seed = runs.study.design.seeds[0]
    first = [result for result in results if result.run.seed == seed]
    arms = results_by_arm(first, (START, *ALL_ARMS))
    texts = {arm: own[0].outputs[LAST] for arm, own in arms.items()}
    rows = [["graph", "who", "text"]]
    for place in _pick_examples(list(texts.values())) if texts else []:
        each = runs.study.corpus.test[place]
        name = each.id or str(place)
        rows.append([name, "graph", each.graph.line])
        rows.append([name, "reference", each.references[0]])
        rows += [[name, arm, own[place]] for arm, own in texts.items()]
    return rows


def graph_figures(results: Sequence[RunResult]) -> dict[str, str]:
    """Return the paper's figure 1, the rewards during training, and the probes of each reward."""
    arms = results_by_arm(results, ALL_ARMS)
    mixed = {arm: own for arm, own in arms.items() if not arm.startswith("only ")}
    alone = {arm: own for arm, own in arms.items() if arm.startswith("only ")}
    figures = {}
    if mixed:
        # Only seeds that all arms have: validation BLEU differs more between seeds than arms.
        seeds = set.intersection(*({r.run.seed for r in own} for own in mixed.values()))
        shared = {arm: [r for r in own if r.run.seed in seeds] for arm, own in mixed.items()}
        figures["validation-bleu"] = line_plot(
            ("step", "BLEU"),
            {arm: _evaluation_curve(own or mixed[arm], "bleu") for arm, own in shared.items()},
        ).svg_file("From the same start: validation BLEU, mean over shared seeds")
    for arm, own in mixed.items():
        if any(own[0].curves["reward"]):
            figures[f"reward-{arm.lower()}"] = line_plot_svg(
                f"{arm}: mean reward of texts, over seeds",
                ("step", "reward"),
                {n: _step_curve(own, n) for n in ("reward", "baseline")},
            )
    for name, label in _PROBE_CURVES.items() if alone else ():
        curve = _step_curve if name in _SAMPLED_CURVES else _evaluation_curve
        figures[f"probe-{name.replace('_', '-')}"] = line_plot(
            ("step", label),
            {arm: curve(own, name) for arm, own in alone.items()},
            from_zero=name not in ("bleu", "chrf"),
        ).svg_file(f"Rewarded alone: {label}")
    return figures


def pair_texts(texts: Sequence[str], graphs: Sequence[GraphText]) -> list[Pair]:
    """Return the text for each test graph, paired with the human references."""
    return [Pair(text, each.references) for text, each in zip(texts, graphs, strict=True)]


def repetition_rate(text: str, graph: GraphText | None = None) -> float:
    """Return the share of bigrams that repeat an earlier one."""
    return repeated_share(lowercase_words(text))


def has_loop(text: str, graph: GraphText | None = None) -> float:
    """Return 1 if up to eight words occur three times in a row, else 0.

    >>> has_loop("the cat and the cat and the cat and"), has_loop("the cat and the dog")
    (1.0, 0.0)
    """
    words = lowercase_words(text)
    for size in _LOOP_LENGTHS:
        for start in range(len(words) - _LOOP_COUNT * size + 1):
            whole = words[start : start + _LOOP_COUNT * size]
            if whole == whole[:size] * _LOOP_COUNT:
                return 1.0
    return 0.0


def length_ratio(text: str, graph: GraphText) -> float:
    """Return the number of words, divided by the mean number of words of the references."""
    wanted = float(np.mean([len(lowercase_words(each)) for each in graph.references]))
    return len(lowercase_words(text)) / max(wanted, 1.0)


def triple_coverage(text: str, graph: GraphText) -> float:
    """Return the share of the subjects and objects of a graph that the text mentions.

    One is mentioned if at least half of its words occur in the text, in any case.

    >>> each = GraphText(Triples((("Aarhus_Airport", "city", "Aarhus"),)), ("",))
    >>> triple_coverage("The airport serves a city.", each)
    0.5
    """
    assert isinstance(graph.graph, Triples)
    words = set(_plain_words(text))
    parts = {part for subject, _, value in graph.graph.triples for part in (subject, value)}
    wanted = [own for part in sorted(parts) if (own := _plain_words(part))]
    mentioned = [2 * sum(word in words for word in own) >= len(own) for own in wanted]
    return float(np.mean(mentioned)) if mentioned else 1.0


def invented_share(text: str, graph: GraphText) -> float:
    """Return the share of names and numbers in a text that neither graph nor references contain.

    Names are capitalised words that do not begin a sentence. 0 for a text without any.

    >>> each = GraphText(Triples((("Aarhus", "country", "Denmark"),)), ("Aarhus is Danish.",))
    >>> round(invented_share("In Denmark, Aarhus and Cork lie.", each), 3)
    0.333
    """
    found = [name.lower() for name in _NAMES.findall(text)]
    known = set(_plain_words(" ".join([graph.graph.line, *graph.references])))
    new = [not set(_plain_words(name)) <= known for name in found]
    return float(np.mean(new)) if new else 0.0


TEXT_MEASURES: Mapping[str, Callable[[str, GraphText], float]] = {
    "length": length_ratio,
    "covered": triple_coverage,
    "invented": invented_share,
    "loops": has_loop,
    REPETITION: repetition_rate,
}


def _plain_words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def template_text(each: GraphText) -> str:
    """Return a sentence for each triple: 'The R of H is T.'; other graphs are copied."""
    if not isinstance(each.graph, Triples):
        return each.graph.line
    lines = (Triples((triple,)).line for triple in each.graph.triples)
    parts = [re.split(r" ?<[HRT]> ", line)[1:] for line in lines]
    return " ".join(f"The {r.lower()} of {h} is {t}." for h, r, t in parts)


def _baseline_texts(graphs: Sequence[GraphText]) -> dict[GraphRun, list[str]]:
    """Return the texts of the two systems without training."""
    copies = [" ".join(re.sub(r"<[HRT]>", " ", each.graph.line).split()) for each in graphs]
    templates = [template_text(each) for each in graphs]
    return {GraphRun(0, TEMPLATE): templates, GraphRun(0, COPY): copies}


def _parts(runs: GraphExperiment) -> dict[str, Array]:
    """Return the rows of seen and unseen categories, if the corpus has both."""
    unseen = runs.study.corpus.unseen_rows
    return {"seen": ~unseen, "unseen": unseen} if 0 < unseen.sum() < len(unseen) else {}


def _segment_scores(
    runs: GraphExperiment,
    pairs: Mapping[GraphRun, Sequence[Pair]],
    name: str,
    spec: str,
    which: str,
) -> dict[GraphRun, Floats]:
    """Load or compute a metric's score of every text; missing ones are scored in one pass."""
    metric = as_metric(spec)
    cells = {f"{run_name(run)} {which} {name}": run for run in pairs}
    recipes = {
        cell: {
            "texts": content_digest([pair.candidate for pair in pairs[run]]),
            "corpus": runs.study.corpus.digest,
            "metric": metric.signature,
        }
        for cell, run in cells.items()
    }

    def compute(missing: list[str]) -> Iterator[dict[str, Any]]:
        every = [pairs[cells[cell]] for cell in missing]
        scores = iter(score_metrics([metric], list(chain(*every)), Run())[0].segments)
        for own in every:
            yield {"values": [round(next(scores).value, 4) for _ in own]}

    found = ResultStore(runs.folder).load_or_compute(recipes, compute)
    return {cells[cell]: np.array(kept["values"]) for cell, kept in found.items()}


def _difference_rows(
    others: Sequence[ArmScores], plain: ArmScores, metric: str
) -> Iterator[list[str]]:
    graphs = holm([each.permutation_p_value(plain, metric) for each in others])
    seeds = holm([paired_t_test(each.seed_differences(plain, metric)) for each in others])
    for each, p_graphs, p_seeds in zip(others, graphs, seeds, strict=True):
        shared = len(each.shared_seeds(plain))
        yield [
            metric,
            each.arm,
            str(shared),
            format_interval(each.minus(plain, metric), signed=True, times=100, places=2),
            " ".join(f"{100 * d:+.2f}" for d in each.seed_differences(plain, metric)),
            f"{float(p_graphs):.3f}",
            f"{float(p_seeds):.3f}" if shared > 1 else "",
        ]


def _pick_examples(texts: Sequence[Sequence[str]]) -> list[int]:
    """Return, for equal segments of the test set, the first graph with the most distinct texts."""
    counts = [len(set(some)) for some in zip(*texts, strict=True)]
    size = max(1, len(counts) // _EXAMPLE_COUNT)
    starts = range(0, size * min(_EXAMPLE_COUNT, len(counts)), size)
    return [start + int(np.argmax(counts[start : start + size])) for start in starts]


def _step_curve(own: Sequence[RunResult], name: str) -> list[tuple[float, float]]:
    """Return the values of a curve over steps, averaged over seeds; stored values are means."""
    means, steps = np.mean([r.curves[name] for r in own], axis=0), own[0].outputs["steps"][LAST]
    return [((i + 0.5) * steps / len(means), float(value)) for i, value in enumerate(means)]


def _evaluation_curve(own: Sequence[RunResult], name: str) -> list[tuple[float, float]]:
    """Return a measure of the validation texts at each evaluation, averaged over seeds."""
    steps = [step for step, _ in own[0].evaluations]
    rows = [[b for _, b in r.evaluations] if name == "bleu" else r.curves[name] for r in own]
    means = np.mean(rows, axis=0) * (100 if name in ("bleu", "chrf") else 1)
    return [(float(s), float(v)) for s, v in zip(steps, means, strict=True)]


def _notes(runs: GraphExperiment, results: Sequence[RunResult]) -> list[str]:
    corpus, design = runs.study.corpus, runs.study.design
    first, second = design.pretraining, design.fine_tuning
    references = [(each, text) for each in corpus.test for text in each.references]
    people = {
        name: 100 * float(np.mean([measure(text, each) for each, text in references]))
        for name, measure in TEXT_MEASURES.items()
        if name not in ("invented", "covered") or isinstance(corpus.test[0].graph, Triples)
    }
    told = ", ".join(f"{name} {value:.2f}" for name, value in people.items() if name != "invented")
    return [
        f"{len(corpus.train)} training, {len(corpus.valid)} validation and {len(corpus.test)} "
        f"test graphs; the human references have: {told}",
        f"start: {first.model}, fine-tuned by cross-entropy for {first.steps} steps of "
        f"{first.batch} examples with learning rate {first.rate:g}",
        f"each arm continues from the same start for {second.steps} steps of {second.batch} "
        f"examples with learning rate {second.rate:g}, with the same examples and random numbers; "
        f"rewards have weight {second.rl_weight:g} and use the policy's current input embeddings, "
        "unless the arm says otherwise; learning rates decay to 0",
        "all texts are decoded greedily with the same limits; the last step is compared, and the "
        "step with the best validation BLEU in a table of its own",
        "scores are times 100, over all references. length: words relative to the references; "
        "covered: subjects and objects of the graph that are mentioned; invented: names and "
        "numbers that are in neither graph nor references; loops: texts in which up to eight words "
        "occur three times in a row; repeated: bigrams that occurred earlier in the text",
        "in brackets: 95 % bootstrap intervals over test graphs and, if there are several, seeds",
        f"{len(results)} runs took {sum(r.seconds for r in results) / 60:.0f} minutes",
    ]
