"""Saved metrics: a folder with the metric's spec in `metric.json` and the files it needs."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from evenmatch.errors import DataError
from evenmatch.packages import PACKAGES
from evenmatch.registry import build

METRIC_FILE = "metric.json"

# In the spec of a saved metric: its folder. {here/NAME} is a file or folder in it.
FOLDER_PLACEHOLDER = "{here}"
_PLACEHOLDER_PATTERN = re.compile(r"\{here(/[\w.-]+)?\}")

_PATH_SETTINGS = ("model", "weights", "adapter")  # settings that may name a folder or a file


def is_metric_path(given: str) -> bool:
    """Whether a metric is given as a path: it has a separator before any settings, or ~ or a dot.

    >>> is_metric_path("./mine"), is_metric_path("runs/7"), is_metric_path("bleu")
    (True, True, False)
    >>> is_metric_path("fitted(model='runs/7')")
    False
    """
    name = given.split("(", 1)[0]
    return "/" in name or os.sep in name or name.startswith(("~", "."))


def write_metric(folder: Path, spec: str) -> None:
    """Write the spec of the metric in this folder; `{here}` in the spec is the folder itself."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / METRIC_FILE).write_text(json.dumps({"metric": spec}, indent=2) + "\n", "utf-8")


def write_portable_metric(folder: Path, spec: str) -> str:
    """Write a metric to a folder, with copies of all files its spec names; return the new spec.

    The folder can then be moved, and the original files can be deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = _find_paths(spec)
    inside = {path: f"part-{n}" for n, path in enumerate(dict.fromkeys(p for *_, p in found), 1)}
    for path, name in inside.items():
        copy = shutil.copytree if path.is_dir() else shutil.copyfile
        copy(path, folder / name)
    written = spec.encode()
    for start, end, path in reversed(found):
        written = written[:start] + f"{{here/{inside[path]}}}".encode() + written[end:]
    write_metric(folder, written.decode())
    return written.decode()


def _find_paths(spec: str) -> list[tuple[int, int, Path]]:
    """Paths of existing files and folders in a spec, each as (first byte, last byte + 1, path)."""
    found = []
    for node in ast.walk(ast.parse(spec, mode="eval")):
        if isinstance(node, ast.keyword) and node.arg in _PATH_SETTINGS:
            given = node.value
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                path = Path(given.value).expanduser()
                if given.value and given.value not in PACKAGES and path.exists():
                    found.append((given.col_offset, given.end_col_offset or 0, path))
    return sorted(found, key=lambda each: each[0])


def read_metric(given: str) -> Any:
    """Load the metric saved in a folder; the path of its `metric.json` works as well."""
    path = Path(given).expanduser()
    file = path / METRIC_FILE if path.is_dir() else path
    if not file.is_file():
        raise DataError(
            f"{given} holds no {METRIC_FILE}; "
            "give a folder that evenmatch fit, distil or calibrate wrote"
        )
    try:
        spec = json.loads(file.read_text("utf-8"))["metric"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file} describes no metric ({error!r}); save the metric again") from None
    return build(
        _PLACEHOLDER_PATTERN.sub(lambda match: repr(f"{file.parent}{match[1] or ''}"), str(spec))
    )
