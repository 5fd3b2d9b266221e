"""Data frames: add scores to a polars or pandas frame as new columns."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from evenmatch.api import metric_name, score
from evenmatch.errors import InputError
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import column_values
from evenmatch.types import Scores

Frame = TypeVar("Frame")


def score_frame(
    frame: Frame,
    *,
    candidate: str = "candidate",
    reference: str | Sequence[str] = "reference",
    source: str = "",
    metric: str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric] = "bertscore",
    **run: Any,
) -> Frame:
    """Return the frame with the scores of each row in new columns; rows and index do not change.

    A metric adds a column NAME, and NAME_precision and NAME_recall if it has them; the keys of a
    dictionary of metrics are the names. `candidate`, `reference` and `source` name columns.
    `reference` is a column of strings or of lists of strings, or several columns of one reference
    each. `run` settings are those of `score`.
    """
    library = _library(frame)
    metrics = _metrics_by_name(metric)
    several = [reference] if isinstance(reference, str) else list(reference)
    _check_columns(frame, [candidate, *several, *([source] if source else [])], list(metrics))
    columns: Any = frame
    references = [column_values(columns[name]) for name in several]
    for name, texts in zip(several if len(several) > 1 else (), references, strict=False):
        missing = next((row for row, text in enumerate(texts) if not isinstance(text, str)), None)
        if missing is not None:
            raise InputError(
                f"row {missing} of the column {name!r} is not a text; if rows have different "
                "numbers of references, make one column of lists"
            )
    if metrics and not len(columns[candidate]):
        empty: Frame = _with_columns(frame, library, {name: [] for name in metrics})
        return empty
    found = score(
        columns[candidate],
        references[0] if isinstance(reference, str) else list(zip(*references, strict=True)),
        list(metrics.values()),
        sources=columns[source] if source else None,
        **run,
    )
    added: dict[str, list[float]] = {}
    for name, each in metrics.items():
        for part, numbers in score_columns(found[metric_name(each)]).items():
            added[name if part == "value" else f"{name}_{part}"] = numbers
    scored: Frame = _with_columns(frame, library, added)
    return scored


def score_columns(scores: Scores) -> dict[str, list[float]]:
    """Return the value of each pair, and precision and recall if every pair has them."""
    parts = ("value", "precision", "recall")
    columns = {part: [getattr(segment, part) for segment in scores.segments] for part in parts}
    return {part: numbers for part, numbers in columns.items() if None not in numbers}


def _metrics_by_name(metric: Any) -> dict[str, Any]:
    if isinstance(metric, Mapping):
        return dict(metric)
    given = metric if isinstance(metric, (list, tuple)) else [metric]
    return {metric_name(each): each for each in given}


def _library(frame: Any) -> str:
    """The library of a frame; it is already imported, since the frame exists."""
    for name in ("polars", "pandas"):
        module: Any = sys.modules.get(name)
        if module is not None and isinstance(frame, module.DataFrame):
            return name
    raise InputError(
        f"expected a polars or pandas DataFrame, got {type(frame).__name__}; "
        "collect a lazy frame first"
    )


def _check_columns(frame: Any, wanted: Sequence[str], metrics: Sequence[str]) -> None:
    columns = list(frame.columns)
    for name in wanted:
        if columns.count(name) != 1:
            known = ", ".join(map(repr, columns)) or "none"
            raise InputError(
                f"the frame must have exactly one column {name!r}; its columns: {known}"
            )
    for new in (name + end for name in metrics for end in ("", "_precision", "_recall")):
        if new in columns:
            raise InputError(
                f"the frame already has a column {new!r}; "
                "choose another name: metric={'NAME': METRIC}"
            )


def _with_columns(frame: Any, library: str, added: Mapping[str, list[float]]) -> Any:
    if library == "pandas":
        return frame.assign(**added)
    polars: Any = sys.modules["polars"]
    return frame.with_columns(
        [polars.Series(name, numbers, dtype=polars.Float64) for name, numbers in added.items()]
    )
