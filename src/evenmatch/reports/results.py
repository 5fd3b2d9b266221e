"""Reports of results: pick the page for a result and write it.

`write_report` takes a result object (the return value of `score`, `correlate`, `audit`, `compare`,
`score_keyphrases` or `tune`, or a `StudyReport`) or its JSON document, which is recognised by its
fields (`RESULT_KINDS`). The pages themselves are in the modules named `*_page`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.errors import InputError
from evenmatch.evaluation.agreement_result import Agreement, AgreementEntry, AgreementTestSettings
from evenmatch.evaluation.compare import Comparison, Gap, SystemScore
from evenmatch.evaluation.keyphrase_table import (
    COLUMNS,
    KeyphraseGap,
    KeyphraseRow,
    KeyphraseTable,
)
from evenmatch.fairness.audit import Audit, WorstPair
from evenmatch.fairness.bias import AuditTestSettings, Bias
from evenmatch.reports.agreement_page import agreement_page
from evenmatch.reports.audit_page import audit_page
from evenmatch.reports.page import check_page_path, write_page
from evenmatch.reports.score_page import metric_document, score_page
from evenmatch.reports.study_page import (
    StudyReport,
    lisa_gradient_page,
    lisa_page,
    lisa_quality_page,
    study_page,
    tune_page,
)
from evenmatch.reports.system_pages import comparison_page, keyphrase_page
from evenmatch.scoring.streaming import RunningMean
from evenmatch.stats.bootstrap import Interval
from evenmatch.stats.paired import Resampling
from evenmatch.training.generator.tune import TuneResult
from evenmatch.types import Pair, Scores

Result: TypeAlias = (
    Scores
    | Mapping[str, Scores]
    | Agreement
    | Audit
    | Comparison
    | KeyphraseTable
    | StudyReport
    | TuneResult
    | Mapping[str, Any]
)


def write_report(
    result: Result,
    path: str | Path,
    *,
    pairs: Sequence[Pair] | None = None,
    examples: int = 3,
) -> Path:
    """Write a result as one self-contained HTML page and return its path.

    `result` is what `score`, `correlate`, `audit`, `compare`, `score_keyphrases` or `tune` returns,
    a study report, or the JSON document that a command prints with --json. With scores, `pairs`
    are the texts that were scored; the page then shows `examples` of the worst and of the best,
    with their alignments.
    """
    target = check_page_path(path)
    return write_page(result_page(result, pairs=pairs, examples=examples), target)


def result_page(result: Result, *, pairs: Sequence[Pair] | None = None, examples: int = 3) -> str:
    """Return the HTML page that `write_report` writes."""
    if isinstance(result, (Agreement, Audit, Comparison, KeyphraseTable)):
        if pairs is not None:
            raise _no_texts_error(type(result).__name__)
        return _object_page(result)
    document = _as_document(result)
    kind = _find_kind(document)
    if pairs is not None and kind is not SCORE_RESULT:
        raise _no_texts_error(kind.command)
    try:
        if kind is SCORE_RESULT:
            return score_page(document, pairs=pairs, examples=examples)
        return kind.page(document)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"this looks like a result of {kind.command} but cannot be read ({error!r}); create it "
            f"again with: evenmatch {kind.command} … --json"
        ) from None


def read_result(path: str | Path) -> dict[str, Any]:
    """Read the JSON document of a result."""
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path} is not JSON; give the output of a command with --json") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON object; give the output of a command with --json")
    return found


def _object_page(result: Agreement | Audit | Comparison | KeyphraseTable, command: str = "") -> str:
    if isinstance(result, Agreement):
        return agreement_page(result, command=command)
    if isinstance(result, Audit):
        return audit_page(result, command=command)
    if isinstance(result, Comparison):
        return comparison_page(result, command=command)
    return keyphrase_page(result, command=command)


def _as_document(result: object) -> Mapping[str, Any]:
    """Return the JSON document of scores, a study or a tuning run; documents stay as they are."""
    if isinstance(result, Scores):
        return _score_document({_recipe(result): result})
    if isinstance(result, (StudyReport, TuneResult)):
        return result.document
    if isinstance(result, Mapping):
        scores = {name: each for name, each in result.items() if isinstance(each, Scores)}
        return _score_document(scores) if scores else result
    raise InputError(
        f"cannot write a report of {type(result).__name__}; give what score, correlate, audit, "
        "compare, score_keyphrases or tune returned, a study report, or the JSON of one of them"
    )


def _score_document(scores: Mapping[str, Scores]) -> dict[str, Any]:
    metrics = {
        name: metric_document(
            each.signature, RunningMean().add(each).mean, each.corpus, each.segments
        )
        for name, each in scores.items()
    }
    return {"metrics": metrics}


def _recipe(scores: Scores) -> str:
    """Return the part of a signature that rebuilds the metric."""
    return scores.signature.split(" · ")[0]


def _no_texts_error(kind: str) -> InputError:
    return InputError(f"texts can be given with scores only, but this is a result of {kind}")


def agreement_page_from_json(document: Mapping[str, Any]) -> str:
    """Return the page of an agreement document, which has no scores of single outputs."""
    clusters = {
        (each["data"], each["subset"], each["metric"]): each["cluster"]
        for each in document.get("clusters", ())
    }
    entries = [
        AgreementEntry(
            **_nulls_to_nan(row), cluster=clusters.get((row["data"], row["subset"], row["metric"]))
        )
        for row in document["rows"]
    ]
    agreement = Agreement(
        tuple(entries),
        (),
        AgreementTestSettings(**document["testing"]),
        document.get("outliers", "keep"),
        tuple(document.get("tests", ())),
    )
    signatures = {k: v for k, v in document.get("signatures", {}).items() if v}
    return agreement_page(agreement, signatures=signatures, command=document.get("command", ""))


def _nulls_to_nan(row: Mapping[str, Any]) -> dict[str, Any]:
    """Replace None by NaN, which JSON cannot store."""
    return {name: math.nan if value is None else value for name, value in row.items()}


def audit_page_from_json(document: Mapping[str, Any]) -> str:
    """Return the page of an audit document; its worst pairs are aligned again if possible."""
    audit = Audit(
        document["data"],
        tuple(Bias(**row) for row in document["rows"]),
        tuple(WorstPair(**case) for case in document.get("worst", ())),
        document["signatures"],
        AuditTestSettings(**document["draws"]),
    )
    return _object_page(audit, document.get("command", ""))


def comparison_page_from_json(document: Mapping[str, Any]) -> str:
    """Return the page of a comparison document."""
    scores = tuple(SystemScore(**row) for row in document["systems"])
    names = {field.name for field in fields(Gap)}
    rows = [{k: v for k, v in row.items() if k in names} for row in document["rows"]]
    metrics = dict.fromkeys(score.metric for score in scores)
    comparison = Comparison(
        tuple(dict.fromkeys(score.system for score in scores)),
        scores,
        tuple(Gap(**row) for row in rows),
        dict.fromkeys(metrics, True) | document.get("higher_is_better", {}),
        document["signatures"],
        Resampling(**document["testing"]),
    )
    return _object_page(comparison, document.get("command", ""))


def keyphrase_page_from_json(document: Mapping[str, Any]) -> str:
    """Return the page of a document with keyphrase scores."""
    table = KeyphraseTable(
        tuple(map(_keyphrase_row, document["rows"])),
        tuple(KeyphraseGap(**gap) for gap in document.get("tests", ())),
        document.get("flagged", {}),
        tuple(document.get("trouble", ())),
        document["signatures"],
        Resampling(**document["resampling"]),
    )
    return _object_page(table, document.get("command", ""))


def _keyphrase_row(row: Mapping[str, Any]) -> KeyphraseRow:
    cells = {column: Interval(row[column], *row["intervals"][column]) for column in COLUMNS}
    return KeyphraseRow(row["data"], row["prediction"], row["metric"], cells, row["documents"])


@dataclass(frozen=True, slots=True)
class ResultKind:
    """A kind of JSON document: the command that prints it, the fields that identify it, its page.

    `row_fields` are fields of the first of its `rows`.
    """

    command: str
    fields: frozenset[str]
    row_fields: frozenset[str]
    page: Callable[[Mapping[str, Any]], str]

    def matches(self, document: Mapping[str, Any]) -> bool:
        """Whether a document has all these fields."""
        rows = document.get("rows")
        first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
        return self.fields <= set(document) and self.row_fields <= set(first)


def _result_kind(
    command: str, fields: str, page: Callable[[Mapping[str, Any]], str], row: str = ""
) -> ResultKind:
    return ResultKind(command, frozenset(fields.split()), frozenset(row.split()), page)


SCORE_RESULT = _result_kind("score", "metrics", score_page)


RESULT_KINDS = (
    SCORE_RESULT,
    _result_kind(
        "compare",
        "rows systems testing",
        comparison_page_from_json,
        "metric baseline system difference",
    ),
    _result_kind(
        "meta", "rows testing", agreement_page_from_json, "data subset metric level method value"
    ),
    _result_kind("audit", "rows draws", audit_page_from_json, "attribute metric bias stereotype"),
    _result_kind(
        "keyphrases",
        "rows resampling",
        keyphrase_page_from_json,
        "prediction metric present absent",
    ),
    _result_kind("tune", "looks steps best", tune_page),
    _result_kind("study lisa", "rows claims", lisa_page, "encoder algorithm effect"),
    _result_kind("study lisa-quality", "qualities speeds", lisa_quality_page),
    _result_kind("study lisa-gradient", "curves", lisa_gradient_page),
    _result_kind("study", "title findings tables", study_page),
)


def _find_kind(document: Mapping[str, Any]) -> ResultKind:
    if "candidate_units" in document:
        raise InputError("this is an alignment; plot it with: evenmatch align … --plot page.html")
    for kind in RESULT_KINDS:
        if kind.matches(document):
            return kind
    keys = ", ".join(map(repr, list(document)[:6])) or "nothing"
    known = ", ".join(kind.command for kind in RESULT_KINDS)
    raise InputError(
        f"not a known kind of result: it contains {keys}; give the JSON of one of: {known}"
    )
