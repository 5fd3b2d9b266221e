"""Make docs/results/agreement.md: how closely metrics agree with people on the public sets.

    python -m tools.pages.agreement [--only NAME ...] [--again] [--segments N] [--list]
    python -m tools.pages.agreement --page-only

Reads the data sets from EVENMATCH_DATA. Every finished piece (a language pair, or the criteria of
one set) is kept as JSON in results/agreement, so a run that was stopped goes on where it was;
--again computes anew. --segments takes so many segments, at random but always the same, of each
language pair at the system level: for a first look. --page-only computes nothing and writes the
page from the stored results.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import evenmatch as em
from evenmatch.evaluation.agreement import agreement_differences, measure_agreement
from evenmatch.evaluation.disagreement import metric_partial_correlations
from evenmatch.evaluation.selection import measure_selection
from evenmatch.stats.levels import Level
from tools.pages import PAGES, RESULTS
from tools.pages.agreement_tables import write_page

ALIGNMENTS = [f"{n}(layer={k})" for k in (4, 6) for n in ("bertscore", "f_disc", "f_cont")]
NGRAMS = ["bleu", "chrf", "rouge1", "rougeL", "meteor", "nist"]
TO_ENGLISH_18 = tuple(f"{source}-en" for source in "cs de et fi ru tr zh".split())
TO_ENGLISH_19 = tuple(f"{source}-en" for source in "de fi gu kk lt ru zh".split())
# One-to-one and transport against greedy, on the same layer.
CONTESTS = [
    (f"{name}(layer={layer})", f"bertscore(layer={layer})")
    for layer in (4, 6)
    for name in ("f_disc", "f_cont")
]


@dataclass(frozen=True)
class Task:
    """One table of the page; `apart` works subset by subset, each a piece of its own."""

    name: str
    data: str
    level: Any
    method: Any
    metrics: tuple[str, ...] = (*ALIGNMENTS, *NGRAMS)
    subsets: tuple[str, ...] = ()
    apart: bool = False
    published: bool = False
    # Other statistics of the same scores: level, method and number of resamples.
    more: tuple[tuple[Level, str, int], ...] = ()
    against: str = ""  # the metric that all others are compared with, instead of CONTESTS
    few: int = 0  # number of segments of each set, at random; 0 for all
    partial: bool = False  # partial correlations between the metrics
    good: float = 0.0  # share of good outputs, for metrics as filters and re-rankers

    def recipe(self, segments: int) -> dict[str, Any]:
        """Return what a stored piece depends on; settings at their default are left out."""
        new = ("more", "against", "few", "partial", "good")
        known = {k: v for k, v in asdict(self).items() if k not in new or v}
        recipe: dict[str, Any] = json.loads(json.dumps({**known, "most_segments": segments}))
        return recipe


# Ratings of MQM: the sentinels read no content, and the blend is fitted to other ratings.
MODERN = (
    "bertscore",
    "bertscore(layer=6, idf='english')",
    "f_disc",
    "f_static",
    "moverscore",
    "struct_con",
    "chrf",
    "wmt_blend",
    "sentinel_length",
    "sentinel_random",
)
STRUCTURES = ("dep", "dep_head", "con", "con_label", "con_head")
STRUCTURE = (
    "bertscore",
    *(f"struct_{kind}" for kind in STRUCTURES),
    *(f"struct_{kind}(weight='log_length')" for kind in STRUCTURES),
    "f_disc",
    "moverscore",
    "chrf",
    "bleu",
)
# Summaries, sentence by sentence.
SENTENCES = (
    "smart1",
    "smart1(alignment=lsa)",
    "smart1(metric=bertscore)",
    "smart1(metric=f_disc)",
    "smart1(metric=f_static)",
    "chrf",
    "bertscore",
    "f_disc",
    "f_static",
)
# TER takes hundreds of times as long as the others, so only where there is one short reference.
WITH_TER = (*ALIGNMENTS, *NGRAMS, "ter")
# The blend was made from segments of WMT15 and WMT16; whether it ranks systems is asked here.
WITH_BLEND = (*ALIGNMENTS, *NGRAMS, "wmt_blend")
TASKS = [
    Task("realsumm-pooled", "summ-realsumm", "segment", "spearman"),
    Task("realsumm-per-document", "summ-realsumm", "per_item", "spearman"),
    Task("webnlg-systems", "webnlg2020-human", "system", "pearson"),
    Task("summeval-systems", "summ-summeval", "system", "kendall"),
    Task("summeval-per-document", "summ-summeval", "per_item", "kendall"),
    Task("wmt17-segments", "wmt17-da", "segment", "pearson", WITH_TER, apart=True),
    Task("wmt20-zh-en", "wmt20-da", "system", "pearson", subsets=("zh-en",)),
    Task(
        "wmt19-systems",
        "wmt19-da",
        "system",
        "pearson",
        WITH_BLEND,
        subsets=TO_ENGLISH_19,
        apart=True,
    ),
    Task(
        "wmt18-systems",
        "wmt18-da",
        "system",
        "pearson",
        WITH_BLEND,
        subsets=TO_ENGLISH_18,
        apart=True,
    ),
    Task(
        "wmt20-mqm",
        "wmt20-mqm",
        "segment",
        "pearson",
        MODERN,
        more=(
            ("per_item", "untied_accuracy", 200),
            ("per_item", "calibrated_accuracy", 100),
            ("system", "soft_accuracy", 100),
        ),
        against="bertscore",
        good=0.25,
    ),
    Task(
        "sentences-realsumm",
        "summ-realsumm",
        "segment",
        "spearman",
        SENTENCES,
        more=(("per_item", "spearman", 1000),),
        against="chrf",
    ),
    Task(
        "sentences-summeval",
        "summ-summeval",
        "per_item",
        "kendall",
        SENTENCES,
        more=(("system", "kendall", 1000),),
        against="chrf",
    ),
    Task(
        "structure-wmt20",
        "wmt20-da",
        "system",
        "pearson",
        STRUCTURE,
        subsets=("zh-en",),
        against="bertscore",
        partial=True,
    ),
    Task(
        "structure-webnlg", "webnlg2020-human", "system", "pearson", STRUCTURE, against="bertscore"
    ),
    *(
        Task(
            f"structure-{data.removesuffix('-da')}",
            data,
            "system",
            "pearson",
            STRUCTURE[:-4],
            subsets=subsets,
            apart=True,
            against="bertscore",
            few=300,
        )
        for data, subsets in (("wmt19-da", TO_ENGLISH_19), ("wmt18-da", TO_ENGLISH_18))
    ),
    # Last, since it has no metric of ours.
    Task("wmt20-official", "wmt20-da", "system", "pearson", (), published=True),
]


def pieces(task: Task) -> Iterator[tuple[str, list[em.RatedSet]]]:
    """What is computed and kept at a time, with its name."""
    sets = em.read_ratings(task.data, subsets=task.subsets)
    if task.apart:
        yield from ((f"{task.name}.{each.subset}", [each]) for each in sets)
    else:
        yield task.name, sets


def thinned(rated: em.RatedSet, segments: int) -> em.RatedSet:
    """The set with only so many of its segments that have a reference."""
    known = [i for i, references in enumerate(rated.references) if references]
    if len(known) <= segments:
        return rated
    kept = np.sort(np.random.default_rng(0).choice(known, segments, replace=False)).tolist()
    return replace(
        rated,
        segments=tuple(rated.segments[i] for i in kept),
        candidates=tuple(tuple(row[i] for i in kept) for row in rated.candidates),
        references=tuple(rated.references[i] for i in kept),
        sources=tuple(rated.sources[i] for i in kept),
        ratings=rated.ratings[:, kept],
        ranks=None,
        judgements=None,
    )


def compute(task: Task, sets: Sequence[em.RatedSet], segments: int) -> dict[str, Any]:
    """One piece: agreements, and by how much one-to-one and transport agree better."""
    official = all(not np.isnan(each.system_ratings).all() for each in sets)
    few = task.few or (segments if segments and task.level == "system" and official else 0)
    own = [thinned(each, few) if few else each for each in sets]
    # the large sets are gone through once, and their vectors would fill a disk
    found = em.correlate(
        list(task.metrics),
        own,
        task.level,
        task.method,
        published=task.published,
        cache=not task.apart,
        progress=_told(task.name),
    )
    contests = [pair for pair in CONTESTS if {*pair} <= {*found.metrics}]
    if task.against:
        contests = [(name, task.against) for name in found.metrics if name != task.against]
    rows = agreement_differences(found, contests) if contests else []
    extra: dict[str, Any] = {}
    if task.more:
        extra["more"] = [_statistic(found, *each) for each in task.more]
    if task.partial:
        extra["partial"] = _partial_correlations(found)
    if task.good:
        extra["selection"] = [asdict(entry) for entry in measure_selection(found, good=task.good)]
    return {
        **extra,
        "entries": [asdict(entry) for entry in found.entries if entry.subset != "average"],
        "groups": {each.rated.subset: each.group for each in found.scored},
        "differences": [asdict(entry) for several in rows for entry in several],
        "signatures": {name: made for name, made in found.signatures.items() if made},
        "tests": list(found.tests),
        "testing": asdict(found.testing),
        "segments": few,
    }


def _statistic(found: Any, level: Level, method: Any, resamples: int) -> dict[str, Any]:
    """Another statistic of the same scores."""
    testing = replace(found.testing, resamples=resamples)
    measured = [measure_agreement(each, level, method, testing) for each in found.scored]
    return {
        "level": level,
        "method": method,
        "resamples": resamples,
        "entries": [asdict(entry) for entries, _ in measured for entry in entries],
        "tests": sorted({test for _, test in measured if test}),
    }


def _partial_correlations(found: Any) -> dict[str, Any]:
    """Correlations between metrics that control for the ratings, over systems and over outputs."""
    return {"metrics": list(found.metrics)} | {
        what: metric_partial_correlations(
            found.scored, found.metrics, by_system=what == "systems", method="pearson"
        ).tolist()
        for what in ("systems", "outputs")
    }


def _told(name: str) -> Any:
    start = last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done == total or now - last > 30:
            last = now
            sys.stderr.write(f"{name}: {done} of {total} pairs, {now - start:.0f} s\n")

    return tell


def save(path: Path, recipe: dict[str, Any], found: dict[str, Any]) -> None:
    """Keep a piece; it appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"recipe": recipe, **_plain(found)}, indent=1) + "\n", "utf-8")
    part.replace(path)


def _plain(value: Any) -> Any:
    """Numbers with six digits, and null for NaN: more would be noise in every difference."""
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 6)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def main() -> None:
    """Compute what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--segments", type=int, default=0, metavar="N")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--page-only", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--page", type=Path, default=PAGES / "agreement.md", metavar="FILE")
    given = parser.parse_args()
    if given.list:
        sys.stdout.write("".join(f"{task.name}\n" for task in TASKS))
        return
    for task in () if given.page_only else TASKS:
        if given.only and task.name not in given.only:
            continue
        recipe = task.recipe(given.segments)
        for name, sets in pieces(task):
            path = given.results / "agreement" / f"{name}.json"
            if (
                path.exists()
                and not given.again
                and json.loads(path.read_text())["recipe"] == recipe
            ):
                continue
            save(path, recipe, compute(task, sets, given.segments))
            sys.stderr.write(f"wrote {path.name}\n")
    write_page(given.results, given.page, [task.name for task in TASKS])


if __name__ == "__main__":
    main()
