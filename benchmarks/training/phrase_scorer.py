"""How well FB's phrase scorer agrees with FG's phrase similarity, also on degenerate phrases.

    python -m benchmarks.training.phrase_scorer [--pairs 40000] [--folder FOLDER]

The scorer is trained on the documents of kp20k-small (train and valid), nine tenths of them; the
others are held out. The second test are predictions of published systems (kp-predictions) on other
documents. The result is results/benchmarks/phrase-scorer.json. Needs EVENMATCH_DATA.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.documents import read_documents
from evenmatch.data.tables import TextTable
from evenmatch.training.metrics.phrase_scorer import (
    evaluate_scorer,
    fit_keyphrases,
    make_degenerate_pairs,
    make_phrase_pairs,
)

RESULT = Path(__file__).parents[2] / "results" / "benchmarks" / "phrase-scorer.json"
_MOST_PAIRS = 2_000  # sampled from each published set


def rows(table: TextTable) -> list[dict[str, Any]]:
    header, *cells = table
    return [dict(zip(header, row, strict=True)) for row in cells]


def measure(folder: Path, pairs: int) -> dict[str, Any]:
    place = find_data_set("kp20k-small")
    sets = [
        each for name in ("train", "valid") for each in read_documents(place / f"{name}.jsonl.gz")
    ]
    card = fit_keyphrases(sets, folder, most=pairs)
    tests = {what: rows(table) for what, table in card.evaluations.items()}
    for each in read_documents("kp-predictions"):
        for kind, make in (
            ("predicted", make_phrase_pairs),
            ("degenerate", make_degenerate_pairs),
        ):
            every = list(make(each.documents).items())
            found = dict(random.Random(0).sample(every, min(_MOST_PAIRS, len(every))))
            what = f"{len(found)} pairs with {kind} phrases of {each.name}"
            tests[what] = rows(evaluate_scorer(found, str(folder)))
    return {
        "command": f"python -m benchmarks.training.phrase_scorer --pairs {pairs}",
        "facts": {name: value for name, value in card.facts.items() if name != "seconds"},
        "agreement with FG": tests,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40_000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(given.folder or Path(folder) / "scorer", given.pairs)
    RESULT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
