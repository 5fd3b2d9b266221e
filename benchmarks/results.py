"""Results as JSON files in results/benchmarks, each with the machine that produced it."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "results" / "benchmarks"
_PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "numpy",
    "scipy",
    "POT",
    "bert-score",
    "torchmetrics",
)


def save(name: str, result: dict[str, Any]) -> None:
    machine = {"processor": _processor(), "cores": os.cpu_count()}
    versions = {package: version(package) for package in _PACKAGES}
    whole = {"command": f"python -m benchmarks {name}", **result}
    text = json.dumps(whole | {"machine": machine, "versions": versions}, indent=1)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(text + "\n", "utf-8")


def load(name: str) -> dict[str, Any] | None:
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(": ", 1)[1] for line in lines if "model name" in line), "unknown")
