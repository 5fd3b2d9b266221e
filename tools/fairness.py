"""Measure metrics on every fairness set, on the penalty for a wrong gender, and on human ratings.

    python -m tools.fairness LABEL=METRIC ... [--ratings DATA ...] [--out results/fairness]

METRIC is a spec, or a folder that `evenmatch debias` wrote for bertscore. Each metric is kept as
LABEL.json; what such a file has is not measured again. The first metric is the one that the others
are compared with on the screen. `--sets` limits the sets and penalties. `--ratings` adds the
agreement with human ratings of these sets: wmt17-da, wmt20-da (zh-en), wmt20-mqm and summ-realsumm.

The fairness sets are the six of Sun et al. (2022), the test parts of WinoBias, the gender pairs of
CrowS-Pairs that differ in known terms only, and own sentences: with gendered nouns (seen and unseen
in training), with names (unseen), the pairs of the audit, and the selection set. The reference of
WinoBias names the occupation in place of the pronoun; that of CrowS-Pairs is neutralised by
`evenmatch.fairness.counterfactuals`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import evenmatch as em
from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.fairness_sets import (
    ATTRIBUTES,
    FairnessPair,
    family_pairs,
    make_fairness_pair,
    read_fair_pairs,
    template_pairs,
)
from evenmatch.fairness.audit import pair_directions
from evenmatch.fairness.bias import AttributeScores, measure_bias
from evenmatch.fairness.counterfactuals import GenderCase, neutralise
from evenmatch.fairness.debias import contrast_cases, fairness_pair_cases
from evenmatch.fairness.training_data import held_out, pronoun_contrasts, training_families
from evenmatch.protocols import Metric
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.stats.paired import Resampling
from evenmatch.stats.panel import Floats
from evenmatch.types import Run
from tools.pages import RESULTS
from tools.pages.agreement import thinned

STORED = RESULTS / "fairness"
PRONOUN_CASES = 200
SYSTEM_SEGMENTS = 200
RATINGS: Mapping[str, tuple[tuple[str, ...], Any, Any]] = {
    "wmt17-da": ((), "segment", "pearson"),
    "wmt20-da": (("zh-en",), "system", "pearson"),
    "wmt20-mqm": ((), "segment", "pearson"),
    "summ-realsumm": ((), "segment", "spearman"),
}
Measures = dict[str, dict[str, Any]]
_BRACKETS = re.compile(r"\[(.*?)\]")


def fairness_sets() -> dict[str, list[FairnessPair]]:
    """All sets to audit on by name, the stereotypical candidate first."""
    public = read_fair_pairs("metric-fairness").pairs
    vocabulary = held_out()
    sets = {"gender": list(public["gender"])}
    for kind in (1, 2):
        sets[f"winobias {kind}"] = list(winobias_pairs(kind))
    sets["crows gender"] = list(crows_gender_pairs())
    for family in (*vocabulary["nouns"], *vocabulary["names"], *vocabulary["more"]):
        sets[family["set"]] = list(all_term_pairs(family))
    sets["own gender"] = template_pairs("gender")
    sets["selection"] = [p for f in training_families("selection") for p in all_term_pairs(f)]
    return sets | {name: list(pairs) for name, pairs in public.items() if name != "gender"}


def all_term_pairs(family: Mapping[str, Any]) -> Iterator[FairnessPair]:
    """Combine every sentence of a family with every trait and every term."""
    for term in family["terms"]:
        yield from family_pairs({**family, "terms": [term]})


def winobias_pairs(kind: int) -> Iterator[FairnessPair]:
    """The sentences of one type with one pronoun; the paper's set is the other split of type 1."""
    for record in _records(find_data_set("winobias") / "winobias.jsonl.gz"):
        mentions = _BRACKETS.findall(record["pro"])
        if record["type"] != kind or record["split"] != "test" or len(mentions) != 2:
            continue
        pronoun, job = sorted(mentions, key=len)
        both = {pronoun.lower(), *(each.lower() for each in _BRACKETS.findall(record["anti"]))}
        owner = job[:1].lower() + job[1:] + ("'s" if "his" in both else "")
        texts = record["pro"], record["anti"], record["pro"].replace(f"[{pronoun}]", owner)
        first, second, neutral = (text.replace("[", "").replace("]", "") for text in texts)
        neutral = neutral[:1].upper() + neutral[1:]
        yield make_fairness_pair(first, neutral, second, neutral)


def crows_gender_pairs() -> Iterator[FairnessPair]:
    """The gender pairs that are equal once they are neutralised."""
    for record in _records(find_data_set("crows-pairs") / "crows_pairs.jsonl.gz"):
        more, less = record["sent_more"], record["sent_less"]
        if record["bias_type"] == "gender":
            neutral = neutralise(more)
            if neutral == neutralise(less) and neutral not in (more, less):
                yield make_fairness_pair(more, neutral, less, neutral)


def penalty_cases() -> dict[str, list[GenderCase]]:
    """Right and wrong candidates by how the reference shows gender: pronoun, noun or name."""
    public = read_fair_pairs("metric-fairness", attributes=["gender"]).pairs["gender"]
    return {
        "pronoun": fairness_pair_cases(public)[:PRONOUN_CASES],
        **{kind: contrast_cases(pronoun_contrasts(kind)) for kind in ("noun", "name")},
    }


def measure_sets(metric: Metric, run: Run, only: Collection[str], known: Measures) -> Measures:
    """Measure bias on each set, and the penalty for a wrong group or gender, unless it is known."""
    sets, cases = fairness_sets(), penalty_cases()
    public = read_fair_pairs("metric-fairness").pairs
    cases |= {name: fairness_pair_cases(public[name]) for name in public if name != "gender"}
    wanted = set(only or (*sets, *cases))
    sets = {n: each for n, each in sets.items() if n in wanted and n not in known}
    cases = {n: c for n, c in cases.items() if n in wanted and f"penalty, {n}" not in known}
    pairs = [p for each in sets.values() for both in each for p in both.both]
    pairs += [p for each in cases.values() for case in each for p in case]
    if not pairs:
        return known
    [scores] = score_metrics([metric], pairs, run)
    rows = iter(np.array([s.value for s in scores.segments]).reshape(-1, 2))
    found = dict(known)
    for name, each in sets.items():
        both = np.array([next(rows) for _ in each])
        found[name] = bias_measures(name, each, both)
    for name, some in cases.items():
        both = np.array([next(rows) for _ in some])
        cost = float((both[:, 0] - both[:, 1]).mean())
        found[f"penalty, {name}"] = {"cases": len(some), "cost": cost}
    return found


def bias_measures(name: str, pairs: list[FairnessPair], scores: Floats) -> dict[str, Any]:
    """Bias, raw and in percent of the range; its two parts, raw; and how often a stereotype wins.

    `share` counts the pairs whose stereotypical candidate scores higher, `beyond` does so after the
    offset is subtracted. `prefers` has one letter for each pair, s where the stereotypical one
    scores higher, o where the other does and = where neither does, so that the shares of two
    metrics can be compared pair by pair.
    """
    attribute = name if name in ATTRIBUTES else "gender"
    directions = pair_directions(attribute, pairs)
    first, second = scores[:, 0], scores[:, 1]
    both = AttributeScores(attribute, name, first, second, directions=directions)
    found = measure_bias(both, Resampling(0.95, 200, 10, 0))
    measures = {
        "pairs": found.pairs,
        "bias": found.bias,
        "raw": found.raw,
        "low": found.low / both.scale,
        "high": found.high / both.scale,
        "stereotype": found.raw_stereotype,
        "stereotype_low": found.stereotype_low / both.scale,
        "stereotype_high": found.stereotype_high / both.scale,
        "share": found.prefers_stereotype,
        "offset": found.raw_offset,
        "beyond": found.prefers_beyond_offset,
    }
    rounded = {what: round(value, 8) for what, value in measures.items() if value is not None}
    return rounded | {"prefers": "".join("o=s"[int(sign) + 1] for sign in np.sign(both.gaps))}


def measure_ratings(metric: Metric, data: str, only: Sequence[str] = ()) -> dict[str, float]:
    """Agreement with the human ratings of each subset of a set, or of some."""
    subsets, level, method = RATINGS[data]
    sets = em.read_ratings(data, subsets=only or subsets)
    if level == "system":
        sets = [thinned(each, SYSTEM_SEGMENTS) for each in sets]
    found = em.correlate([metric], sets, level, method, resamples=10, threads=1)
    values = {f"{e.data} {e.subset}": e.value for e in found.entries}
    return {name: value for name, value in values.items() if not only or name.split()[1] in only}


def main() -> None:
    """Measure the metrics that are named, and print them beside the first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("metrics", nargs="+", metavar="LABEL=METRIC")
    parser.add_argument("--sets", nargs="*", default=[], metavar="SET")
    parser.add_argument("--ratings", nargs="*", default=[], choices=[*RATINGS, []])
    parser.add_argument("--subsets", nargs="*", default=[], help="subsets of the ratings")
    parser.add_argument("--out", type=Path, default=STORED)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    documents = {}
    for label, _, wanted in (each.partition("=") for each in given.metrics):
        path = given.out / f"{label}.json"
        found = json.loads(path.read_text("utf-8")) if path.exists() else {}
        folder = Path(wanted).is_dir()
        metric = as_metric(f"bertscore(adapter={wanted!r})" if folder else wanted)
        if found.setdefault("signature", metric.signature) != metric.signature:
            raise SystemExit(f"{path} is of another metric: {found['signature']}")
        known = found.get("sets", {})
        found["sets"] = measure_sets(metric, Run(threads=1), given.sets, known)
        for data in given.ratings:
            if data not in found.setdefault("ratings", {}):
                found["ratings"][data] = measure_ratings(metric, data, given.subsets)
        path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        documents[label] = found
    plain = next(iter(documents.values()))
    for label, document in documents.items():
        print(label)
        for name, row in document["sets"].items():
            if name not in plain["sets"]:
                continue
            print("  ", name, *_compared(plain["sets"][name], row), sep="  ")
        for data, values in document.get("ratings", {}).items():
            print(f"   {data}  {np.mean(list(values.values())):.4f}")


def _compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for what, value in after.items():
        if what == "prefers" or what not in before:
            continue
        old = before[what]
        relative = what in ("bias", "raw", "cost") and old
        change = f" ({100 * value / old:.0f} %)" if relative else ""
        yield f"{what} {old:.5g} > {value:.5g}{change}"


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


if __name__ == "__main__":
    main()
