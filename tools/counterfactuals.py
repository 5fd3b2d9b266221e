"""Error rates of counterfactuals: on the hand-checked set, and a random sample to read.

`python -m tools.counterfactuals check` counts the sentences of the hand-checked set whose
counterfactual differs from the expected one, and writes results/counterfactuals/hand_checked.json.
`python -m tools.counterfactuals sample ATTRIBUTE` prints counterfactuals of random sentences. What
was found by reading samples is in results/counterfactuals/reading.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from pathlib import Path

from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.fairness_sets import ATTRIBUTES
from evenmatch.data.pairs import read_sentence_pairs
from evenmatch.fairness.counterfactuals import TaggerChoice, counterfactuals

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "fairness" / "counterfactual_cases.jsonl"
RESULT = ROOT / "results" / "counterfactuals" / "hand_checked.json"
TAGGERS: dict[str, TaggerChoice] = {"tagger": "auto", "rules": None}
SOURCES = ("snli", "sick", "ud-english-ewt", "wmt17-da")


def count_errors(parser: TaggerChoice) -> dict[str, dict[str, int]]:
    """Count the sentences of each attribute, and the wrong counterfactuals among them."""
    cases = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    found: dict[str, dict[str, int]] = {}
    for attribute in ATTRIBUTES:
        wanted = {c["text"]: c["swapped"] for c in cases if c["attribute"] == attribute}
        swapped = {
            each.original: each.swapped
            for each in counterfactuals([*wanted], attribute, parser=parser)
        }
        wrong = [text for text in wanted if swapped.get(text) != wanted[text]]
        left_out = [text for text in wrong if text not in swapped]
        counts = {"sentences": len(wanted), "wrong": len(wrong), "left out": len(left_out)}
        found[attribute] = counts
    totals = Counter[str]()
    for counts in found.values():
        totals.update(counts)
    return {**found, "all": dict(totals)}


def read_sentences(source: str) -> list[str]:
    """Read the distinct sentences of a data set; of translations the references."""
    if source in ("snli", "sick"):
        pairs = read_sentence_pairs(source)
        return list(dict.fromkeys(t for p in pairs for t in (p.candidate, *p.references)))
    folder = find_data_set(source)
    texts: list[str] = []
    for path in sorted(folder.glob("*-en.jsonl.gz" if "wmt" in source else "*.conllu.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            if "wmt" in source:
                texts += [json.loads(line)["ref"] for line in lines]
            else:
                texts += [line[9:].strip() for line in lines if line.startswith("# text = ")]
    return list(dict.fromkeys(texts))


def main() -> None:
    """Check the hand-checked set, or print a sample."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=("check", "sample"))
    parser.add_argument("attribute", nargs="?", default="gender")
    parser.add_argument("--source", choices=SOURCES, default="ud-english-ewt")
    parser.add_argument("--size", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.what == "check":
        document = {name: count_errors(choice) for name, choice in TAGGERS.items()}
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        print(json.dumps({name: found["all"] for name, found in document.items()}))
        return
    sentences = read_sentences(given.source)
    random.Random(given.seed).shuffle(sentences)
    for each in counterfactuals(sentences, given.attribute)[: given.size]:
        print(each.original, each.swapped, each.neutral, "", sep="\n")


if __name__ == "__main__":
    main()
