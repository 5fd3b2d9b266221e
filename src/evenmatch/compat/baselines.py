"""bert_score's baselines: what unrelated sentences score, layer by layer, to rescale by."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evenmatch.errors import DataError, InputError
from evenmatch.types import Array

_COLUMNS = ("P", "R", "F")


def find_baseline(path: str | None, lang: str | None, model_type: str) -> Path:
    """The file given, or the one the bert_score package carries where it is installed."""
    if path is not None:
        return Path(path)
    if lang is None:
        raise InputError(
            "rescale_with_baseline needs a baseline; give lang='en' or baseline_path='FILE'"
        )
    package = importlib.util.find_spec("bert_score")
    inside = f"rescale_baseline/{lang.lower()}/{model_type}.tsv"
    for folder in package.submodule_search_locations or () if package else ():
        if (Path(folder) / inside).is_file():
            return Path(folder) / inside
    raise InputError(
        f"no baseline is known for {model_type} in {lang!r}; give baseline_path='FILE' (a table "
        "LAYER,P,R,F), or leave rescale_with_baseline off"
    )


def read_baseline(path: Path, layers: Sequence[int]) -> Array:
    """The baselines of P, R and F at these layers: (layers, 3)."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = {int(r["LAYER"]): [float(r[c]) for c in _COLUMNS] for r in csv.DictReader(file)}
    except OSError as error:
        raise DataError(f"cannot read the baseline {path}: {error.strerror}") from None
    except (KeyError, ValueError, TypeError):
        raise DataError(
            f"{path} is no baseline; expected lines of LAYER,P,R,F below a line that says so"
        ) from None
    if missing := [layer for layer in layers if layer not in rows]:
        raise DataError(f"the baseline {path} lacks layer {missing[0]}; it has {_span(rows)}")
    return np.array([rows[layer] for layer in layers])


def _span(rows: dict[int, list[float]]) -> str:
    return f"{min(rows)} to {max(rows)}" if rows else "none"
