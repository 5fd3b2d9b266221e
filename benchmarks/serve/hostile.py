"""A server under 64 clients, ten of them hostile, beside the same load without those ten.

python -m benchmarks.serve.hostile SECONDS prints the result as JSON. Everything runs on 127.0.0.1.
"""

from __future__ import annotations

import json
import multiprocessing
import socket
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any

import httpx

from benchmarks.serve.requests import CLIENTS, MEMORY, METRIC, Found, client, figure, serving

HOSTILE, HALF_OPEN, STEP = 10, 400, 0.1
ALIGNED = "the cat that saw the dog that " * 66  # near the limit of an alignment's length
spawning = multiprocessing.get_context("spawn")
ALIGN_HEAD = (
    b"POST /align HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n"
)


def run(seconds: float) -> dict[str, Any]:
    return {
        "clients": CLIENTS,
        "hostile": HOSTILE,
        "seconds": seconds,
        "without": load(seconds, hostile=False),
        "with": load(seconds, hostile=True),
    }


def load(seconds: float, *, hostile: bool) -> dict[str, Any]:
    """Send correct requests from 54 clients, and watch health and memory."""
    with serving("struct_dep") as address, ProcessPoolExecutor(2, spawning) as process:
        warm_up = Found()
        client(0, address, time.monotonic() + 3, warm_up)
        end = time.monotonic() + seconds
        found, memory = Found(), [figure(address, MEMORY)]
        others: list[Future[Any]] = [process.submit(watch_health, address, seconds)]
        if hostile:
            others.append(process.submit(attack, address, seconds))
        threads = [
            threading.Thread(target=client, args=(n, address, end, found))
            for n in range(CLIENTS - HOSTILE)
        ]
        for thread in threads:
            thread.start()
        while time.monotonic() < end:
            memory.append(figure(address, MEMORY))
            time.sleep(0.5)
        for thread in threads:
            thread.join()
        health = sorted(others[0].result())
        dropped = figures(address, "evenmatch_dropped_connections_total")
    times = sorted(each for _, each, _ in found.answers)
    return {
        "requests": len(found.answers),
        "errors": len(found.errors),
        "kinds of errors": sorted(set(found.errors)),
        "p50 seconds": round(times[len(times) // 2], 3),
        "p99 seconds": round(times[int(len(times) * 0.99)], 3),
        "health requests": len(health),
        "health p99 seconds": round(health[int(len(health) * 0.99)], 3),
        "health longest seconds": round(health[-1], 3),
        "highest memory MB": round(max(memory) / 1e6, 1),
        "dropped connections": dropped,
    }


def watch_health(address: str, seconds: float) -> list[float]:
    """Ask /health on a new connection each time, in a process of its own.

    Returns how long each took; a failure counts as a minute.
    """
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.monotonic()
        try:
            httpx.get(f"{address}health", timeout=60).raise_for_status()
            times.append(time.monotonic() - start)
        except httpx.HTTPError:
            times.append(60.0)
        time.sleep(STEP)
    return times


def attack(address: str, seconds: float) -> None:
    """All hostile clients at once, in a process of its own."""
    end = time.monotonic() + seconds
    threads = [
        threading.Thread(target=attacks[n % len(attacks)], args=(address, end))
        for n in range(HOSTILE)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def slow_head(address: str, end: float) -> None:
    """Send a head byte by byte."""
    while time.monotonic() < end:
        try:
            with connect(address) as line:
                line.sendall(b"POST /score HTTP/1.1\r\nHost: localhost\r\nX: ")
                while time.monotonic() < end:
                    line.sendall(b"x")
                    time.sleep(STEP)
        except OSError:
            time.sleep(STEP)


def endless_headers(address: str, end: float) -> None:
    """Send headers without an end, over and over."""
    piece = b"X: " + b"y" * 60_000 + b"\r\n"
    while time.monotonic() < end:
        try:
            with connect(address) as line:
                line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
                while time.monotonic() < end:
                    line.sendall(piece)
        except OSError:
            time.sleep(STEP)


def huge_answer(address: str, end: float) -> None:
    """Ask for large alignments, and read none of the responses."""
    body = json.dumps({"candidate": ALIGNED, "reference": ALIGNED, "metric": "struct_dep"}).encode()
    fitting = json.dumps({"candidate": ALIGNED, "reference": ALIGNED, "metric": METRIC}).encode()
    held: list[socket.socket] = []
    while time.monotonic() < end:
        for each in (body, fitting):
            try:
                line = connect(address)
                held.append(line)
                line.sendall(ALIGN_HEAD % len(each) + each)
            except OSError:
                pass
            time.sleep(1.0)
        while len(held) > 20:
            held.pop(0).close()
    for line in held:
        line.close()


def half_open(address: str, end: float) -> None:
    """Hold many connections open without a request, and open them again when they are closed."""
    held: list[socket.socket] = []
    while time.monotonic() < end:
        try:
            held.append(connect(address))
        except OSError:
            time.sleep(STEP)
        if len(held) > HALF_OPEN:
            held.pop(0).close()
            time.sleep(0.005)
    for line in held:
        line.close()


attacks = [slow_head, endless_headers, huge_answer, half_open]


def connect(address: str) -> socket.socket:
    url = httpx.URL(address)
    return socket.create_connection((url.host, url.port or 80), timeout=5)


def figures(address: str, name: str) -> dict[str, float]:
    """Return the values of a counter by its labels."""
    lines = httpx.get(f"{address}prometheus", timeout=120).text.splitlines()
    rows = (line[len(name) :].rsplit(" ", 1) for line in lines if line.startswith(f"{name}{{"))
    return {labels: float(value) for labels, value in rows}


if __name__ == "__main__":
    print(json.dumps(run(float(sys.argv[1])), indent=1))
