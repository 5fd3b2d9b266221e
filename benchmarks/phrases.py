"""Phrase trees derived from dependencies against those people drew: GUM, on its own tokens."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

from evenmatch.units.bracketing import compare_trees
from evenmatch.units.parser_spacy import tokenized
from evenmatch.units.phrase_trees import derived_tree
from evenmatch.units.trees import read_brackets


def run() -> dict[str, Any]:
    path = Path(os.environ.get("EVENMATCH_DATA", "")) / "gum-const" / "gum_const.jsonl.gz"
    if not path.is_file():
        return {"skipped": "needs gum-const in EVENMATCH_DATA"}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    gold = [read_brackets(row["tree"])[0] for row in rows]
    parsed = tokenized("en_core_web_sm", [sentence.words for sentence in gold])
    pairs = [(derived_tree(s), g.tree) for s, g in zip(parsed, gold, strict=True)]
    genres = [row["doc"].split("_")[1] for row in rows]
    table = {}
    for genre in (*sorted(set(genres)), "all"):
        own = [p for p, g in zip(pairs, genres, strict=True) if genre in (g, "all")]
        found = compare_trees(own)
        table[genre] = {
            "sentences": len(own),
            "labelled": round(100 * found.labelled, 2),
            "unlabelled": round(100 * found.unlabelled, 2),
        }
    return {"texts": "gum-const", "genres": table}
