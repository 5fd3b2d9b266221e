"""The graph-to-text experiment as a folder to look at: tables, curves, examples, claims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenmatch.uses.report.plot_lines import curves
from evenmatch.uses.study.claims import sentence
from evenmatch.uses.study.graph_arms import ARMS, START
from evenmatch.uses.study.graph_claims import checked, power_line
from evenmatch.uses.study.graph_runs import Result, Runs
from evenmatch.uses.study.graph_scores import Scored, by_arm, repetition, scored
from evenmatch.uses.study.graph_table import differences, examples, table_one
from evenmatch.uses.study.page import Report
from evenmatch.uses.study.runs import missing


def graph_report(runs: Runs, found: Sequence[Scored] | None = None, *, learnt: str = "") -> Report:
    """What the results that there are say; runs that are missing are said to be.

    `found` are their scores, where they were made before.
    """
    results = runs.results()
    if found is None:
        found = scored(runs, learnt=learnt) if results else []
    lacking = [node.name for node in runs.design.nodes() if runs.kept(node) is None]
    tables = {
        "scores": table_one(found),
        "differences": differences(found),
        "examples": examples(runs, results),
    }
    return Report(
        f"Graph to text with rewards: {runs.corpus.name}",
        [*missing(lacking, len(results)), *map(sentence, checked(found)), *power_line(found)],
        tables if found else {},
        figures(results) if results else {},
        _notes(runs, results),
    )


def figures(results: Sequence[Result]) -> dict[str, str]:
    """The paper's figure 1, and how the reward of what is drawn went."""
    started = {r.node.seed: max(b for _, b in r.looks) for r in results if r.node.arm == START}
    arms = [(arm, own) for arm, own in by_arm(results) if arm != START]
    made = {}
    if starts := [r for r in results if r.node.arm == START]:
        made["start"] = curves(
            "From nothing, by cross-entropy",
            ("step", "validation BLEU"),
            {f"seed {r.node.seed}": [(s, 100 * b) for s, b in r.looks] for r in starts},
        )
    if arms:
        made["validation-bleu"] = curves(
            "From the same start: validation BLEU, mean over seeds",
            ("step", "beyond the start"),
            {arm: _mean_curve(own, started) for arm, own in arms},
        )
    for arm, own in arms:
        if ARMS[arm]:
            made[f"reward-{arm.lower()}"] = curves(
                f"{arm}: mean reward of texts, over seeds",
                ("part of the run", "reward"),
                {n: _parts(own, n) for n in ("reward", "baseline")},
            )
    return made


def _mean_curve(own: Sequence[Result], started: dict[int, float]) -> list[tuple[float, float]]:
    """BLEU above that of the seed's start, the mean over seeds, from step 0 on."""
    rows = [[bleu - started.get(r.node.seed, 0.0) for _, bleu in r.looks] for r in own]
    steps = [step for step, _ in own[0].looks]
    means = 100 * np.mean(rows, axis=0)
    return [(0.0, 0.0), *((float(s), float(v)) for s, v in zip(steps, means, strict=True))]


def _parts(own: Sequence[Result], name: str) -> list[tuple[float, float]]:
    means = np.mean([r.curves[name] for r in own], axis=0)
    return [((i + 0.5) / len(means), float(value)) for i, value in enumerate(means)]


def _notes(runs: Runs, results: Sequence[Result]) -> list[str]:
    corpus, first, second = runs.corpus, runs.design.first, runs.design.second
    shape = first.shape
    references = [text for each in corpus.test for text in each.references]
    return [
        f"{len(corpus.train)} graphs to learn from, {len(corpus.valid)} to look at, "
        f"{len(corpus.test)} to test on; people's own texts repeat "
        f"{100 * repetition(references).mean():.2f} % of their pairs of words",
        f"a T5 made here: {shape.layers} layers and as many, width {shape.width}, {shape.words} "
        f"sub-words learnt from the training texts; from nothing by cross-entropy for "
        f"{first.epochs} passes in batches of {first.batch} at {first.rate:g}",
        f"then each arm from the same start: {second.epochs} pass in batches of {second.batch} at "
        f"{second.rate:g}; rewards weigh {second.rl_weight:g}, on the policy's own input "
        "embeddings, current and detached; rates fall to 0",
        "the model at its best look by validation BLEU is tested; greedy decoding; scores times "
        "100, over all references; repeated: pairs of neighbouring words that stood in the text "
        "before",
        "in brackets: 95 % by bootstrap over test graphs, of the mean over seeds; seen: the "
        "interval and every seed are on that side of 0",
        f"{len(results)} runs took {sum(r.seconds for r in results) / 60:.0f} minutes",
    ]
