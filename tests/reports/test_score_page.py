"""Scores on a page: means, spread, the worst and the best texts."""

from __future__ import annotations

import re

import pytest

from evenmatch.errors import InputError
from evenmatch.reports.score_page import score_page
from evenmatch.types import Pair
from tests.support.report_results import GREEDY, LSA, PAIRS, scored


def rows_shown(page: str) -> list[int]:
    return [int(n) for n in re.findall(r'<p class="where">row (\d+)</p>', page)]


def test_means_alone_say_how_to_get_more() -> None:
    page = score_page(scored(GREEDY, "chrf", segments=False))
    assert f"<td>{GREEDY}</td>" in page
    assert "evenmatch score … --segments --json" in page
    assert "<h2>All rows</h2>" not in page
    assert "evenmatch report … --texts FILE" in score_page(scored(GREEDY))


def test_every_pair_is_counted_in_the_picture_of_its_metric() -> None:
    page = score_page(scored(GREEDY, "chrf"))
    figures = re.findall(r'aria-label="pairs by score: ([\d, ]+)"', page)
    assert [sum(map(int, figure.split(","))) for figure in figures] == [len(PAIRS)] * 2


def test_the_worst_come_before_the_best() -> None:
    page = score_page(scored(LSA), pairs=PAIRS, examples=2)
    values = [s["value"] for s in scored(LSA)["metrics"][LSA]["segments"]]
    order = sorted(range(len(values)), key=values.__getitem__)
    assert rows_shown(page) == [*order[:2], *order[:-3:-1]]


def test_where_lower_is_better_the_highest_is_the_worst() -> None:
    page = score_page(scored("ter"), pairs=PAIRS, examples=1)
    values = [s["value"] for s in scored("ter")["metrics"]["ter"]["segments"]]
    assert [values[n] for n in rows_shown(page)] == [max(values), min(values)]
    assert "<evenmatch-viewer" not in page


def test_no_text_is_among_the_worst_and_the_best() -> None:
    shown = rows_shown(score_page(scored(LSA), pairs=PAIRS, examples=50))
    assert len(shown) == len(set(shown)) == 4


def test_texts_stay_texts_and_the_best_reference_is_aligned() -> None:
    page = score_page(scored(LSA, GREEDY), pairs=PAIRS, examples=2)
    assert "&lt;b&gt;it&lt;/b&gt; rained" in page
    assert "<b>it</b>" not in page
    repeated = score_page(
        {"metrics": {LSA: {"signature": "", "mean": 0, "segments": [_row(0.5), _row(0.9)]}}},
        pairs=[Pair("the the cat", ("a dog", "the cat")), Pair("a", ("a",))],
    )
    assert '"reference": "the cat"' in repeated
    assert '"reference": "a dog"' not in repeated


def _row(value: float) -> dict[str, object]:
    return {"value": value, "precision": None, "recall": None, "flags": []}


def test_an_alignment_that_scores_otherwise_now_says_so() -> None:
    document = {"metrics": {LSA: {"signature": "", "mean": 0, "segments": [_row(0.1), _row(1.0)]}}}
    page = score_page(document, pairs=[Pair("a b", ("a b",)), Pair("a", ("a",))])
    assert page.count("Scored alone, this pair gets 1.0000") == 1


def test_a_model_that_is_not_here_leaves_the_texts() -> None:
    name = "align(vectors=lookup(table='nowhere.txt'))"
    document = {"metrics": {name: {"signature": "", "mean": 0, "segments": [_row(0), _row(1)]}}}
    page = score_page(document, pairs=[Pair("a b", ("a b",)), Pair("a", ("a",))])
    assert page.count("The alignment cannot be plotted: ") == 2


def test_texts_too_long_to_draw_are_named_so() -> None:
    many = " ".join(f"w{i}" for i in range(110))
    document = {"metrics": {LSA: {"signature": "", "mean": 0, "segments": [_row(0), _row(1)]}}}
    page = score_page(document, pairs=[Pair(many, (many,)), Pair("a", ("a",))])
    assert page.count("too long to plot their alignment") == 1


def test_texts_that_cannot_be_those_scored_are_refused() -> None:
    with pytest.raises(InputError, match="the result has 5 rows but 1 pairs of texts are given"):
        score_page(scored(LSA), pairs=PAIRS[:1])
    with pytest.raises(InputError, match="has only mean scores; create it with"):
        score_page(scored(LSA, segments=False), pairs=PAIRS)
