"""Measure mqm_blend and fluent_blend on ratings that they were not fitted to.

    python -m tools.shipped_blends FOLDER

Writes results/metrics/shipped-blends.json. The projection in the package is fitted to all of MQM.
Here one is fitted without each fold of the segments of MQM, with the settings of the package's, and
scores that fold. Models and scores are kept in FOLDER, so that a run that was stopped goes on.
WMT17 was not fitted to at all.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import evenmatch as em
from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.files import read_records
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.metrics.fitted import FittedMetric
from evenmatch.registry import spec
from evenmatch.scoring.ensembles import Blend
from evenmatch.stats.bootstrap import correlation_intervals, difference_interval
from evenmatch.stats.panel import Floats, make_panel
from evenmatch.stats.partial import residuals
from evenmatch.training.loop import FitSettings
from tools.pages import RESULTS

FOLDS = 2
# Those of the command that the card names.
SETTINGS = FitSettings(epochs=2, rate=1e-3)
HOW: Mapping[str, Any] = {"kind": "projection", "segment_share": 0.25, "ranking": 2.0}
# Level, method and number of resamples.
STATISTICS: Sequence[tuple[Any, Any, int]] = (
    ("segment", "pearson", 1000),
    ("per_item", "untied_accuracy", 200),
    ("per_item", "calibrated_accuracy", 100),
)
PROJECTION = "projection"
COST_COUNT = 40  # pairs
ADVERSARIAL, ADVERSARIAL_COUNT = "wmt20_de.jsonl.gz", 40  # of each kind of error
BLENDS = "fluent_blend", "mqm_blend"
AGAINST = "wmt_blend", "bertscore(layer=6, idf='english')"
COMPARED = (BLENDS, *((blend, other) for blend in BLENDS for other in AGAINST))


def main() -> None:
    """Fit, score, measure, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    (mqm,) = (each.exclude_humans() for each in em.read_ratings("wmt20-mqm"))
    wmt17 = [each.exclude_humans() for each in em.read_ratings("wmt17-da")]
    parts = [score_parts(each, folder) for each in (*wmt17, mqm)]
    parts[-1][PROJECTION] = score_folds(mqm, folder)
    document: dict[str, Any] = {name: spec(em.build(name)) for name in BLENDS} | {"folds": FOLDS}
    document["wmt17-da"] = [
        row
        for each, own in zip(wmt17, parts, strict=False)
        for row in measure(each, add_blends(own), STATISTICS[:1])
    ]
    own = add_blends(parts[-1])
    document["wmt20-mqm"] = [*measure(mqm, own, STATISTICS), *measure_lengths(mqm, own)]
    document["milliseconds of CPU time for a pair"] = measure_costs(wmt17)
    document["menli-adversarial"] = measure_adversarial(folder / "menli.json")
    text = json.dumps(document, indent=1) + "\n"
    (RESULTS / "metrics" / "shipped-blends.json").write_text(text, "utf-8")


def all_parts(blend: Blend) -> Iterator[tuple[float, Any]]:
    """Yield weights and metrics of a blend, with those of the blends among its parts."""
    for weight, part in zip(blend.weights, blend.parts, strict=True):
        if isinstance(part, Blend):
            yield from ((weight * inner, each) for inner, each in all_parts(part))
        else:
            yield weight, part


def total_bias(blend: Blend) -> float:
    """The constant of a blend, with those of the blends among its parts."""
    parts = zip(blend.weights, blend.parts, strict=True)
    return blend.bias + sum(w * total_bias(part) for w, part in parts if isinstance(part, Blend))


def part_name(part: Any) -> str:
    """Return the name of a part in the results."""
    is_projection = isinstance(part, FittedMetric) and part.adapter == "mqm"
    return (
        PROJECTION
        if is_projection
        else next((n for n in AGAINST if em.build(n) == part), spec(part))
    )


def add_blends(scores: dict[str, Floats]) -> dict[str, Floats]:
    """Return the scores of the blends, then those of their parts."""
    found: dict[str, Floats] = {}
    for name in BLENDS:
        blend: Any = em.build(name)
        total = sum(weight * scores[part_name(part)] for weight, part in all_parts(blend))
        found[name] = np.asarray(total_bias(blend) + total)
    return found | scores


def score_parts(rated: RatedSet, folder: Path) -> dict[str, Floats]:
    """Score the rated outputs of a set with the parts of the blends."""
    metrics = {part_name(part): part for _, part in all_parts(em.build(BLENDS[0]))}
    cells = rated.cells(rated=True)
    path = folder / f"{rated.name}.{rated.subset}.json"
    known: dict[str, list[float]] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    pairs = rated.pairs(cells)
    given = [pair.candidate for pair in pairs], [pair.references for pair in pairs]
    for metric in metrics.values():
        if spec(metric) not in known:
            known[spec(metric)] = em.score(*given, metric).values.tolist()
            path.write_text(json.dumps(known), "utf-8")
    return {name: rated.to_matrix(known[spec(m)], cells) for name, m in metrics.items()}


def score_folds(mqm: RatedSet, folder: Path) -> Floats:
    """Score each fold of the segments with a projection that was fitted without it."""
    wmt = em.read_ratings("wmt1516-daseg")
    names = list(dict.fromkeys(mqm.segments[i] for i in mqm.cells(rated=True)[1]))
    numbers = np.random.default_rng(0).permutation(len(names)) % FOLDS
    fold_of = dict(zip(names, numbers.tolist(), strict=True))
    folds = np.array([fold_of.get(name, -1) for name in mqm.segments])
    found = np.full(mqm.ratings.shape, np.nan)
    for fold in range(FOLDS):
        inside, outside = (
            dataclasses.replace(mqm, ratings=np.where(mask[None], mqm.ratings, np.nan))
            for mask in (folds == fold, folds != fold)
        )
        own = folder / f"fold-{fold}"
        if not (own / "metric.json").exists():
            em.fit([*wmt, outside], own, test=[inside], settings=SETTINGS, **HOW)
        cells, pairs = (cells := inside.cells(rated=True)), inside.pairs(cells)
        given = [pair.candidate for pair in pairs], [pair.references for pair in pairs]
        found[cells] = em.score(*given, str(own)).values
    return found


def measure(
    rated: RatedSet, scores: Mapping[str, Floats], statistics: Sequence[tuple[Any, Any, int]]
) -> Iterator[dict[str, Any]]:
    """Yield the agreement of each metric, and how much higher that of the blend is."""
    panel, names = make_panel(np.stack(list(scores.values())), rated.ratings), list(scores)
    for level, method, resamples in statistics:
        how: dict[str, Any] = {"level": level, "method": method, "resamples": resamples}
        found = dict(zip(names, correlation_intervals(panel, **how), strict=True))
        for pair in COMPARED:
            places = (names.index(name) for name in pair)
            found[" - ".join(pair)] = difference_interval(panel, *places, **how)
        for name, interval in found.items():
            numbers = {k: round(v, 6) for k, v in dataclasses.asdict(interval).items()}
            yield {"subset": rated.subset, "metric": name, **how, **numbers}


def measure_lengths(rated: RatedSet, scores: Mapping[str, Floats]) -> Iterator[dict[str, Any]]:
    """Yield what the agreement of each metric owes to lengths; it has no intervals."""
    systems, segments = rated.cells(rated=True)
    lengths = np.array([len(rated.references[i][0]) for i in segments], dtype=float)
    controls = np.stack([lengths, np.log(lengths)])
    ratings = rated.ratings[systems, segments]
    for name, matrix in scores.items():
        values = matrix[systems, segments]
        left = residuals(np.stack([values, ratings]), controls)
        rows = {
            "pearson, length of the reference and its logarithm controlled": np.corrcoef(
                left[0], left[1]
            )[0, 1],
            "pearson with the length of the reference": np.corrcoef(values, lengths)[0, 1],
            "untied accuracy over all pairs of outputs of a segment": pooled_accuracy(
                matrix, rated.ratings
            ),
        }
        for method, value in rows.items():
            yield {"metric": name, "method": method, "value": round(float(value), 6)}


def measure_costs(sets: Sequence[RatedSet]) -> dict[str, float]:
    """CPU time for a pair on one thread, over pairs of all sets; the models are loaded before."""
    pairs = [pair for each in sets for pair in each.pairs(each.cells(rated=True))]
    pairs = pairs[:: len(pairs) // COST_COUNT]
    given = [pair.candidate for pair in pairs], [pair.references for pair in pairs]
    found = {}
    for name in (*BLENDS, "wmt_blend", "bertscore"):
        em.score(given[0][:2], given[1][:2], name, threads=1)
        start = time.process_time()
        em.score(*given, name, threads=1)
        found[name] = round(1000 * (time.process_time() - start) / len(pairs), 1)
    return found


def measure_adversarial(path: Path) -> dict[str, dict[str, float]]:
    """Share of paraphrases that score above a text with an error, by kind of error."""
    records = [r for _, r in read_records(str(find_data_set("menli-adversarial") / ADVERSARIAL))]
    chosen: dict[str, list[Any]] = {}
    for record in records:
        chosen.setdefault(record["error"], []).append(record)
    rows = [record for some in chosen.values() for record in some[:ADVERSARIAL_COUNT]]
    texts = [row[which] for row in rows for which in ("hyp_para", "hyp_adv_based")]
    known: dict[str, list[float]] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for name in (*BLENDS, *AGAINST):
        if name not in known:
            references = [row["ref"] for row in rows for _ in range(2)]
            known[name] = em.score(texts, references, name).values.tolist()
            path.write_text(json.dumps(known), "utf-8")
    found: dict[str, dict[str, float]] = {}
    for name, values in known.items():
        both = np.array(values).reshape(-1, 2)
        right = both[:, 0] > both[:, 1]
        kinds = np.array([row["error"] for row in rows])
        shares = {kind: float(right[kinds == kind].mean()) for kind in chosen}
        found[name] = {"all": round(float(right.mean()), 4), **shares}
    return found


def pooled_accuracy(scores: Floats, ratings: Floats) -> float:
    """Share of the pairs of outputs of a segment with unequal ratings that are ordered alike."""
    differences = np.stack([each[:, None] - each[None] for each in (scores, ratings)])
    known = np.isfinite(differences).all(0) & (differences[1] > 0)
    return float((differences[0][known] > 0).mean())


if __name__ == "__main__":
    main()
