"""Write the documentation page on the cost of large runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.results import load

PAGE = Path(__file__).parents[2] / "docs" / "results" / "large-runs.md"
# Parameters in the blocks up to the layer in use, in millions.
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
        f"Two workers reach {r['two workers over one']:.2f}× the throughput of one.",
    ]


def _time(r: dict[str, Any]) -> list[str]:
    shares, around = r["share of a worker's time"], r["seconds around the workers' work"]
    return [
        "## Where the time goes",
        "",
        f"A run of one row takes {r['start-up seconds']} seconds, most of it for importing",
        "packages and loading the model; workers start in parallel. Time of a worker:",
        "",
        "| what | share |",
        "|---|--:|",
        *(f"| {what} | {share:.2%} |" for what, share in shares.items()),
        "",
        "Everything outside the worker (start-up, splitting the input, waiting for the last shard,",
        f"concatenating the parts) took {around} seconds of the run with one worker.",
    ]


def _scaling(r: dict[str, Any]) -> list[str]:
    driver, worker = r["driver milliseconds a pair"], r["worker milliseconds a pair"]
    most = f"about {worker / driver:,.0f}" if driver > 0 else "any number of"
    return [
        "## Expected scaling",
        "",
        f"Per pair, a worker spends {worker:.2f} ms and the driver, which reads, distributes,",
        f"syncs and concatenates, {driver:.3f} ms. Workers share nothing else, so throughput grows",
        f"linearly until the driver is saturated, with {most} workers of this model; a larger",
        "model raises that number. This is computed from the two times, not measured on that many",
        "machines.",
    ]


def _memory(r: dict[str, Any]) -> list[str]:
    (few, small), (many, large) = (
        (int(n), mb) for n, mb in r["peak MB of a worker by rows in a shard"].items()
    )
    row = max(large - small, 1) / max(many - few, 1)
    return [
        "## The largest shard",
        "",
        f"A worker uses at most {small} MB with {few:,} rows in a shard and {large} MB with",
        f"{many:,}: {row * 1024:.0f} kB per row, for texts, scores and one chunk of vectors. At",
        f"that rate a shard of {1024 / row:,.0f} rows needs one more GB. Smaller shards lose less",
        "work when a worker is killed, so there is no benefit in very large ones.",
    ]


def _models(r: dict[str, Any]) -> list[str]:
    first = next(iter(_MODELS.values()))
    hours = 1e6 / r["one worker, pairs per second"] / 3600
    return [
        "## A million pairs by model size",
        "",
        "The first row is measured. The others are scaled by the number of parameters used per",
        "token; larger matrices run slightly faster than that.",
        "",
        "| model | parameters used (millions) | hours on one core |",
        "|---|--:|--:|",
        *(f"| {name} | {w:.0f} | {hours * w / first:.1f} |" for name, w in _MODELS.items()),
    ]


def _kills(r: dict[str, Any]) -> list[str]:
    return [
        "## Cost of killed workers",
        "",
        "Simulated: 16 workers and 4000 shards; each worker is killed at random, restarts after",
        "10 s and repeats its shard. The table also shows the expected overhead of one worker and",
        "the share of shards that fail after two retries. The simulation retries without limit and",
        "includes the idle time at the end of a run.",
        "",
        "| seconds a shard takes | kills per worker and hour | time added | expected | given up |",
        "|--:|--:|--:|--:|--:|",
        *(
            f"| {row['shard seconds']} | {row['kills per worker and hour']} | "
            f"{row['simulated']:.1%} | {row['expected']:.1%} | {row['given up']:.2%} |"
            for row in r["overhead by kills"]
        ),
        "",
        "With one kill per hour, shards of ten seconds to a minute cost almost nothing;",
        "`--shard-rows` sets their size.",
    ]
