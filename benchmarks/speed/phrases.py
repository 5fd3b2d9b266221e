"""Phrase trees derived from dependencies against the manual trees of GUM, on gold tokens."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

from evenmatch.units.constituency.bracketing import compare_trees
from evenmatch.units.constituency.converter import convert_sentence
from evenmatch.units.parsers.spacy import parse_tokenized
from evenmatch.units.trees import read_brackets


def run() -> dict[str, Any]:
    path = Path(os.environ.get("EVENMATCH_DATA", "")) / "gum-const" / "gum_const.jsonl.gz"
    if not path.is_file():
        return {"skipped": "needs gum-const in EVENMATCH_DATA"}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    gold = [read_brackets(row["tree"])[0] for row in rows]
    parsed = parse_tokenized("en_core_web_sm", [sentence.words for sentence in gold])
    pairs = [(convert_sentence(s), g.tree) for s, g in zip(parsed, gold, strict=True)]
    genres = [row["doc"].split("_")[1] for row in rows]
    table = {}
    for genre in (*sorted(set(genres)), "all"):
        own = [p for p, g in zip(pairs, genres, strict=True) if genre in (g, "all")]
        found = compare_trees(own)
        table[genre] = {
            "sentences": len(own),
            "labelled": round(100 * found.labelled_f1, 2),
            "unlabelled": round(100 * found.unlabelled_f1, 2),
        }
    return {"texts": "gum-const", "genres": table}
