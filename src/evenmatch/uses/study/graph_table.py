"""The tables of the graph-to-text experiment: scores, differences with their tests, examples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from evenmatch.data.tables import Table
from evenmatch.stats.adjustments import holm
from evenmatch.uses.study.graph_arms import START, XENT
from evenmatch.uses.study.graph_runs import Result, Runs
from evenmatch.uses.study.graph_scores import BLEU, REPEATED, Scored, by_arm
from evenmatch.uses.study.power import least_difference, paired_t
from evenmatch.uses.study.seeds import (
    cell,
    gap,
    mean_over_seeds,
    seed_gaps,
    shared_seeds,
    swapping_p,
)

_EXAMPLES = 6
_DIFFERENCES = ["metric", "arm", "seeds", "beyond XENT", "each seed", "p, graphs", "p, seeds"]


def table_one(found: Sequence[Scored]) -> Table:
    """The paper's table 1: a line per arm, times 100, with intervals over test graphs."""
    names = metrics_of(found)
    lines = [
        [
            each.arm,
            str(len(each.seeds)),
            *(cell(mean_over_seeds(each, m), times=100, places=2) for m in names),
        ]
        for each in found
    ]
    return [["", "seeds", *names], *lines]


def differences(found: Sequence[Scored]) -> Table:
    """What each arm scores beyond cross-entropy alone, metric by metric, with two tests of it.

    `p, graphs` swaps the two arms' texts graph by graph, for these seeds; `p, seeds` is a t-test
    over the seeds' differences. Both are corrected for the number of arms by Holm's method.
    """
    plain = next((each for each in found if each.arm == XENT), None)
    others = [each for each in found if each.arm not in (START, XENT)]
    names = metrics_of(found) if plain and others else []
    lines = [line for metric in names if plain for line in _beyond(others, plain, metric)]
    return [_DIFFERENCES, *lines]


def _beyond(others: Sequence[Scored], plain: Scored, metric: str) -> Iterator[list[str]]:
    graphs = holm([swapping_p(each, plain, metric) for each in others])
    seeds = holm([paired_t(seed_gaps(each, plain, metric)) for each in others])
    for each, p_graphs, p_seeds in zip(others, graphs, seeds, strict=True):
        yield [
            metric,
            each.arm,
            str(len(shared_seeds(each, plain))),
            cell(gap(each, plain, metric), signed=True, times=100, places=2),
            " ".join(f"{100 * d:+.2f}" for d in seed_gaps(each, plain, metric)),
            f"{float(p_graphs):.3f}",
            f"{float(p_seeds):.3f}",
        ]


def metrics_of(found: Sequence[Scored]) -> list[str]:
    """The metrics there are, repetition last."""
    names = list(found[0].drawn) if found else []
    return sorted(names, key=lambda name: name == REPEATED)


def seen_from(found: Sequence[Scored], metric: str = BLEU) -> float | None:
    """The difference beyond cross-entropy that so many seeds find in four cases of five.

    From the spread of seed-by-seed differences, pooled over arms; None where there are too few.
    """
    by_name = {each.arm: each for each in found}
    others = [each for each in found if each.arm not in (START, XENT)]
    gaps = [seed_gaps(each, by_name[XENT], metric) for each in others] if XENT in by_name else []
    several = [g for g in gaps if len(g) > 1]
    if not several:
        return None
    spread = math.sqrt(float(np.mean([np.var(g, ddof=1) for g in several])))
    return least_difference(spread, min(map(len, several)))


def examples(runs: Runs, results: Sequence[Result]) -> Table:
    """The paper's table 2: what the arms of the first seed write for the same graphs.

    The graphs are those whose texts differ most between arms, at even distances through the test.
    """
    seed = runs.design.seeds[0]
    own = {arm: r for arm, some in by_arm(results) for r in some if r.node.seed == seed}
    own.pop(START, None)
    if not own:
        return [["graph", "who", "text"]]
    lines = []
    for place in _differing([result.texts for result in own.values()]):
        each = runs.corpus.test[place]
        name = each.id or str(place)
        lines.append([name, "graph", each.graph.line])
        lines.append([name, "reference", each.references[0]])
        lines += [[name, arm, result.texts[place]] for arm, result in own.items()]
    return [["graph", "who", "text"], *lines]


def _differing(texts: Sequence[Sequence[str]]) -> list[int]:
    """Of equal stretches of the test, the first graph with the most different texts in each."""
    counts = [len(set(some)) for some in zip(*texts, strict=True)]
    size = max(1, len(counts) // _EXAMPLES)
    starts = range(0, size * min(_EXAMPLES, len(counts)), size)
    return [start + int(np.argmax(counts[start : start + size])) for start in starts]
