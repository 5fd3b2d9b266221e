"""Readers for the WMT sets, and for folders laid out like them.

A folder has `system_scores.tsv` and, for each language pair, some of `PAIR.jsonl.gz` (texts),
`PAIR.seg.tsv.gz` (ratings of outputs) and `PAIR.rr.tsv.gz` (relative ranks).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenmatch.data.ratings import RatedSet
from evenmatch.data.ratings_assembling import UNNAMED, Judged, Rank, Rating, Segment, assemble
from evenmatch.data.ratings_cells import name_of, number_of, text_of, texts_of, value_of
from evenmatch.data.tabular import Placed, json_records, tsv_records
from evenmatch.errors import DataError, InputError

SYSTEM_SCORES = "system_scores.tsv"
_METRIC_SCORES = "metric_system_scores.tsv.gz"
_TEST_SET = "newstest2020"
_HUMAN_NAMES = ("Human-", "ref-")


def read_wmt(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """A set per language pair, in the order of the folder's system scores."""
    rows: dict[str, list[Placed]] = {}
    for where, record in tsv_records(str(folder / SYSTEM_SCORES)):
        rows.setdefault(name_of(record, "lp", where), []).append((where, record))
    if not rows:
        raise DataError(f"{folder / SYSTEM_SCORES} names no system; expected lp, system, z")
    published = _published(folder / _METRIC_SCORES)
    for pair in rows:
        if not subsets or pair in subsets:
            yield _read_pair(folder, pair, rows[pair], published.get(pair, {}))


def _read_pair(
    folder: Path, pair: str, rows: Sequence[Placed], published: Mapping[str, Mapping[str, float]]
) -> RatedSet:
    texts = {segment.name: segment for segment in _segments(folder / f"{pair}.jsonl.gz")}
    ratings = list(_ratings(folder / f"{pair}.seg.tsv.gz", texts))
    for rating in ratings:  # where there are no texts, ratings alone say which segments there are
        texts.setdefault(rating.segment, Segment(rating.segment))
    judged = Judged(
        ratings=ratings,
        systems={name_of(row, "system", where): number_of(row, "z", where) for where, row in rows},
        ranks=list(_ranks(folder / f"{pair}.rr.tsv.gz", texts)),
        humans=_humans(rows, ratings),
        outliers=frozenset(row["system"] for _, row in rows if row.get("outlier") == "1"),
        published=published,
    )
    segments = list(texts.values())
    return assemble(folder.name, pair, segments, judged, criterion="direct assessment")


def _humans(rows: Sequence[Placed], ratings: Sequence[Rating]) -> frozenset[str]:
    """The systems that are people, by their column or by the names WMT gives them.

    Some human translations have ratings of segments and no system score, so no row of their own.
    """
    flagged = {row["system"] for _, row in rows if row.get("human") == "1"}
    return frozenset(flagged | {r.system for r in ratings if r.system.startswith(_HUMAN_NAMES)})


def _segments(path: Path) -> Iterator[Segment]:
    found = json_records(str(path)) if path.exists() else ()
    for where, record in found:
        outputs = value_of(record, "out", where)
        if not isinstance(outputs, dict):
            raise InputError(f"the out of {where} must be an object of systems and their texts")
        reference = value_of(record, "ref", where)
        yield Segment(
            name=name_of(record, "sid", where),
            source=record.get("src"),
            references=() if reference is None else texts_of(reference, "ref", where),
            outputs={system: text_of(outputs, system, where) for system in outputs},
        )


def _ratings(path: Path, texts: Mapping[str, Segment]) -> Iterator[Rating]:
    found = tsv_records(str(path)) if path.exists() else ()
    for where, record in found:
        segment = name_of(record, "sid", where)
        if texts and segment not in texts:
            raise DataError(f"{where} rates segment {segment}, which is not among the texts")
        known = texts[segment].outputs if texts else {}
        system = _one_of(name_of(record, "system", where), known)
        yield Rating(system, segment, number_of(record, "z", where))


def _one_of(system: str, outputs: Mapping[str, Any]) -> str:
    """The system of a rating; of `A+B`, who gave the same output, the first that we have.

    So one judgement stays one point.

    >>> _one_of("A+B", {"B": "text"})
    'B'
    """
    if system in outputs or "+" not in system:
        return system
    names = system.split("+")
    return next((name for name in names if name in outputs), names[0])


def _ranks(path: Path, texts: Mapping[str, Segment]) -> Iterator[Rank]:
    found = tsv_records(str(path)) if path.exists() else ()
    for where, record in found:
        names = [name_of(record, field, where) for field in ("sid", "better", "worse")]
        segment = texts.get(names[0])
        if segment is None or not {*names[1:]} <= segment.outputs.keys():
            raise DataError(f"{where} ranks outputs that are not among the texts")
        yield Rank(*names)


def _published(path: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Other people's scores by pair, metric and system.

    Only those of the news test set against its standard reference, as the organisers report.
    """
    found = tsv_records(str(path)) if path.exists() else ()
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for where, record in found:
        if record["testset"] == record["ref"] == _TEST_SET:
            metric = scores.setdefault(record["lp"], {}).setdefault(record["metric"], {})
            metric[record["system"]] = number_of(record, "score", where)
    return scores


def read_daseg(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """WMT15 and WMT16: a set per year and pair, of one system as none is named."""
    for path in sorted(folder.glob("wmt*.jsonl.gz")):
        subset = path.name.removesuffix(".jsonl.gz")
        if not subsets or subset in subsets:
            yield _read_daseg(path, folder.name, subset)


def _read_daseg(path: Path, name: str, subset: str) -> RatedSet:
    segments, ratings = [], []
    for number, (where, record) in enumerate(json_records(str(path)), 1):
        references = texts_of(value_of(record, "ref", where), "ref", where)
        outputs = {UNNAMED: text_of(record, "out", where)}
        segments.append(Segment(str(number), record.get("src"), references, outputs))
        ratings.append(Rating(UNNAMED, str(number), number_of(record, "z", where)))
    return assemble(name, subset, segments, Judged(ratings), criterion="direct assessment")
