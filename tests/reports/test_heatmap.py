from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import evenmatch as em
from evenmatch.reports import heatmap
from evenmatch.reports.heatmap import draw_alignment

CANDIDATE, REFERENCE = "the the cat sat", "the cat slept"


def aligned(candidate: str, reference: str, solver: str = "lsa") -> em.Aligned:
    return em.align(candidate, reference, f"align(vectors=hashed, alignment={solver})")


def svg(alignment: em.Aligned, folder: Path) -> str:
    return draw_alignment(alignment, folder / "picture.svg").read_text("utf-8")


def texts(picture: str) -> list[str]:
    return ["".join(e.itertext()).strip() for e in _all(picture, "text")]


def frames(picture: str) -> int:
    outlined = [e for e in _all(picture, "path") if heatmap.PAIR_COLOUR in e.get("style", "")]
    return len(outlined)


def _all(picture: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(picture).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def test_the_suffix_decides_between_pixels_and_vectors(tmp_path: Path) -> None:
    alignment = aligned(CANDIDATE, REFERENCE)
    png = draw_alignment(alignment, tmp_path / "a.PNG")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert svg(alignment, tmp_path).startswith("<?xml")
    pdf = draw_alignment(alignment, tmp_path / "a.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert draw_alignment(alignment, tmp_path / "b.pdf").read_bytes() == pdf


def test_another_suffix_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(em.InputError, match=r"must end in \.svg or \.png or \.pdf, got 'a\.eps'"):
        draw_alignment(aligned("a", "b"), tmp_path / "a.eps")


def test_a_folder_that_is_not_there_is_an_error_of_one_line(tmp_path: Path) -> None:
    with pytest.raises(em.InputError, match=r"cannot write .*picture\.svg: No such file"):
        draw_alignment(aligned("a", "b"), tmp_path / "none" / "picture.svg")


def test_without_matplotlib_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(em.MissingExtraError, match=r"pip install 'evenmatch\[plot\]'"):
        draw_alignment(aligned("a", "b"), tmp_path / "a.svg")


def test_units_score_and_recipe_are_written(tmp_path: Path) -> None:
    alignment = aligned(CANDIDATE, REFERENCE)
    written = texts(svg(alignment, tmp_path))
    score = alignment.score
    assert score.precision is not None
    assert {"cat", "sat", "slept", "candidate", "reference"} <= set(written)
    title = next(text for text in written if text.startswith("score"))
    assert f"score {score.value:.3f}" in title
    assert f"precision {score.precision:.3f}" in title
    assert "align(vectors=hashed, alignment=lsa)" in written


@pytest.mark.parametrize(("solver", "in_key"), [("lsa", 1), ("greedy", 2), ("emd", 3)])
def test_every_pair_is_framed_once(tmp_path: Path, solver: str, in_key: int) -> None:
    alignment = aligned(CANDIDATE, REFERENCE, solver)
    assert frames(svg(alignment, tmp_path)) == len(alignment.pairs) + in_key


def test_a_heavier_pair_has_a_heavier_frame(tmp_path: Path) -> None:
    similarity = np.array([[1.0, 0.9]])
    split = em.Aligned(
        ["a"],
        ["b", "c"],
        similarity,
        em.Alignment(np.array([[0.75, 0.25]]), np.array([[1.0, 0.2]])),
        em.Score(0.9),
        "made by hand",
    )
    styles = [e.get("style", "") for e in _all(svg(split, tmp_path), "path")]
    widths = [
        float(style.split("stroke-width: ")[1].split(";")[0])
        for style in styles
        if heatmap.PAIR_COLOUR in style
    ]
    assert widths[0] > 2 * widths[1]


def test_units_without_a_partner_look_different(tmp_path: Path) -> None:
    picture = svg(aligned(CANDIDATE, REFERENCE), tmp_path)
    grey = [e for e in _all(picture, "text") if "italic" in e.get("style", "")]
    assert ["".join(e.itertext()) for e in grey] == ["the"]
    assert "unmatched" in texts(picture)


def test_the_key_explains_only_what_occurs(tmp_path: Path) -> None:
    same = texts(svg(aligned("a b", "a b"), tmp_path))
    assert "pair" in same
    assert "unmatched" not in same
    assert "pair, chosen by one side" in texts(svg(aligned("a a", "a", "greedy"), tmp_path))
    assert "pair, weight 0.1" in texts(svg(aligned("a b c", "a b", "emd"), tmp_path))


def test_small_maps_carry_numbers_and_large_ones_do_not(tmp_path: Path) -> None:
    assert texts(svg(aligned("a b", "a b"), tmp_path)).count("1.00") == 2
    many = " ".join(f"w{i}" for i in range(60))
    assert "1.00" not in texts(svg(aligned(many, many), tmp_path))


def test_a_long_text_keeps_the_picture_bounded_and_its_labels_apart(tmp_path: Path) -> None:
    from matplotlib.image import imread

    alignment = aligned(" ".join(f"w{i}" for i in range(250)), "w0")
    high, wide, _ = imread(draw_alignment(alignment, tmp_path / "a.png")).shape
    assert high < 144 * 18
    assert wide < 144 * 18
    written = texts(svg(alignment, tmp_path))
    assert {"w0", "w2"} <= set(written)
    assert "w1" not in written


def test_long_units_are_cut(tmp_path: Path) -> None:
    assert "abcdefghijklmnopq…" in texts(svg(aligned("abcdefghijklmnopqrstuvwxyz", "b"), tmp_path))


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
@pytest.mark.parametrize(
    "text", ["我喜欢猫", "😀 👩‍🚀 naïve", "$x_1$ \\frac <b>&amp;", "مرحبا", "\x00 \ud800 \u202e"]
)
def test_any_text_is_drawn_without_a_warning(tmp_path: Path, text: str, suffix: str) -> None:
    alignment = em.align(text, "plain text", "align(vectors=hashed, alignment=lsa)")
    assert draw_alignment(alignment, tmp_path / f"a.{suffix}").stat().st_size > 1000


def test_an_svg_keeps_characters_that_no_font_here_has(tmp_path: Path) -> None:
    assert {"我", "猫"} <= set(texts(svg(aligned("我猫", "cat"), tmp_path)))


@pytest.mark.parametrize(("candidate", "reference"), [("", "a b"), ("a b", ""), ("", "")])
def test_an_empty_side_is_drawn_and_said(tmp_path: Path, candidate: str, reference: str) -> None:
    written = texts(svg(aligned(candidate, reference), tmp_path))
    assert "nothing to align" in written
    assert any("empty" in text for text in written if text.startswith("score"))


def test_the_same_alignment_gives_the_same_file(tmp_path: Path) -> None:
    alignment = aligned(CANDIDATE, REFERENCE)
    assert svg(alignment, tmp_path) == svg(alignment, tmp_path)


def test_drawing_leaves_matplotlib_as_it_was(tmp_path: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    svg(aligned("a", "b"), tmp_path)
    assert dict(matplotlib.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not _open_figures()


def _open_figures() -> list[int]:
    from matplotlib import pyplot

    return pyplot.get_fignums()
