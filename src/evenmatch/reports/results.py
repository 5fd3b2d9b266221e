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
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.errors import EvenmatchError, InputError
from evenmatch.evaluation.agreement_result import Agreement, AgreementEntry, AgreementTestSettings
from evenmatch.evaluation.compare import Comparison, Gap, SystemScore
from evenmatch.evaluation.keyphrase_table import (
    COLUMNS,
    KeyphraseGap,
    KeyphraseRow,
    KeyphraseTable,
)
from evenmatch.fairness.audit import Audit, WorstPair
from evenmatch.fairness.bias import Bias
from evenmatch.reports.agreement_page import agreement_page
from evenmatch.reports.audit_page import audit_page
from evenmatch.reports.page import check_page_path, write_page
from evenmatch.reports.score_page import comparison_page, keyphrase_page, score_page, systems_page
from evenmatch.reports.score_summary import metric_document
from evenmatch.reports.study_page import (
    StudyReport,
    lisa_gradient_page,
    lisa_page,
    lisa_quality_page,
    study_page,
    tune_page,
)
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
    command: str = "",
) -> Path:
    """Write a result as one self-contained HTML page and return its path.

    `result` is what `score`, `correlate`, `audit`, `compare`, `score_keyphrases` or `tune` returns,
    a study report, or the JSON document that a command prints with --json. With scores, `pairs`
    are the texts that were scored; the page then shows `examples` of the worst and of the best,
    with their alignments. Other texts than those are refused. `command` is shown as the command
    line that produced the result; a document contains its own.
    """
    given: Any = (result, path)
    if isinstance(given[0], str) or not isinstance(given[1], (str, PathLike)):
        raise InputError(
            f"write_report takes a result and then a path, got {type(given[0]).__name__} and "
            f"{type(given[1]).__name__}: write_report(result, 'page.html')"
        )
    target = check_page_path(path)
    return write_page(result_page(result, pairs=pairs, examples=examples, command=command), target)


def result_page(
    result: Result,
    *,
    pairs: Sequence[Pair] | None = None,
    examples: int = 3,
    command: str = "",
) -> str:
    """Return the HTML page that `write_report` writes."""
    if page := _OBJECT_PAGES.get(type(result)):
        _refuse_texts(pairs, type(result).__name__)
        return page(result, command=command)
    document = _as_document(result)
    if command:
        document = {"command": command, **document}
    kind = _find_kind(document)
    if kind.page is systems_page and pairs is not None:
        raise InputError(
            "texts can be shown for one system only, but this result has "
            f"{len(document['systems'])}; score one system: evenmatch score -c FILE -r REFS "
            "--segments --out FILE.json"
        )
    if kind.page is not score_page:
        _refuse_texts(pairs, kind.command)
    try:
        if kind.page is score_page:
            return score_page(document, pairs=pairs, examples=examples)
        return kind.page(document)
    except EvenmatchError:  # such as texts given with a result of means only
        raise
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
    except (ValueError, RecursionError):
        raise InputError(
            f"{path} is not JSON; give the output of a command with --json (or of --out FILE.json)"
        ) from None
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON object; give the output of a command with --json")
    return found


_OBJECT_PAGES: Mapping[type, Callable[..., str]] = {
    Agreement: agreement_page,
    Audit: audit_page,
    Comparison: comparison_page,
    KeyphraseTable: keyphrase_page,
}


def _refuse_texts(pairs: Sequence[Pair] | None, kind: str) -> None:
    if pairs is not None:
        raise InputError(f"texts can be given with scores only, but this is a result of {kind}")


def _as_document(result: object) -> Mapping[str, Any]:
    """Return the JSON document of scores, a study or a tuning run; documents stay as they are."""
    if isinstance(result, (StudyReport, TuneResult)):
        return result.document
    if isinstance(result, Scores):  # named by the part of its signature that rebuilds the metric
        result = {result.signature.split(" · ")[0]: result}
    if isinstance(result, Mapping):
        metrics = {
            name: metric_document(
                each.signature, RunningMean().add(each).mean, each.corpus, each.segments
            )
            for name, each in result.items()
            if isinstance(each, Scores)
        }
        if not metrics:
            return result
        hashes = [each.texts for each in result.values() if isinstance(each, Scores)]
        return {"metrics": metrics, **({"texts": hashes[0]} if hashes[0] else {})}
    raise InputError(
        f"cannot write a report of {type(result).__name__}; give what score, correlate, audit, "
        "compare, score_keyphrases or tune returned, a study report, or the JSON of one of them"
    )


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
        Resampling(**document["draws"]),
    )
    return audit_page(audit, command=document.get("command", ""))


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
        document.get("scale", 1.0),
    )
    return comparison_page(comparison, command=document.get("command", ""))


def keyphrase_page_from_json(document: Mapping[str, Any]) -> str:
    """Return the page of a document with keyphrase scores."""
    table = KeyphraseTable(
        tuple(map(_keyphrase_row, document["rows"])),
        tuple(KeyphraseGap(**gap) for gap in document.get("tests", ())),
        document.get("flagged", {}),
        tuple(document.get("trouble", ())),
        document["signatures"],
        Resampling(**document["resampling"]),
        document.get("full", False),
    )
    return keyphrase_page(table, command=document.get("command", ""))


def _keyphrase_row(row: Mapping[str, Any]) -> KeyphraseRow:
    cells = {column: Interval(row[column], *row["intervals"][column]) for column in COLUMNS}
    return KeyphraseRow(
        row["data"],
        row["prediction"],
        row["metric"],
        cells,
        row["documents"],
        row.get("precision") or {},
        row.get("recall") or {},
    )


@dataclass(frozen=True, slots=True)
class ResultKind:
    """A kind of JSON document: the command that prints it, its page, the fields that identify it.

    `row_fields` are fields of the first of its `rows`, `lacking` fields that it does not have.
    """

    command: str
    page: Callable[..., str]
    fields: str
    row_fields: str = ""
    lacking: str = ""

    def matches(self, document: Mapping[str, Any]) -> bool:
        """Whether a document has all these fields, and none of those that are lacking."""
        rows = document.get("rows")
        first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
        known = set(self.fields.split()) <= set(document)
        known = known and not set(self.lacking.split()) & set(document)
        return known and set(self.row_fields.split()) <= set(first)


_COMPARE = "metric baseline system difference"
_META = "data subset metric level method value"
_KEYPHRASES = "prediction metric present absent"

RESULT_KINDS = (
    ResultKind("score", score_page, "metrics"),
    ResultKind("compare", comparison_page_from_json, "rows systems testing", _COMPARE),
    ResultKind("score", systems_page, "systems", lacking="rows"),
    ResultKind("meta", agreement_page_from_json, "rows testing", _META),
    ResultKind("audit", audit_page_from_json, "rows draws", "attribute metric bias effect"),
    ResultKind("keyphrases", keyphrase_page_from_json, "rows resampling", _KEYPHRASES),
    ResultKind("tune", tune_page, "looks steps best"),
    ResultKind("study lisa", lisa_page, "rows claims", "encoder algorithm effect"),
    ResultKind("study lisa-quality", lisa_quality_page, "qualities speeds"),
    ResultKind("study lisa-gradient", lisa_gradient_page, "curves"),
    ResultKind("study", study_page, "title findings tables"),
)


def _find_kind(document: Mapping[str, Any]) -> ResultKind:
    if "candidate_units" in document:
        raise InputError("this is an alignment; plot it with: evenmatch align … --plot page.html")
    for kind in RESULT_KINDS:
        if kind.matches(document):
            return kind
    keys = ", ".join(map(repr, list(document)[:6])) or "nothing"
    known = ", ".join(dict.fromkeys(kind.command for kind in RESULT_KINDS))
    raise InputError(
        f"not a known kind of result: it contains {keys}; give the JSON of one of: {known}"
    )
