"""Readers for summaries and data-to-text: REALSumm, SummEval, BAGEL and its kin, WebNLG 2020."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenmatch.data.ratings import RatedSet
from evenmatch.data.ratings_assembling import UNNAMED, Judged, Rating, Segment, assemble
from evenmatch.data.ratings_cells import name_of, number_of, text_of, texts_of, value_of
from evenmatch.data.tabular import json_records, tsv_records

_WEBNLG = ("Correctness", "DataCoverage", "Fluency", "Relevance", "TextStructure")
_WEBNLG_HUMAN = "WebNLG-2020-reference"


def read_summaries(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Documents with summaries by several systems: a set per criterion."""
    segments: list[Segment] = []
    ratings: dict[str, list[Rating]] = {}
    for where, record in json_records(str(folder / "data.jsonl.gz")):
        segment, found = _document(record, where)
        segments.append(segment)
        for criterion, rating in found:
            ratings.setdefault(criterion, []).append(rating)
    for criterion, several in ratings.items():
        if not subsets or criterion in subsets:
            judged = Judged(several)
            yield assemble(folder.name, criterion, segments, judged, criterion=criterion)


def _document(record: Mapping[str, Any], where: str) -> tuple[Segment, list[tuple[str, Rating]]]:
    name, outputs = name_of(record, "id", where), value_of(record, "out", where)
    segment = Segment(
        name,
        text_of(record, "src", where),
        texts_of(value_of(record, "refs", where), "refs", where),
        {system: text_of(output, "text", where) for system, output in outputs.items()},
    )
    ratings = [
        (criterion, Rating(system, name, number_of(output["human"], criterion, where)))
        for system, output in outputs.items()
        for criterion in value_of(output, "human", where)
    ]
    return segment, ratings


def read_data_to_text(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """BAGEL, SFHOT and SFRES: a set for each and criterion, of one system as none is named."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        segments: list[Segment] = []
        ratings: dict[str, list[Rating]] = {}
        for where, record in json_records(str(path)):
            name, human = name_of(record, "id", where), value_of(record, "human", where)
            references = texts_of(value_of(record, "refs", where), "refs", where)
            outputs = {UNNAMED: text_of(record, "out", where)}
            segments.append(Segment(name, text_of(record, "src", where), references, outputs))
            for criterion in human:
                rating = Rating(UNNAMED, name, number_of(human, criterion, where))
                ratings.setdefault(criterion, []).append(rating)
        for criterion, several in ratings.items():
            subset = f"{path.name.removesuffix('.jsonl.gz')}/{criterion}"
            if not subsets or subset in subsets:
                judged = Judged(several)
                yield assemble(folder.name, subset, segments, judged, criterion=criterion)


def read_webnlg(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """WebNLG 2020: a set per criterion, ratings standardised per rater.

    The deviation is over n and not n - 1, as in the numbers that the organisers published.
    The text that was shown for the human reference is not known, so it has ratings only.
    """
    segments = [
        Segment(
            name_of(record, "id", where),
            "\n".join(texts_of(value_of(record, "triples", where), "triples", where)),
            texts_of(value_of(record, "refs", where), "refs", where),
            value_of(record, "out", where),
        )
        for where, record in json_records(str(folder / "instances.jsonl.gz"))
    ]
    rows = list(tsv_records(str(folder / "ratings.tsv.gz")))
    for criterion in _WEBNLG:
        if not subsets or criterion in subsets:
            ratings = [_webnlg_rating(row, criterion, where) for where, row in rows]
            judged = Judged(ratings, humans=frozenset({_WEBNLG_HUMAN}), degrees=0)
            yield assemble(folder.name, criterion, segments, judged, criterion=criterion)


def _webnlg_rating(row: Mapping[str, Any], criterion: str, where: str) -> Rating:
    system, segment, rater = (name_of(row, field, where) for field in ("system", "id", "rater"))
    return Rating(system, segment, number_of(row, criterion, where), rater)
