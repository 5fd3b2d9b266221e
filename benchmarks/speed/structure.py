"""Structure alignment against BERTScore: its cost apart from parsing, and that of parsing."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np

import evenmatch as em
from benchmarks import texts
from benchmarks.clock import median, ratio, take_turns
from evenmatch.similarity.vectors import Cosine, SameLabel
from evenmatch.types import Array, Embedded
from evenmatch.units.subtrees import Constituents, Subtrees

COUNT, REPEATS, THREADS = 2000, 3, 2
METRICS = ("struct_dep", "struct_dep_head", "struct_con", "struct_con_label", "struct_con_head")


def run() -> dict[str, Any]:
    import torch

    torch.set_num_threads(THREADS)
    candidates, references, source = texts.pairs(COUNT)
    every = list(dict.fromkeys([*candidates, *references]))
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {"EVENMATCH_CACHE": folder}),
    ):
        parsing = {"spacy": _parsing(Subtrees(), every)}
        parsing["phrase_trees, from stored dependencies"] = _parsing(Constituents(), every)
        rivals = {
            name: (lambda name=name: em.score(candidates, references, name))
            for name in ("bertscore", *METRICS)
        }
        seconds = take_turns(rivals, REPEATS)
        return {
            "texts": source,
            "pairs": COUNT,
            "threads": THREADS,
            "repeats": REPEATS,
            "pairs per second": {n: round(COUNT / median(s), 1) for n, s in seconds.items()},
            "times bertscore": {n: ratio(seconds[n], seconds["bertscore"]) for n in METRICS},
            "parsing": parsing,
            "microseconds of same_label": _filters(candidates[:200], references[:200]),
        }


def _parsing(cut: Subtrees | Constituents, every: list[str]) -> dict[str, float]:
    """Texts per second: parsed for the first time, and read back from the store."""
    rates = {}
    for name in ("first time", "again"):
        start = time.perf_counter()
        cut.split_batch(every)
        rates[f"texts per second, {name}"] = round(len(every) / (time.perf_counter() - start), 1)
    return rates


def _filters(candidates: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """A filter over the whole matrix, and one block for each label."""
    metric = em.build("struct_dep_head")
    units = metric.units.cut([*candidates, *references])
    embedded = metric.vectors(units)
    pairs = list(zip(embedded[: len(candidates)], embedded[len(candidates) :], strict=True))
    whole = SameLabel()
    seconds = take_turns(
        {
            "whole matrix, then masked": lambda: [whole(x, y) for x, y in pairs],
            "a block for each label": lambda: [by_block(x, y) for x, y in pairs],
        },
        5,
    )
    return {name: round(median(s) / len(pairs) * 1e6, 1) for name, s in seconds.items()}


def by_block(x: Embedded, y: Embedded) -> Array:
    """The same similarity from one small product for each label that both sides have."""
    found = np.zeros((len(x.vectors), len(y.vectors)), dtype=x.vectors.dtype)
    rows, columns = (np.array(side.units.labels) for side in (x, y))
    for label in set(x.units.labels) & set(y.units.labels):
        at = np.flatnonzero(rows == label), np.flatnonzero(columns == label)
        parts = [
            Embedded(side.units, side.vectors[i], side.weights[i], side.mass[i])
            for side, i in zip((x, y), at, strict=True)
        ]
        found[np.ix_(*at)] = Cosine()(*parts)
    return found
