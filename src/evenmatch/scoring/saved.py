"""Metrics in folders: a file says the spec, and the folder holds what the spec rests on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from evenmatch.errors import DataError
from evenmatch.registry import build

METRIC = "metric.json"
HERE = "{here}"  # stands for the folder in the spec of a saved metric


def is_path(given: str) -> bool:
    """Whether a metric is given as a folder: with a separator before any settings, or ~ or a dot.

    >>> is_path("./mine"), is_path("runs/7"), is_path("fitted(model='runs/7')"), is_path("bleu")
    (True, True, False, False)
    """
    name = given.split("(", 1)[0]
    return "/" in name or os.sep in name or name.startswith(("~", "."))


def write_metric(folder: Path, spec: str) -> None:
    """Say what metric a folder is; {here} stands for the folder itself."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / METRIC).write_text(json.dumps({"metric": spec}, indent=2) + "\n", "utf-8")


def read_metric(given: str) -> Any:
    """The metric that a folder, or the file in it, describes."""
    path = Path(given).expanduser()
    file = path / METRIC if path.is_dir() else path
    if not file.is_file():
        raise DataError(
            f"{given} holds no {METRIC}; "
            "give a folder that evenmatch fit, distil or calibrate wrote"
        )
    try:
        spec = json.loads(file.read_text("utf-8"))["metric"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file} describes no metric ({error!r}); make it again") from None
    return build(str(spec).replace(HERE, repr(str(file.parent))))
