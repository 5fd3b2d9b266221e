"""Readers for ratings of summaries (REALSumm, SummEval) and data-to-text (BAGEL, SFHOT, WebNLG)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from evenmatch.data.files import read_json_records, read_tsv_records
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.records import (
    UNNAMED_SYSTEM,
    RatedSegment,
    Rating,
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
    return _read_by_criterion(folder / "data.jsonl.gz", "", subsets)


def read_data_to_text(folder: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Read BAGEL, SFHOT and SFRES: a set per corpus and criterion, with one unnamed system."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        prefix = f"{path.name.removesuffix('.jsonl.gz')}/"
        yield from _read_by_criterion(path, prefix, subsets)


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
            yield build_rated_set(
                folder.name,
                criterion,
                segments,
                ratings,
                criterion=criterion,
                humans=frozenset({_WEBNLG_HUMAN}),
                degrees=0,
            )


def _read_by_criterion(path: Path, prefix: str, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Yield a rated set for each criterion of a file; the subset is `prefix` and the criterion.

    A record has the outputs of several systems, each with its ratings, or one output as text.
    """
    segments: list[RatedSegment] = []
    ratings: dict[str, list[Rating]] = {}
    for where, record in read_json_records(str(path)):
        name, source = require_name(record, "id", where), require_text(record, "src", where)
        references = check_texts(require_field(record, "refs", where), "refs", where)
        outputs = require_field(record, "out", where)
        if isinstance(outputs, dict):
            texts = {s: require_text(output, "text", where) for s, output in outputs.items()}
            humans = {s: require_field(output, "human", where) for s, output in outputs.items()}
        else:
            texts = {UNNAMED_SYSTEM: require_text(record, "out", where)}
            humans = {UNNAMED_SYSTEM: require_field(record, "human", where)}
        segments.append(RatedSegment(name, source, references, texts))
        for system, human in humans.items():
            for criterion in human:
                rating = Rating(system, name, require_number(human, criterion, where))
                ratings.setdefault(criterion, []).append(rating)
    for criterion, several in ratings.items():
        subset = prefix + criterion
        if not subsets or subset in subsets:
            yield build_rated_set(path.parent.name, subset, segments, several, criterion=criterion)
