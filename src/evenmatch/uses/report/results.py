"""Any result as one page: what kind it is, and who draws it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.errors import InputError
from evenmatch.types import Pair
from evenmatch.uses.report.compare_page import compare_page
from evenmatch.uses.report.keyphrases_page import keyphrases_page
from evenmatch.uses.report.rebuilt import audit_of, meta_of
from evenmatch.uses.report.score_page import score_page
from evenmatch.uses.report.study_page import curves_page, lisa_page, study_page, worth_page
from evenmatch.uses.report.tune_page import tune_page


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of result: the command that writes it, the fields that tell it, and its page.

    `row` are the fields of its first row, where what is told from rows.
    """

    made_by: str
    fields: frozenset[str]
    row: frozenset[str]
    page: Callable[[Mapping[str, Any]], str]

    def fits(self, document: Mapping[str, Any]) -> bool:
        """Whether a document has all these fields."""
        rows = document.get("rows")
        first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
        return self.fields <= set(document) and self.row <= set(first)


def _kind(
    made_by: str, fields: str, page: Callable[[Mapping[str, Any]], str], row: str = ""
) -> Kind:
    return Kind(made_by, frozenset(fields.split()), frozenset(row.split()), page)


SCORE = _kind("score", "metrics", score_page)
KINDS = (
    SCORE,
    _kind("compare", "rows systems testing", compare_page, "metric baseline system difference"),
    _kind("meta", "rows testing", meta_of, "data subset metric level method value"),
    _kind("audit", "rows draws", audit_of, "attribute metric bias stereotype"),
    _kind("keyphrases", "rows resampling", keyphrases_page, "prediction metric present absent"),
    _kind("tune", "looks steps best", tune_page),
    _kind("study lisa", "rows claims", lisa_page, "encoder algorithm effect"),
    _kind("study lisa-quality", "qualities speeds", worth_page),
    _kind("study lisa-gradient", "curves", curves_page),
    _kind("study", "title findings tables", study_page),
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
    kind = _kind_of(document)
    if pairs is not None and kind is not SCORE:
        raise InputError(f"texts go with a result of score, but this is one of {kind.made_by}")
    try:
        if kind is SCORE:
            return score_page(document, pairs=pairs, examples=examples)
        return kind.page(document)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"this looks like a result of {kind.made_by} but cannot be read ({error!r}); make it "
            f"again with: evenmatch {kind.made_by} … --json"
        ) from None


def _kind_of(document: Mapping[str, Any]) -> Kind:
    if "candidate_units" in document:
        raise InputError("this is one alignment; draw it with: evenmatch align … --plot page.html")
    for kind in KINDS:
        if kind.fits(document):
            return kind
    fields = ", ".join(map(repr, list(document)[:6])) or "nothing"
    known = ", ".join(kind.made_by for kind in KINDS)
    raise InputError(
        f"no result that can be shown: it holds {fields}; give the JSON of one of: {known}"
    )
