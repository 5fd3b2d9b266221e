"""Results of meta and audit, made again from their JSON, on the pages these commands write."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evenmatch.uses.fair.audit_result import Audit, Worst
from evenmatch.uses.fair.bias import Bias, Draws
from evenmatch.uses.meta.agreement_panels import Testing
from evenmatch.uses.meta.agreement_result import Agreement, Entry
from evenmatch.uses.report.audit_page import audit_page
from evenmatch.uses.report.meta_page import agreement_page


def meta_of(document: Mapping[str, Any]) -> str:
    """The page of an agreement; the scores themselves are not in its JSON, nor their plots here."""
    clusters = {
        (each["data"], each["subset"], each["metric"]): each["cluster"]
        for each in document.get("clusters", ())
    }
    entries = [
        Entry(**_numbers(row), cluster=clusters.get((row["data"], row["subset"], row["metric"])))
        for row in document["rows"]
    ]
    agreement = Agreement(
        tuple(entries),
        (),
        Testing(**document["testing"]),
        document.get("outliers", "keep"),
        tuple(document.get("tests", ())),
    )
    signatures = {k: v for k, v in document.get("signatures", {}).items() if v}
    return agreement_page(agreement, signatures=signatures, command=document.get("command", ""))


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with NaN where its JSON has nothing."""
    return {name: math.nan if value is None else value for name, value in row.items()}


def audit_of(document: Mapping[str, Any]) -> str:
    """The page of an audit; the pairs it holds are aligned again where their metric is here."""
    audit = Audit(
        document["data"],
        tuple(Bias(**row) for row in document["rows"]),
        tuple(Worst(**case) for case in document.get("worst", ())),
        document["signatures"],
        Draws(**document["draws"]),
    )
    return audit_page(audit, command=document.get("command", ""))
