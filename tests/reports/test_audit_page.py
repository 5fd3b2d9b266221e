from __future__ import annotations

from evenmatch.data.fairness_sets import FairnessSet, make_fairness_pair
from evenmatch.fairness.audit import Audit, audit
from evenmatch.reports.audit_page import audit_page


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
    headings = (
        "Ranking",
        "Bias",
        "Two parts of the bias",
        "Paradigms and encoders",
        "Directions",
        "All values",
    )
    more = ("Pairs with the largest score difference", "Settings and signatures")
    for heading in (*headings, *more):
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
