"""A server under 64 clients for a minute: errors, equality of scores, CPU time, memory.

python -m benchmarks.serve.requests SECONDS tries it for another time, and keeps nothing.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

import evenmatch as em

CLIENTS, PAIRS, METRIC, SECONDS, WARM_UP = 64, 8, "f_disc", 60.0, 5.0
QUARTERS, LOOKS = 4, 15  # at the memory in each, in equal steps: it goes up and down with batches
CPU, MEMORY = "process_cpu_seconds_total", "process_resident_memory_bytes"
WORDS = "the a old small river house sees under green bright opens letter quickly people two sing"


@dataclass
class Found:
    """What the clients saw: which request, how long it took, the values; and what went wrong."""

    answers: list[tuple[int, float, list[float]]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def run(seconds: float = SECONDS) -> dict[str, Any]:
    with serving() as address:
        crowd(address, min(WARM_UP, seconds), Found())
        found = Found()
        before, start = figure(address, CPU), time.monotonic()
        load = threading.Thread(target=crowd, args=(address, seconds, found))
        load.start()
        memory = [highest(address, seconds / QUARTERS) for _ in range(QUARTERS)]
        load.join()
        used, taken = figure(address, CPU) - before, time.monotonic() - start
    return {
        "metric": METRIC,
        "clients": CLIENTS,
        "pairs in a request": PAIRS,
        "seconds": seconds,
        **judged(found, used, taken),
        "highest memory MB by quarter": memory,
    }


def highest(address: str, seconds: float) -> float:
    """The most memory that was seen within so many seconds from now."""
    start, seen = time.monotonic(), []
    for look in range(1, LOOKS + 1):
        seen.append(figure(address, MEMORY))
        time.sleep(max(0.0, start + seconds * look / LOOKS - time.monotonic()))
    return round(max(seen) / 1e6, 1)


def judged(found: Found, used: float, taken: float) -> dict[str, Any]:
    """How fast and how right the answers were, and what they cost beside the library's."""
    times = sorted(each for _, each, _ in found.answers)
    pairs = len(found.answers) * PAIRS
    cost, difference = library(found)
    return {
        "requests": len(found.answers),
        "errors": len(found.errors),
        "kinds of errors": sorted(set(found.errors)),
        "pairs per second": round(pairs / taken, 1),
        "p50 seconds": round(times[len(times) // 2], 3),
        "p99 seconds": round(times[int(len(times) * 0.99)], 3),
        "largest difference from em.score": difference,
        "CPU ms per pair, server": round(used / pairs * 1000, 3),
        "CPU ms per pair, library": round(cost * 1000, 3),
        "CPU per pair, server over library": round(used / pairs / cost, 3),
    }


def library(found: Found) -> tuple[float, float]:
    """The library's processor time for a pair, and how far any answer lies from its own."""
    drawn = [request(key) for key, _, _ in found.answers]
    candidates = [text for own, _ in drawn for text in own]
    references = [text for _, own in drawn for text in own]
    em.score(candidates[:64], references[:64], METRIC)
    start = time.process_time()
    scores = em.score(candidates, references, METRIC).segments
    used = time.process_time() - start
    served = [value for _, _, own in found.answers for value in own]
    gaps = [abs(s.value - value) for s, value in zip(scores, served, strict=True)]
    return used / len(candidates), max(gaps)


def crowd(address: str, seconds: float, found: Found) -> None:
    """All clients at once, for so long."""
    end = time.monotonic() + seconds
    clients = [
        threading.Thread(target=client, args=(n, address, end, found)) for n in range(CLIENTS)
    ]
    for each in clients:
        each.start()
    for each in clients:
        each.join()


def client(seed: int, address: str, end: float, found: Found) -> None:
    """Asks until the time is over."""
    with httpx.Client(timeout=120) as http:
        number = 0
        while time.monotonic() < end:
            key = seed * 100_000 + number
            candidates, references = request(key)
            body = {"candidates": candidates, "references": references, "metric": METRIC}
            start = time.monotonic()
            try:
                answer = http.post(f"{address}score", json=body).raise_for_status().json()
            except httpx.HTTPError as error:
                found.errors.append(str(error) or type(error).__name__)
                continue
            rows = answer["metrics"][METRIC]["segments"]
            found.answers.append((key, time.monotonic() - start, [r["value"] for r in rows]))
            number += 1


def request(key: int) -> tuple[list[str], list[str]]:
    """The texts of a request, always the same for its number."""
    chance = random.Random(key)
    words = [*WORDS.split(), *(f"{a}{b}" for a in ("walk", "paint", "read") for b in ("s", "ed"))]
    texts = [" ".join(chance.choices(words, k=chance.randint(6, 30))) for _ in range(2 * PAIRS)]
    return texts[:PAIRS], texts[PAIRS:]


def figure(address: str, name: str) -> float:
    text = httpx.get(f"{address}prometheus", timeout=120).text
    return float(re.findall(rf"^{name} (\S+)$", text, re.MULTILINE)[0])


@contextmanager
def serving(*more: str) -> Iterator[str]:
    """A server of its own, with further metrics if named; gives its address."""
    named = [part for name in (METRIC, *more) for part in ("-m", name)]
    line = [sys.executable, "-m", "evenmatch", "serve", *named, "--port", "0"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        try:
            yield re.findall(r"http://\S+", server.stderr.readline())[0]
        finally:
            server.terminate()


def page_section(r: dict[str, Any]) -> list[str]:
    """Return the Markdown lines for the page on speed."""
    memory = ", ".join(map(str, r["highest memory MB by quarter"]))
    return [
        "## Server",
        "",
        f"{r['clients']} clients at once, {r['pairs in a request']} pairs per request,",
        f"`{r['metric']}`, {r['seconds']:g} s: {r['pairs per second']} pairs per second,",
        f"{r['errors']} errors, a median latency of {r['p50 seconds']} s and a 99th percentile of",
        f"{r['p99 seconds']} s. Scores differ from the library's by at most",
        f"{r['largest difference from em.score']:.1e}, and a pair takes",
        f"{r['CPU per pair, server over library']}× the library's CPU time. Peak resident memory",
        f"in each quarter of the run, in MB: {memory}.",
        "",
    ]


if __name__ == "__main__":
    print(json.dumps(run(float(sys.argv[1])), indent=1))
