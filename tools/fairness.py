"""Measure an adapter on every fairness set, on the penalty for a wrong gender, and on ratings.

    python -m tools.fairness METRIC [METRIC ...] --out results/fairness [--plain METRIC]

METRIC is a spec, such as `bertscore_even` or a folder that `evenmatch debias` wrote. Scores of the
plain metric are kept in the cache. Writes one JSON document per metric. `--quick` leaves out the
ratings.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.fairness_sets import (
    FairnessPair,
    family_pairs,
    make_fairness_pair,
    read_fair_pairs,
    template_pairs,
)
from evenmatch.fairness.adapter_training import held_out, pronoun_contrasts, training_families
from evenmatch.fairness.counterfactuals import GenderCase, neutralise
from evenmatch.fairness.debias import contrast_cases, fairness_pair_cases
from evenmatch.protocols import Metric
from evenmatch.registry import build
from evenmatch.scoring.metric import score_metrics
from evenmatch.types import Run

PRONOUN_SAMPLE = 200
_BRACKETS = re.compile(r"\[(.*?)\]")
_MALE = re.compile(r"\b(?:he|him|his|himself)\b", re.IGNORECASE)


def fairness_sets() -> dict[str, list[FairnessPair]]:
    """All sets to audit on by name, the stereotypical candidate first."""
    public = read_fair_pairs("metric-fairness").pairs
    vocabulary = held_out()
    nouns = {True: "nouns, unseen", False: "nouns, seen"}
    sets = {"gender": list(public["gender"])}
    for kind in (1, 2):
        sets[f"winobias {kind}"] = list(winobias_pairs(kind))
    sets["crows gender"] = list(crows_gender_pairs())
    for family in vocabulary["nouns"]:
        sets[nouns[bool(family.get("held_out"))]] = list(all_term_pairs(family))
    sets["names"] = [p for family in vocabulary["names"] for p in all_term_pairs(family)]
    sets["own gender"] = template_pairs("gender")
    sets["selection"] = [p for f in training_families("selection") for p in all_term_pairs(f)]
    return sets | {name: list(pairs) for name, pairs in public.items() if name != "gender"}


def all_term_pairs(family: Mapping[str, Any]) -> Iterator[FairnessPair]:
    """Combine every sentence of a family with every trait and every term."""
    for term in family["terms"]:
        yield from family_pairs({**family, "terms": [term]})


def winobias_pairs(kind: int) -> Iterator[FairnessPair]:
    """WinoBias with the occupation in place of the pronoun as the reference; not the paper's part."""
    path = find_data_set("winobias") / "winobias.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if record["type"] != kind or record["split"] != "test":
                continue
            mentions = _BRACKETS.findall(record["pro"])
            if len(mentions) != 2:
                continue
            one, two = mentions
            job, pronoun = (one, two) if len(one) > len(two) else (two, one)
            texts = [record[side].replace("[", "").replace("]", "") for side in ("pro", "anti")]
            owner = job[:1].lower() + job[1:]
            owns = pronoun.lower() == "his" or (
                pronoun.lower() == "her" and "[his]" in record["anti"].lower()
            )
            neutral = record["pro"].replace(f"[{pronoun}]", owner + ("'s" if owns else ""))
            neutral = neutral.replace("[", "").replace("]", "")
            neutral = neutral[:1].upper() + neutral[1:]
            yield make_fairness_pair(texts[0], neutral, texts[1], neutral)


def crows_gender_pairs() -> Iterator[FairnessPair]:
    """The gender pairs of CrowS-Pairs that differ in known terms only, neutralised as reference."""
    path = find_data_set("crows-pairs") / "crows_pairs.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if record["bias_type"] != "gender":
                continue
            more, less = record["sent_more"], record["sent_less"]
            neutral = neutralise(more)
            if neutral == neutralise(less) and neutral not in (more, less):
                yield make_fairness_pair(more, neutral, less, neutral)


def penalty_cases() -> dict[str, list[GenderCase]]:
    """Right and wrong candidates by how the reference shows gender: pronoun, noun or name."""
    public = read_fair_pairs("metric-fairness", attributes=["gender"]).pairs["gender"]
    return {
        "pronoun": fairness_pair_cases(public)[:PRONOUN_SAMPLE],
        **{kind: contrast_cases(pronoun_contrasts(kind)) for kind in ("noun", "name")},
    }


def measure(metric: Metric, run: Run) -> dict[str, dict[str, float]]:
    """Measure bias on each set and the penalty for a wrong gender by each kind of reference."""
    sets, cases = fairness_sets(), penalty_cases()
    pairs = [p for each in sets.values() for both in each for p in both.both]
    pairs += [p for each in cases.values() for case in each for p in case]
    [scores] = score_metrics([metric], pairs, run)
    values = iter(np.array([s.value for s in scores.segments]).reshape(-1, 2))
    found = {}
    for name, each in sets.items():
        both = np.array([next(values) for _ in each])
        gaps = both[:, 0] - both[:, 1]
        found[name] = {
            "pairs": len(each),
            "bias": float(100 * np.abs(gaps).mean() / np.ptp(both)),
            "raw": float(np.abs(gaps).mean()),
            **_two_parts(each, gaps),
        }
    for name, some in cases.items():
        both = np.array([next(values) for _ in some])
        found[f"penalty, {name}"] = {
            "cases": len(some),
            "cost": float((both[:, 0] - both[:, 1]).mean()),
        }
    return found


def _two_parts(pairs: Sequence[FairnessPair], gaps: Any) -> dict[str, float]:
    """The stereotype part of the gaps, and the share of pairs that prefer the stereotype."""
    return {
        "stereotype": float(gaps.mean()),
        "share": float((gaps > 0).mean() + 0.5 * (gaps == 0).mean()),
    }


def main() -> None:
    """Measure the metrics that are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("metrics", nargs="+")
    parser.add_argument("--plain", default="bertscore")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    run = Run(threads=1)
    for name in [given.plain, *given.metrics]:
        path = given.out / f"{Path(name).name}.json"
        if not path.exists():
            found = measure(
                build(name) if not Path(name).is_dir() else build(f"bertscore(adapter={name!r})"),
                run,
            )
            path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    before = json.loads((given.out / f"{given.plain}.json").read_text())
    for name in given.metrics:
        after = json.loads((given.out / f"{Path(name).name}.json").read_text())
        print(name)
        for key, row in after.items():
            old = before[key]
            if "cost" in row:
                print(
                    f"  {key:22s} cost {old['cost']:.5f} -> {row['cost']:.5f}  kept {100 * row['cost'] / old['cost']:.0f} %"
                )
            else:
                print(
                    f"  {key:22s} bias {old['bias']:6.2f} -> {row['bias']:6.2f} ({100 * (row['bias'] / old['bias'] - 1):+.0f} %) raw {old['raw']:.5f} -> {row['raw']:.5f} ({100 * (row['raw'] / old['raw'] - 1):+.0f} %) ster {old['stereotype']:+.5f} -> {row['stereotype']:+.5f} share {old['share']:.2f} -> {row['share']:.2f}  n={row['pairs']}"
                )


if __name__ == "__main__":
    main()
