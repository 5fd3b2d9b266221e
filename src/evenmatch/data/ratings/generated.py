"""Readers for ratings of summaries (REALSumm, SummEval) and data-to-text (BAGEL, SFHOT, WebNLG)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenmatch.data.files import read_json_records, read_tsv_records
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.records import (
    UNNAMED_SYSTEM,
    RatedSegment,
    Rating,
    RatingRecords,
    build_rated_set,
    check_texts,
    require_field,
    require_name,
    require_number,
    require_text,
)

_WEBNLG_CRITERIA = ("Correctness", "DataCoverage", "Fluency", "Relevance", "TextStructure")

_WEBNLG_HUMAN = "WebNLG-2020-reference"


def read_summaries(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Read REALSumm or SummEval, summaries by several systems: a rated set per criterion."""
    segments: list[RatedSegment] = []
    ratings: dict[str, list[Rating]] = {}
    for where, record in read_json_records(str(folder / "data.jsonl.gz")):
        segment, found = _parse_document(record, where)
        segments.append(segment)
        for criterion, rating in found:
            ratings.setdefault(criterion, []).append(rating)
    for criterion, several in ratings.items():
        if not subsets or criterion in subsets:
            records = RatingRecords(several)
            yield build_rated_set(folder.name, criterion, segments, records, criterion=criterion)


def read_data_to_text(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Read BAGEL, SFHOT and SFRES: a set per corpus and criterion, with one unnamed system."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        segments: list[RatedSegment] = []
        ratings: dict[str, list[Rating]] = {}
        for where, record in read_json_records(str(path)):
            name, human = require_name(record, "id", where), require_field(record, "human", where)
            references = check_texts(require_field(record, "refs", where), "refs", where)
            outputs = {UNNAMED_SYSTEM: require_text(record, "out", where)}
            segments.append(
                RatedSegment(name, require_text(record, "src", where), references, outputs)
            )
            for criterion in human:
                rating = Rating(UNNAMED_SYSTEM, name, require_number(human, criterion, where))
                ratings.setdefault(criterion, []).append(rating)
        for criterion, several in ratings.items():
            subset = f"{path.name.removesuffix('.jsonl.gz')}/{criterion}"
            if not subsets or subset in subsets:
                records = RatingRecords(several)
                yield build_rated_set(folder.name, subset, segments, records, criterion=criterion)


def read_webnlg(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Read WebNLG 2020: a rated set per criterion, with ratings z-scored per rater.

    Standard deviations are over n, not n - 1, as in the organisers' published numbers. The text
    that raters saw as the human reference is unknown, so the human reference has only ratings.
    """
    segments = [
        RatedSegment(
            require_name(record, "id", where),
            "\n".join(check_texts(require_field(record, "triples", where), "triples", where)),
            check_texts(require_field(record, "refs", where), "refs", where),
            require_field(record, "out", where),
        )
        for where, record in read_json_records(str(folder / "instances.jsonl.gz"))
    ]
    rows = list(read_tsv_records(str(folder / "ratings.tsv.gz")))
    for criterion in _WEBNLG_CRITERIA:
        if not subsets or criterion in subsets:
            ratings = [_webnlg_rating(row, criterion, where) for where, row in rows]
            records = RatingRecords(ratings, humans=frozenset({_WEBNLG_HUMAN}), degrees=0)
            yield build_rated_set(folder.name, criterion, segments, records, criterion=criterion)


def _parse_document(
    record: Mapping[str, Any], where: str
) -> tuple[RatedSegment, list[tuple[str, Rating]]]:
    name, outputs = require_name(record, "id", where), require_field(record, "out", where)
    segment = RatedSegment(
        name,
        require_text(record, "src", where),
        check_texts(require_field(record, "refs", where), "refs", where),
        {system: require_text(output, "text", where) for system, output in outputs.items()},
    )
    ratings = [
        (criterion, Rating(system, name, require_number(output["human"], criterion, where)))
        for system, output in outputs.items()
        for criterion in require_field(output, "human", where)
    ]
    return segment, ratings


def _webnlg_rating(row: Mapping[str, Any], criterion: str, where: str) -> Rating:
    system, segment, rater = (
        require_name(row, field, where) for field in ("system", "id", "rater")
    )
    return Rating(system, segment, require_number(row, criterion, where), rater)
