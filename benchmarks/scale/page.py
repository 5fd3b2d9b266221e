"""What a large run costs, as a page of the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.results import load

PAGE = Path(__file__).parents[2] / "docs" / "results" / "large-runs.md"
# Weights a token meets on its way: blocks up to the layer used, millions each.
_MODELS = {
    "minilm, layer 4": 4 * 1.77,
    "bert-base-uncased, layer 9": 9 * 7.09,
    "roberta-large, layer 17": 17 * 12.6,
}


def write_page() -> None:
    """Write docs/results/large-runs.md from the result of the benchmark."""
    result = load("scale")
    if result is not None:
        PAGE.write_text(page(result), "utf-8")


def page(r: dict[str, Any]) -> str:
    """The page of one result."""
    sections = (_speed(r), _time(r), _scaling(r), _memory(r), _models(r), _kills(r))
    lines = ["# Cost of large runs", "", *(line for own in sections for line in [*own, ""])]
    return "\n".join([*lines, f"Command: `{r['command']}`", ""])


def _speed(r: dict[str, Any]) -> list[str]:
    return [
        f"`{r['metric']}` on {r['pairs']:,} pairs ({r['texts']}), in shards of",
        f"{r['rows in a shard']} rows, workers of one thread, on {r['machine']['cores']} cores",
        f"({r['machine']['processor']}).",
        "",
        "| workers | pairs per second |",
        "|--:|--:|",
        f"| 1 | {r['one worker, pairs per second']} |",
        f"| 2 | {r['two workers, pairs per second']} |",
        "",
        f"Two workers do {r['two workers over one']:.2f}× what one does.",
    ]


def _time(r: dict[str, Any]) -> list[str]:
    shares, around = r["share of a worker's time"], r["seconds around the workers' work"]
    return [
        "## Where time goes",
        "",
        f"Start-up: a run of one row takes {r['start-up seconds']} seconds, most of it spent on",
        "loading packages and the model; workers start side by side. Then, of a worker's time:",
        "",
        "| what | share |",
        "|---|--:|",
        *(f"| {what} | {share:.2%} |" for what, share in shares.items()),
        "",
        "All that is not a worker's work (start-up, cutting the input, waiting for the last",
        f"shard, joining the parts) took {around} seconds of the",
        "run by one worker.",
    ]


def _scaling(r: dict[str, Any]) -> list[str]:
    driver, worker = r["driver milliseconds a pair"], r["worker milliseconds a pair"]
    most = f"about {worker / driver:,.0f}" if driver > 0 else "any number of"
    return [
        "## Expected scaling",
        "",
        f"For each pair a worker works {worker:.2f} ms and the driver, which reads, hands out,",
        f"syncs and joins, {driver:.3f} ms. Workers share nothing else, so their speeds add up",
        f"until the driver is busy all the time, with {most} workers of this model; a larger",
        "model moves that further out. This is computed from the two times, not measured on so",
        "many machines.",
    ]


def _memory(r: dict[str, Any]) -> list[str]:
    (few, small), (many, large) = (
        (int(n), mb) for n, mb in r["peak MB of a worker by rows in a shard"].items()
    )
    row = max(large - small, 1) / max(many - few, 1)
    return [
        "## The largest shard",
        "",
        f"A worker takes at most {small} MB with {few:,} rows in a shard and {large} MB with",
        f"{many:,}: {row * 1024:.0f} kB a row, for texts, scores and the window of vectors that is",
        f"held at a time. At that rate a shard of {1024 / row:,.0f} rows takes one GB more; a",
        "smaller one loses less to a kill, so nothing is won by shards near the limit.",
    ]


def _models(r: dict[str, Any]) -> list[str]:
    first = next(iter(_MODELS.values()))
    hours = 1e6 / r["one worker, pairs per second"] / 3600
    return [
        "## A million pairs by model size",
        "",
        "The first row is measured, the others are scaled by the weights that a token meets;",
        "larger matrices run somewhat better than that.",
        "",
        "| model | millions of weights on the way | hours of one core |",
        "|---|--:|--:|",
        *(f"| {name} | {w:.0f} | {hours * w / first:.1f} |" for name, w in _MODELS.items()),
    ]


def _kills(r: dict[str, Any]) -> list[str]:
    return [
        "## What kills cost",
        "",
        "Simulated: 16 workers, 4000 shards, each worker killed at random, back after 10 s and",
        "doing its shard again; beside it the expectation for one worker, and how many shards are",
        "killed so often that two retries give them up. The simulation tries for ever, and adds",
        "the idle end of a run.",
        "",
        "| seconds a shard takes | kills per worker and hour | time added | expected | given up |",
        "|--:|--:|--:|--:|--:|",
        *(
            f"| {row['shard seconds']} | {row['kills per worker and hour']} | "
            f"{row['simulated']:.1%} | {row['expected']:.1%} | {row['given up']:.2%} |"
            for row in r["overhead by kills"]
        ),
        "",
        "Shards of ten seconds to a minute cost next to nothing at a kill an hour; `--shard-rows`",
        "sets them.",
    ]
