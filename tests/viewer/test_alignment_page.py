from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

import evenmatch as em
from evenmatch.viewer.page import alignment_fragment, alignment_page

VOID = {"meta", "br", "img", "link"}


class Outline(HTMLParser):
    """Checks that tags close in order, and notes tags, attributes and text on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.text += data

    def count(self, tag: str, name: str = "") -> int:
        found = [(a.get("class") or "").split() for t, a in self.tags if t == tag]
        return sum(not name or name in names for names in found)


def read(html: str) -> Outline:
    outline = Outline()
    outline.feed(html)
    outline.close()
    assert not outline.open
    return outline


def aligned(candidate: str, reference: str, solver: str = "lsa") -> em.Aligned:
    return em.align(candidate, reference, f"align(vectors=hashed, alignment={solver})")


def test_a_page_is_well_formed_and_names_score_and_signature() -> None:
    alignment = aligned("the the cat", "the cat sat")
    page = alignment_page(alignment)
    assert page.startswith('<!doctype html>\n<html lang="en">')
    text = read(page).text
    assert f"score {alignment.score.value:.4f}" in text
    assert alignment.signature in text


def test_a_page_needs_nothing_from_elsewhere() -> None:
    page = alignment_page(aligned("a b", "b c")).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"@import|url\(|https?:|\ssrc=", page)
    assert re.findall(r"<link[^>]*>", page) == ['<link rel="icon" href="data:,">']
    assert "default-src 'none'" in page
    assert "connect-src 'none'" in page


def test_light_and_dark_are_both_styled() -> None:
    assert "prefers-color-scheme: dark" in alignment_page(aligned("a", "b"))


@pytest.mark.parametrize("solver", ["greedy", "lsa", "emd"])
def test_every_pair_has_a_line_and_a_framed_cell(solver: str) -> None:
    alignment = aligned("the the cat sat", "the cat slept", solver)
    outline = read(alignment_page(alignment))
    assert outline.count("path") == len(alignment.pairs)
    assert outline.count("td", "heat") == 4 * 3
    assert outline.count("td", "pair") == len(alignment.pairs)


def test_colours_are_also_described_in_words() -> None:
    outline = read(alignment_page(aligned("the the cat", "the cat")))
    assert outline.text.count("pair of weight 1.00") == 2
    assert "the, unmatched" in outline.text
    svg = next(a for t, a in outline.tags if t == "svg")
    assert svg["aria-label"] == "3 candidate units, 2 reference units, 2 pairs between them"
    assert svg["role"] == "img"


def test_heads_of_rows_and_columns_are_marked_as_such() -> None:
    outline = read(alignment_page(aligned("a b", "a b c")))
    scopes = [a["scope"] for t, a in outline.tags if t == "th"]
    assert (scopes.count("row"), scopes.count("col")) == (2, 3)


def test_markup_in_a_text_stays_text() -> None:
    page = alignment_page(em.align("<script>alert(1)</script>", "\"a\" & 'b'", whole_texts()))
    outline = read(page)
    assert outline.count("script") == 2  # the data and the component
    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page


def whole_texts() -> em.AlignMetric:
    return em.AlignMetric(units=whole_text, vectors=em.Hashed(), alignment=em.Lsa())


def whole_text(text: str) -> em.Units:
    return em.Units(text, (text,), ((0, len(text)),), ((0,),))


@pytest.mark.parametrize(("candidate", "reference"), [("", "a"), ("a", ""), ("", "")])
def test_an_empty_side_gives_a_page_that_says_so(candidate: str, reference: str) -> None:
    assert "Note: empty" in read(alignment_page(aligned(candidate, reference))).text


def test_a_very_large_matrix_shows_its_pairs_alone() -> None:
    many = " ".join(f"w{i}" for i in range(110))
    outline = read(alignment_page(aligned(many, many)))
    assert outline.count("td", "heat") == 0
    assert outline.count("td") == 110 * 4
    assert "110 by 110" in outline.text


def test_a_notebook_shows_the_same_without_the_page_around_it() -> None:
    alignment = aligned("a b", "a")
    assert alignment._repr_html_() == alignment_fragment(alignment)
    assert "<html" not in alignment_fragment(alignment)


def test_importing_evenmatch_does_not_import_the_viewer() -> None:
    code = "import sys, evenmatch; sys.exit('evenmatch.viewer.page' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
