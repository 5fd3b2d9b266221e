"""A server under 64 clients: errors, equality with the library, processor time, memory.

python -m benchmarks.serve [SECONDS]
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx

import evenmatch as em

CLIENTS, PAIRS, METRIC = 64, 8, "f_disc"
WORDS = "the a old small river house sees under green bright opens letter quickly people two sing"


def texts(chance: random.Random) -> list[str]:
    words = [*WORDS.split(), *(f"{a}{b}" for a in ("walk", "paint", "read") for b in ("s", "ed"))]
    return [" ".join(chance.choices(words, k=chance.randint(6, 30))) for _ in range(PAIRS)]


def client(seed: int, address: str, end: float, found: list[tuple[int, float, float]]) -> None:
    """Asks until the time is over; notes which request, how long it took and the mean."""
    with httpx.Client(timeout=120) as http:
        number = 0
        while time.monotonic() < end:
            key = seed * 100_000 + number
            chance = random.Random(key)
            body = {"candidates": texts(chance), "references": texts(chance)}
            start = time.monotonic()
            answer = http.post(f"{address}score", json=body).raise_for_status().json()
            found.append((key, time.monotonic() - start, answer["metrics"][METRIC]["mean"]))
            number += 1


def figure(address: str, name: str) -> float:
    text = httpx.get(f"{address}prometheus", timeout=120).text
    return float(re.findall(rf"^{name} (\S+)$", text, re.MULTILINE)[0])


def load(address: str, seconds: float) -> dict[str, float]:
    found: list[tuple[int, float, float]] = []
    _crowd(address, 5.0, found)
    found.clear()
    before = figure(address, "process_cpu_seconds_total")
    memory = figure(address, "process_resident_memory_bytes")
    _crowd(address, seconds, found)
    used = figure(address, "process_cpu_seconds_total") - before
    after = figure(address, "process_resident_memory_bytes")
    times = sorted(taken for _, taken, _ in found)
    library = check(found)
    served = used / (len(found) * PAIRS)
    return {
        "requests": len(found),
        "pairs_a_second": round(len(found) * PAIRS / seconds, 1),
        "p50": round(times[len(times) // 2], 3),
        "p99": round(times[int(len(times) * 0.99)], 3),
        "cpu_ms_a_pair": round(served * 1000, 3),
        "library_cpu_ms_a_pair": round(library * 1000, 3),
        "ratio": round(served / library, 3),
        "memory_mb_before": round(memory / 1e6, 1),
        "memory_mb_after": round(after / 1e6, 1),
    }


def _crowd(address: str, seconds: float, found: list[tuple[int, float, float]]) -> None:
    end = time.monotonic() + seconds
    threads = [
        threading.Thread(target=client, args=(n, address, end, found)) for n in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check(found: list[tuple[int, float, float]]) -> float:
    """Compare every answer with the library; give its processor time for a pair."""
    candidates, references = [], []
    for key, _, _ in found:
        chance = random.Random(key)
        candidates += texts(chance)
        references += texts(chance)
    em.score(candidates[:64], references[:64], METRIC)
    start = time.process_time()
    values = [s.value for s in em.score(candidates, references, METRIC).segments]
    used = time.process_time() - start
    for at, (_, _, mean) in enumerate(found):
        own = values[at * PAIRS : (at + 1) * PAIRS]
        if abs(sum(own) / PAIRS - mean) > 1e-6:
            raise SystemExit(f"an answer differs from the library: {mean}")
    return used / len(candidates)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    line = [sys.executable, "-m", "evenmatch", "serve", "-m", METRIC, "--port", "0"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        address = re.findall(r"http://\S+", server.stderr.readline())[0]
        try:
            result = load(address, seconds)
        finally:
            server.terminate()
    print(json.dumps(result, indent=2))
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
