"""Readers of the public sets of ratings, and of folders in WMT's layout.

WMT: a folder has `system_scores.tsv` and, for each language pair, some of `PAIR.jsonl.gz` (texts),
`PAIR.seg.tsv.gz` (ratings of outputs) and `PAIR.rr.tsv.gz` (relative ranks). The other readers are
for summaries (REALSumm, SummEval) and data-to-text (BAGEL, SFHOT, SFRES, WebNLG).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenmatch.data.files import LocatedRecord, read_json_records, read_tsv_records
from evenmatch.data.ratings.rated_set import (
    UNNAMED_SYSTEM,
    RatedSegment,
    RatedSet,
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
_WEBNLG_CRITERIA = ("Correctness", "DataCoverage", "Fluency", "Relevance", "TextStructure")
_WEBNLG_HUMAN = "WebNLG-2020-reference"


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
