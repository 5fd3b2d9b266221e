"""Results of meta and audit, made again from their JSON, on the pages these commands write.

Any result as one page: what kind it is, and who draws it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.errors import InputError
from evenmatch.evaluation.agreement_result import Agreement, AgreementEntry, AgreementTestSettings
from evenmatch.fairness.audit import Audit, WorstPair
from evenmatch.fairness.bias import AuditTestSettings, Bias
from evenmatch.reports.agreement_page import agreement_page
from evenmatch.reports.audit_page import audit_page
from evenmatch.reports.score_page import score_page
from evenmatch.reports.study_page import (
    lisa_gradient_page,
    lisa_page,
    lisa_quality_page,
    study_page,
    tune_page,
)
from evenmatch.reports.system_pages import comparison_page, keyphrase_page
from evenmatch.types import Pair


def agreement_page_from_json(document: Mapping[str, Any]) -> str:
    """The page of an agreement; the scores themselves are not in its JSON, nor their plots here."""
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
    """A row with NaN where its JSON has nothing."""
    return {name: math.nan if value is None else value for name, value in row.items()}


def audit_page_from_json(document: Mapping[str, Any]) -> str:
    """The page of an audit; the pairs it holds are aligned again where their metric is here."""
    audit = Audit(
        document["data"],
        tuple(Bias(**row) for row in document["rows"]),
        tuple(WorstPair(**case) for case in document.get("worst", ())),
        document["signatures"],
        AuditTestSettings(**document["draws"]),
    )
    return audit_page(audit, command=document.get("command", ""))


@dataclass(frozen=True, slots=True)
class ResultKind:
    """A kind of result: the command that writes it, the fields that tell it, and its page.

    `row` are the fields of its first row, where what is told from rows.
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
    made_by: str, fields: str, page: Callable[[Mapping[str, Any]], str], row: str = ""
) -> ResultKind:
    return ResultKind(made_by, frozenset(fields.split()), frozenset(row.split()), page)


SCORE_RESULT = _result_kind("score", "metrics", score_page)


RESULT_KINDS = (
    SCORE_RESULT,
    _result_kind(
        "compare", "rows systems testing", comparison_page, "metric baseline system difference"
    ),
    _result_kind(
        "meta", "rows testing", agreement_page_from_json, "data subset metric level method value"
    ),
    _result_kind("audit", "rows draws", audit_page_from_json, "attribute metric bias stereotype"),
    _result_kind(
        "keyphrases", "rows resampling", keyphrase_page, "prediction metric present absent"
    ),
    _result_kind("tune", "looks steps best", tune_page),
    _result_kind("study lisa", "rows claims", lisa_page, "encoder algorithm effect"),
    _result_kind("study lisa-quality", "qualities speeds", lisa_quality_page),
    _result_kind("study lisa-gradient", "curves", lisa_gradient_page),
    _result_kind("study", "title findings tables", study_page),
)


def read_result(path: str | Path) -> dict[str, Any]:
    """The document of a result file."""
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path} is no JSON; give what a command printed with --json") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} holds no JSON object; give what a command printed with --json")
    return found


def result_page(
    document: Mapping[str, Any], *, pairs: Sequence[Pair] | None = None, examples: int = 3
) -> str:
    """A result as one page that stands alone.

    `pairs` are the texts a score was given for; then the worst and the best of them are shown,
    `examples` of each, with how they align.
    """
    kind = _find_kind(document)
    if pairs is not None and kind is not SCORE_RESULT:
        raise InputError(f"texts go with a result of score, but this is one of {kind.command}")
    try:
        if kind is SCORE_RESULT:
            return score_page(document, pairs=pairs, examples=examples)
        return kind.page(document)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"this looks like a result of {kind.command} but cannot be read ({error!r}); make it "
            f"again with: evenmatch {kind.command} … --json"
        ) from None


def _find_kind(document: Mapping[str, Any]) -> ResultKind:
    if "candidate_units" in document:
        raise InputError("this is one alignment; draw it with: evenmatch align … --plot page.html")
    for kind in RESULT_KINDS:
        if kind.matches(document):
            return kind
    fields = ", ".join(map(repr, list(document)[:6])) or "nothing"
    known = ", ".join(kind.command for kind in RESULT_KINDS)
    raise InputError(
        f"no result that can be shown: it holds {fields}; give the JSON of one of: {known}"
    )
