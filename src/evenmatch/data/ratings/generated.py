"""Readers for ratings of summaries (REALSumm, SummEval) and data-to-text (BAGEL, SFHOT, WebNLG)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

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


_ParsedRecord: TypeAlias = tuple[RatedSegment, list[tuple[str, Rating]]]  # ratings by criterion


def read_summaries(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Read REALSumm or SummEval, summaries by several systems: a rated set per criterion."""
    return _read_by_criterion(folder.name, folder / "data.jsonl.gz", "", _parse_outputs, subsets)


def read_data_to_text(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Read BAGEL, SFHOT and SFRES: a set per corpus and criterion, with one unnamed system."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        prefix = f"{path.name.removesuffix('.jsonl.gz')}/"
        yield from _read_by_criterion(folder.name, path, prefix, _parse_output, subsets)


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
            ratings = [
                Rating(
                    require_name(row, "system", where),
                    require_name(row, "id", where),
                    require_number(row, criterion, where),
                    require_name(row, "rater", where),
                )
                for where, row in rows
            ]
            records = RatingRecords(ratings, humans=frozenset({_WEBNLG_HUMAN}), degrees=0)
            yield build_rated_set(folder.name, criterion, segments, records, criterion=criterion)


def _read_by_criterion(
    name: str,
    path: Path,
    prefix: str,
    parse: Callable[[Mapping[str, Any], str], _ParsedRecord],
    subsets: Sequence[str],
) -> Iterator[RatedSet]:
    """Yield a rated set for each criterion of a file; the subset is `prefix` and the criterion."""
    segments: list[RatedSegment] = []
    ratings: dict[str, list[Rating]] = {}
    for where, record in read_json_records(str(path)):
        segment, found = parse(record, where)
        segments.append(segment)
        for criterion, rating in found:
            ratings.setdefault(criterion, []).append(rating)
    for criterion, several in ratings.items():
        subset = prefix + criterion
        if not subsets or subset in subsets:
            records = RatingRecords(several)
            yield build_rated_set(name, subset, segments, records, criterion=criterion)


def _parse_outputs(record: Mapping[str, Any], where: str) -> _ParsedRecord:
    """Parse a record with the outputs of several systems, each with its ratings."""
    outputs = require_field(record, "out", where)
    texts = {system: require_text(output, "text", where) for system, output in outputs.items()}
    ratings = {system: require_field(output, "human", where) for system, output in outputs.items()}
    return _parse_record(record, texts, ratings, where)


def _parse_output(record: Mapping[str, Any], where: str) -> _ParsedRecord:
    """Parse a record with one output and its ratings."""
    texts = {UNNAMED_SYSTEM: require_text(record, "out", where)}
    return _parse_record(
        record, texts, {UNNAMED_SYSTEM: require_field(record, "human", where)}, where
    )


def _parse_record(
    record: Mapping[str, Any],
    texts: Mapping[str, str],
    ratings: Mapping[str, Mapping[str, Any]],
    where: str,
) -> _ParsedRecord:
    name, source = require_name(record, "id", where), require_text(record, "src", where)
    references = check_texts(require_field(record, "refs", where), "refs", where)
    found = [
        (criterion, Rating(system, name, require_number(human, criterion, where)))
        for system, human in ratings.items()
        for criterion in human
    ]
    return RatedSegment(name, source, references, texts), found
