"""Readers for the WMT sets, and for folders in the same layout.

A folder has `system_scores.tsv` and, for each language pair, some of `PAIR.jsonl.gz` (texts),
`PAIR.seg.tsv.gz` (ratings of outputs) and `PAIR.rr.tsv.gz` (relative ranks).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenmatch.data.files import LocatedRecord, read_json_records, read_tsv_records
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.records import (
    UNNAMED_SYSTEM,
    RatedSegment,
    Rating,
    RelativeRank,
    build_rated_set,
    check_texts,
    require_field,
    require_name,
    require_number,
    require_text,
)
from evenmatch.errors import DataError, InputError

SYSTEM_SCORES_FILE = "system_scores.tsv"

_METRIC_SCORES_FILE = "metric_system_scores.tsv.gz"

_TEST_SET = "newstest2020"

_CRITERION = "direct assessment"

_HUMAN_NAMES = ("Human-", "ref-")  # how the names that WMT gives to human references begin


def read_wmt(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Yield a rated set for each language pair, in the order of the system scores file."""
    rows: dict[str, list[LocatedRecord]] = {}
    for where, record in read_tsv_records(str(folder / SYSTEM_SCORES_FILE)):
        rows.setdefault(require_name(record, "lp", where), []).append((where, record))
    if not rows:
        raise DataError(f"{folder / SYSTEM_SCORES_FILE} has no rows; expected lp, system, z")
    published = _read_metric_scores(folder / _METRIC_SCORES_FILE)
    for pair in rows:
        if not subsets or pair in subsets:
            yield _read_language_pair(folder, pair, rows[pair], published.get(pair, {}))


def read_mqm(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Read MQM ratings, `PAIR.tsv.gz` with sid, system and mqm: a rated set per language pair.

    The texts are in `PAIR.jsonl.gz`, in the folder of the same year's direct assessments.
    """
    for path in sorted(folder.glob("*.tsv.gz")):
        pair = path.name.removesuffix(".tsv.gz")
        if subsets and pair not in subsets:
            continue
        texts_path = folder.parent / f"{folder.name.removesuffix('-mqm')}-da" / f"{pair}.jsonl.gz"
        if not texts_path.is_file():
            raise DataError(f"the texts of {path} are not in {texts_path}; get that data set too")
        texts = {segment.name: segment for segment in _read_segments(texts_path)}
        ratings = list(_read_ratings(path, texts, "mqm"))
        rated = {rating.system for rating in ratings}
        segments = [
            replace(s, outputs={name: o for name, o in s.outputs.items() if name in rated})
            for s in texts.values()
        ]
        humans = frozenset(name for name in rated if name.startswith(_HUMAN_NAMES))
        yield build_rated_set(folder.name, pair, segments, ratings, criterion="MQM", humans=humans)


def read_daseg(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Read WMT15 and WMT16: a rated set per year and language pair, with one unnamed system."""
    for path in sorted(folder.glob("wmt*.jsonl.gz")):
        subset = path.name.removesuffix(".jsonl.gz")
        if subsets and subset not in subsets:
            continue
        segments, ratings = [], []
        for number, (where, record) in enumerate(read_json_records(str(path)), 1):
            references = check_texts(require_field(record, "ref", where), "ref", where)
            outputs = {UNNAMED_SYSTEM: require_text(record, "out", where)}
            segments.append(RatedSegment(str(number), record.get("src"), references, outputs))
            ratings.append(Rating(UNNAMED_SYSTEM, str(number), require_number(record, "z", where)))
        yield build_rated_set(path.parent.name, subset, segments, ratings, criterion=_CRITERION)


def _read_language_pair(
    folder: Path,
    pair: str,
    rows: Sequence[LocatedRecord],
    published: Mapping[str, Mapping[str, float]],
) -> RatedSet:
    texts = {segment.name: segment for segment in _read_segments(folder / f"{pair}.jsonl.gz")}
    ratings = list(_read_ratings(folder / f"{pair}.seg.tsv.gz", texts))
    for rating in ratings:  # without texts, the segments are those that have ratings
        texts.setdefault(rating.segment, RatedSegment(rating.segment))
    # Some human translations have segment ratings but no system score, so no row among `rows`.
    humans = {row["system"] for _, row in rows if row.get("human") == "1"}
    humans |= {r.system for r in ratings if r.system.startswith(_HUMAN_NAMES)}
    return build_rated_set(
        folder.name,
        pair,
        list(texts.values()),
        ratings,
        criterion=_CRITERION,
        official={
            require_name(row, "system", where): require_number(row, "z", where)
            for where, row in rows
        },
        ranks=list(_read_ranks(folder / f"{pair}.rr.tsv.gz", texts)),
        humans=frozenset(humans),
        outliers=frozenset(row["system"] for _, row in rows if row.get("outlier") == "1"),
        published=published,
    )


def _read_segments(path: Path) -> Iterator[RatedSegment]:
    records = read_json_records(str(path)) if path.exists() else ()
    for where, record in records:
        outputs = require_field(record, "out", where)
        if not isinstance(outputs, dict):
            raise InputError(f"the out of {where} must be an object of texts by system")
        reference = require_field(record, "ref", where)
        yield RatedSegment(
            name=require_name(record, "sid", where),
            source=record.get("src"),
            references=() if reference is None else check_texts(reference, "ref", where),
            outputs={system: require_text(outputs, system, where) for system in outputs},
        )


def _read_ratings(
    path: Path, texts: Mapping[str, RatedSegment], column: str = "z"
) -> Iterator[Rating]:
    records = read_tsv_records(str(path)) if path.exists() else ()
    for where, record in records:
        segment = require_name(record, "sid", where)
        if texts and segment not in texts:
            raise DataError(f"{where} rates segment {segment}, which is not among the texts")
        known = texts[segment].outputs if texts else {}
        system = _match_system(require_name(record, "system", where), known)
        yield Rating(system, segment, require_number(record, column, where))


def _match_system(system: str, outputs: Mapping[str, Any]) -> str:
    """Return the system of a rating; for `A+B`, two systems with the same output, the first known.

    One judgement thus remains one data point.

    >>> _match_system("A+B", {"B": "text"})
    'B'
    """
    if system in outputs or "+" not in system:
        return system
    names = system.split("+")
    return next((name for name in names if name in outputs), names[0])


def _read_ranks(path: Path, texts: Mapping[str, RatedSegment]) -> Iterator[RelativeRank]:
    records = read_tsv_records(str(path)) if path.exists() else ()
    for where, record in records:
        names = ("sid", "better", "worse")
        segment, better, worse = (require_name(record, name, where) for name in names)
        if segment not in texts or not {better, worse} <= texts[segment].outputs.keys():
            raise DataError(f"{where} ranks outputs that are not among the texts")
        yield segment, better, worse


def _read_metric_scores(path: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Read published metric scores by language pair, metric and system.

    Only scores of the news test set with its standard reference are read, as the organisers report.
    """
    records = read_tsv_records(str(path)) if path.exists() else ()
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for where, record in records:
        if record["testset"] == record["ref"] == _TEST_SET:
            metric = scores.setdefault(record["lp"], {}).setdefault(record["metric"], {})
            metric[record["system"]] = require_number(record, "score", where)
    return scores
