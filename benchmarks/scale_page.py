"""What a large run costs, as a page of the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.results import load

PAGE = Path(__file__).parent.parent / "docs" / "results" / "large-runs.md"
# Weights a token meets on its way: blocks up to the layer used, millions each.
_MODELS = {
    "minilm, layer 4": 4 * 1.77,
    "bert-base-uncased, layer 9": 9 * 7.09,
    "roberta-large, layer 17": 17 * 12.6,
}


def write_page() -> None:
    """Write docs/results/large-runs.md from the result of the benchmark."""
    result = load("scale")
    if result is None:
        return
    lines = ["# Cost of large runs", "", *_measured(result), *_models(result), *_kills(result)]
    PAGE.write_text("\n".join([*lines, f"Command: `{result['command']}`", ""]), "utf-8")


def _measured(r: dict[str, Any]) -> list[str]:
    shares = ", ".join(f"{k} {v:.2%}" for k, v in r["share of a worker's time"].items())
    memory = r["peak MB of a worker by rows in a shard"]
    sizes = " and ".join(f"{mb} MB with {int(n):,} rows in a shard" for n, mb in memory.items())
    return [
        f"`{r['metric']}` on {r['pairs']:,} pairs ({r['texts']}), workers of one thread, on",
        f"{r['machine']['cores']} cores ({r['machine']['processor']}).",
        "",
        "| workers | pairs per second |",
        "|--:|--:|",
        f"| 1 | {r['one worker, pairs per second']} |",
        f"| 2 | {r['two workers, pairs per second']} |",
        "",
        f"Two workers do {r['two workers over one']}× what one does. A run of one row takes",
        f"{r['start-up seconds']} seconds: that is the start-up, paid once a worker, side by side.",
        f"Where a worker's time goes: {shares}. Encoding and aligning are both in `score`; how",
        "they divide is on the [page on speed](speed.md). The driver reads, hands out and syncs",
        "while workers work, so more of them add up until it is the bottleneck: it moves some",
        "hundred bytes a pair.",
        "",
        f"A worker takes at most {sizes} (texts and scores alone: vectors are bounded by windows",
        "whatever the shard). So the largest shard is one whose texts fit in memory a few times",
        "over; a smaller one loses less to a kill.",
        "",
    ]


def _models(r: dict[str, Any]) -> list[str]:
    first = next(iter(_MODELS.values()))
    hours = 1e6 / r["one worker, pairs per second"] / 3600
    return [
        "## A million pairs by model size",
        "",
        "The first row is measured, the others scaled by the weights that a token meets; larger",
        "matrices run somewhat better than that.",
        "",
        "| model | millions of weights on the way | hours of one core |",
        "|---|--:|--:|",
        *(f"| {name} | {w:.0f} | {hours * w / first:.1f} |" for name, w in _MODELS.items()),
        "",
    ]


def _kills(r: dict[str, Any]) -> list[str]:
    return [
        "## What kills cost",
        "",
        "Simulated: 16 workers, 4000 shards, each worker killed at random and back after 10 s;",
        "beside it the expectation for one worker. The simulation adds the idle end of a run.",
        "",
        "| seconds a shard takes | kills per worker and hour | time added | expected |",
        "|--:|--:|--:|--:|",
        *(
            f"| {row['shard seconds']} | {row['kills per worker and hour']} | "
            f"{row['simulated']:.1%} | {row['expected']:.1%} |"
            for row in r["overhead by kills"]
        ),
        "",
        "Shards of ten seconds to a minute cost next to nothing under any rate seen in practice;",
        "`--shard-rows` sets them.",
        "",
    ]
