"""python -m benchmarks [NAME ...]: run all benchmarks, or those named, and write the page.

python -m benchmarks peers --shape SHAPE: measure one other model, see `speed/shapes.py`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.results import save
from benchmarks.scale import growth, stream
from benchmarks.scale import page as scale_page
from benchmarks.scale import workers as scale
from benchmarks.serve import requests as serve
from benchmarks.speed import batch_size as tune
from benchmarks.speed import (
    caching,
    job,
    peers,
    phrases,
    products,
    shapes,
    sharing,
    static,
    structure,
)
from benchmarks.speed_page import write_page
from benchmarks.training import reward

ALL: dict[str, Callable[[], dict[str, Any]]] = {
    "products": products.run,
    "peers": peers.run,
    "shapes": shapes.run,
    "sharing": sharing.run,
    "static": static.run,
    "job": job.run,
    "caching": caching.run,
    "growth": growth.run,
    "stream": stream.run,
    "scale": scale.run,
    "structure": structure.run,
    "phrases": phrases.run,
    "reward": reward.run,
    "serve": serve.run,
}


def main(wanted: list[str]) -> None:
    if wanted[:2] == ["peers", "--shape"]:
        names = wanted[2:]
        if not names or not set(names) <= set(shapes.SHAPES):
            sys.exit(f"--shape takes one of: {', '.join(shapes.SHAPES)}")
        _measure("shapes", partial(shapes.run, names))
        return
    known = ALL | {"tune": tune.run}
    for name in wanted or ALL:
        if name not in known:
            sys.exit(f"no benchmark is called {name!r}; known: {', '.join(known)}")
    if len(wanted) == 1:
        _measure(wanted[0], known[wanted[0]])
        return
    for name in wanted or ALL:
        # Each in a process of its own: a process that another starts counts the memory which that
        # one holds as its own peak.
        subprocess.run([sys.executable, "-m", "benchmarks", name], check=True)


def _measure(name: str, run: Callable[[], dict[str, Any]]) -> None:
    print(f"{name} ...", flush=True)
    start = time.perf_counter()
    result = run()
    print(f"{name} took {time.perf_counter() - start:.0f} s")
    for key, value in result.items():
        print(f"  {key}: {value}")
    save(name, result)
    write_page()
    scale_page.write_page()


if __name__ == "__main__":
    main(sys.argv[1:])
