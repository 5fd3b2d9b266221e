from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.evaluation.disagreement import (
    find_disputed_outputs,
    least_correlated_metrics,
    metric_partial_correlations,
)
from evenmatch.reports.agreement_page import agreement_page
from tests.support.rated_sets import rated_sets

GREEDY = "align(vectors=hashed)"
LSA = "align(vectors=hashed, alignment=lsa)"
ODD = "<script>alert('&')</script>"


class Tags(HTMLParser):
    """Collects what a page loads, and whether its tags are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.misplaced: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [str(v) for k, v in attrs if k in ("src", "href", "srcset", "data")]
        if tag not in ("meta", "img"):  # these have no end tag
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.misplaced.append(tag)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> em.Agreement:
    sets = rated_sets(tmp_path_factory.mktemp("rated"), "news", "talks")
    *rest, poor = sets[0].candidates
    # greedy alignment rewards saying everything four times, the others do not
    odd = f"{ODD} " + 4 * f"{sets[0].references[0][0]} "
    sets[0] = dataclasses.replace(sets[0], candidates=(*rest, (odd, *poor[1:])))
    return em.correlate([GREEDY, LSA, "rouge1"], sets, "segment", resamples=30)


def test_a_page_loads_nothing_and_is_well_formed(found: em.Agreement) -> None:
    page = agreement_page(found)
    tags = Tags()
    tags.feed(page)
    assert (tags.addresses, tags.misplaced, tags.open) == ([], [], [])
    assert not re.search(r"https?:|url\(|@import", page)


def test_texts_are_escaped(found: em.Agreement) -> None:
    page = agreement_page(found)
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;" in page
    assert page.count("<script>") == 1


def test_every_value_is_in_the_table_and_every_set_is_drawn(found: em.Agreement) -> None:
    page = agreement_page(found)
    for entry in found.entries:
        assert f'<td>{entry.metric}</td><td class="number">{entry.value:.3f}</td>' in page
    for name in ("news", "talks"):
        assert f"<figcaption>mine · {name}</figcaption>" in page
        assert f"<summary>mine · {name}</summary>" in page
    assert page.count('class="cloud"') == len(found.scored) * len(found.metrics)


def test_metrics_are_ranked_from_the_best(found: em.Agreement) -> None:
    ranking = agreement_page(found).split("<h2>Ranking</h2>")[1].split("</section>")[0]
    shown = re.findall(r'<td class="number">\d+</td><td>(.*?)</td>', ranking)
    averages = [entry for entry in found.entries if entry.subset == "average"]
    averages.sort(key=lambda entry: -entry.value)
    assert shown == [entry.metric for entry in averages]


def test_systems_are_points_with_their_names(tmp_path: Path) -> None:
    page = agreement_page(em.correlate("rouge1", rated_sets(tmp_path, "news"), resamples=10))
    assert page.count("<title>best</title></circle>") == 1
    assert "Similarity between metrics" not in page


def test_a_report_is_written_where_asked(found: em.Agreement, tmp_path: Path) -> None:
    path = em.write_report(found, tmp_path / "page.html")
    assert path.read_text("utf-8") == agreement_page(found)
    with pytest.raises(em.InputError, match=r"no folder .* for page.html; create it first"):
        em.write_report(found, tmp_path / "nowhere" / "page.html")


def test_metrics_are_most_like_themselves(found: em.Agreement) -> None:
    matrix = metric_partial_correlations(
        found.scored, found.metrics, by_system=False, method="pearson"
    )
    assert matrix.diagonal() == pytest.approx(1.0)
    assert matrix == pytest.approx(matrix.T)
    # with a vector per word one-to-one alignment counts the words that ROUGE counts
    assert matrix[1, 2] > max(matrix[0, 1], matrix[0, 2])


def test_saying_everything_four_times_divides_greedy_and_one_to_one(found: em.Agreement) -> None:
    texts = find_disputed_outputs(found.scored, GREEDY, LSA, most=3)
    gaps = [abs(text.gap) for text in texts]
    assert gaps == sorted(gaps, reverse=True)
    assert len({text.candidate for text in texts}) == 3
    assert texts[0].candidate.startswith(ODD)
    assert (texts[0].system, texts[0].segment) == ("poor", "0")
    assert texts[0].gap > 0.4


def test_the_metrics_furthest_apart_come_first(found: em.Agreement) -> None:
    pairs = least_correlated_metrics(found.scored)
    assert pairs[-1] == (LSA, "rouge1")
    assert len(pairs) == 3
