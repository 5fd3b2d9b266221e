from __future__ import annotations

from pathlib import Path

import pytest

from evenmatch.data.fairness_sets import FairnessSet, make_fairness_pair
from evenmatch.errors import InputError
from evenmatch.fairness.audit import Audit, audit
from evenmatch.reports.audit_page import audit_page, write_audit_report


def found() -> Audit:
    scores = {"X-p": (0.0, 1.0), "X-r": (0.2, 0.3), "X-F": (0.1, 0.6)}
    pairs = [
        make_fairness_pair(
            "the <cat> sat", "the <cat> sat", "the dog sat", "the <cat> sat", scores=scores
        ),
        make_fairness_pair("a b", "a b", "a c", "a b", scores=scores),
    ]
    sets = FairnessSet("mine", {"pets": pairs, "letters": pairs[::-1]})
    return audit(["align(vectors=hashed)", "chrf"], sets, published=True, worst=1, trials=10)


def test_a_page_has_bars_directions_a_table_and_the_worst_pairs() -> None:
    page = audit_page(found())
    # two attributes and the mean; both directions and F; ways of judging by X
    assert page.count('class="bar"') == 5 * 3 + 3 * 2 + 3
    headings = ("Bias", "Paradigms and encoders", "Directions", "All values", "The worst pairs")
    for heading in (*headings, "What this rests on"):
        assert f"<h2>{heading}</h2>" in page
    assert "matched to" in page
    assert "the &lt;cat&gt; sat" in page
    assert "the <cat> sat" not in page


def test_paradigms_and_encoders_are_a_coloured_table() -> None:
    page = audit_page(found())
    assert '<th scope="row">likelihood of the candidate</th>' in page
    assert '<td class="above hot" style="--s:0.85" title="X-' in page
    alone = FairnessSet("mine", {"pets": [make_fairness_pair("a b", "a b", "a c", "a b")] * 2})
    assert "Paradigms and encoders" not in audit_page(audit("chrf", alone, trials=10))


def test_a_page_is_written_where_it_can_be(tmp_path: Path) -> None:
    assert (
        write_audit_report(found(), tmp_path / "audit.html")
        .read_text()
        .startswith("<!doctype html>")
    )
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(InputError, match="cannot write"):
        write_audit_report(found(), tmp_path / "folder.html")
    with pytest.raises(InputError, match="a page's name ends in"):
        write_audit_report(found(), tmp_path / "audit.txt")
