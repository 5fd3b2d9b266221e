"""Tables that fit the width of a terminal."""

from __future__ import annotations

import pytest

from evenmatch.data.tables import page_width, table_to_text, wrap_prose

TABLE = [
    ["metric", "system", "difference", "2.5%", "97.5%", "p"],
    ["bleu", "mine", "0.0412", "0.0123", "0.0701", "0.0041"],
    ["ter", "mine", "-0.0200", "-0.0500", "0.0101", "0.2001"],
]


def test_without_a_limit_a_table_is_one_block() -> None:
    assert len(table_to_text(TABLE).splitlines()) == len(TABLE)


def test_a_table_may_be_a_header_alone() -> None:
    assert table_to_text(TABLE[:1]) == "  ".join(TABLE[0])


def test_a_table_that_fits_stays_as_it_is() -> None:
    plain = table_to_text(TABLE)
    with page_width(max(map(len, plain.splitlines()))):
        assert table_to_text(TABLE) == plain


@pytest.mark.parametrize("width", [43, 47, 50])
def test_a_wide_table_is_divided_with_its_names_repeated(width: int) -> None:
    with page_width(width):
        blocks = [block.splitlines() for block in table_to_text(TABLE).split("\n\n")]
    assert len(blocks) > 1
    assert all(len(line) <= width for block in blocks for line in block)
    for block in blocks:
        assert [line.split()[:2] for line in block] == [row[:2] for row in TABLE]
    cells = [[cell for block in blocks for cell in block[n].split()[2:]] for n in range(3)]
    assert cells == [row[2:] for row in TABLE]


def test_a_value_and_its_interval_stay_together() -> None:
    with page_width(43):
        first, *_ = table_to_text(TABLE).split("\n\n")
    assert first.splitlines()[0].split() == ["metric", "system", "difference", "2.5%", "97.5%"]


def test_long_names_leave_a_paragraph_for_each_row() -> None:
    table = [["system", "baseline", "gap", "p"], ["s" * 30, "b" * 30, "+0.1", "0.5"]]
    with page_width(64):
        lines = table_to_text(table).splitlines()
    assert lines[1:] == ["s" * 30 + "  " + "b" * 30, "    gap +0.1  p 0.5"]


def test_prose_is_wrapped_and_tables_and_signatures_are_not() -> None:
    prose, signature = "word " * 20, "bleu: bleu · evenmatch 0.1.0 · sacrebleu 2.6.0"
    row = "a  " * 20
    with page_width(30):
        found = wrap_prose("\n".join([prose.strip(), signature, row])).splitlines()
    assert found[-2:] == [signature, row]
    assert len(found) > 3
    assert all(len(line) <= 30 for line in found[:-2])
    assert " ".join(" ".join(found[:-2]).split()) == prose.strip()
