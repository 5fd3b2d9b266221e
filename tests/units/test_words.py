from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.metrics.keyphrases.phrase_similarity import unit_texts
from evenmatch.units.text import Sentences
from tests.support.parts import Row, rows


@pytest.mark.parametrize("row", rows("units"))
@given(text=st.text(max_size=40))
def test_units_keep_their_text(row: Row, text: str) -> None:
    assert em.build(row.spec)(text).text == text


@given(st.text(max_size=60))
def test_every_letter_and_symbol_is_in_exactly_one_word(text: str) -> None:
    units = em.Words()(text)
    covered = [i for a, b in units.spans for i in range(a, b)]
    assert covered == sorted(set(covered))
    assert {i for i, c in enumerate(text) if not c.isspace()} <= set(covered)
    assert units.items == tuple(text[a:b] for a, b in units.spans)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \t\n", []),
        ("cat", ["cat"]),
        ("It's 20% off, now.", ["It", "'", "s", "20", "%", "off", ",", "now", "."]),
        ("snake_case", ["snake_case"]),
        ("一只猫", ["一", "只", "猫"]),
        ("GPT和猫2只", ["GPT", "和", "猫", "2", "只"]),
        ("テキスト", ["テ", "キ", "ス", "ト"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("مُحَمَّد", ["مُحَمَّد"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("❤️👍🏽", ["❤️", "👍", "🏽"]),
        ("a\x00b", ["a", "\x00", "b"]),
        ("\ud800", ["\ud800"]),
    ],
)
def test_words_of_many_scripts(text: str, words: list[str]) -> None:
    assert list(em.Words()(text).items) == words


def test_lower_case_changes_the_words_and_not_their_spans() -> None:
    units = em.Words(lower=True)("The Cat")
    assert units.items == ("the", "cat")
    assert units.spans == ((0, 3), (4, 7))


def test_pieces_are_split_by_the_encoder() -> None:
    units = em.Pieces(marks=True)("The cat")
    assert (units.by_model, units.special_tokens, units.groups) == (True, True, ())


def test_the_words_of_a_unit_are_joined_by_spaces() -> None:
    units = em.Units("the black cat", ("the", "black", "cat"), groups=((0, 2), (1,)))
    assert units.items == ("the cat", "black")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", ()),
        (" \n ", ()),
        ("one", ("one",)),
        ("Dr. No met J. Bond. Who won?", ("Dr. No met J. Bond.", "Who won?")),
        ('He said "go." Then he left.', ('He said "go."', "Then he left.")),
        ("It fell by 3.5 points. So what!", ("It fell by 3.5 points.", "So what!")),
        ("we waited ... and left", ("we waited ...", "and left")),
        ("we waited... and left", ("we waited... and left",)),
        ("police agreed . fans did not .", ("police agreed .", "fans did not .")),
        ("first line\nsecond line", ("first line", "second line")),
        (
            "\u4ed6\u6765\u4e86\u3002\u6211\u8d70\u4e86",
            ("\u4ed6\u6765\u4e86\u3002", "\u6211\u8d70\u4e86"),
        ),
        ("Really?! Yes.", ("Really?!", "Yes.")),
    ],
)
def test_sentences_end_at_marks_and_line_breaks(text: str, sentences: tuple[str, ...]) -> None:
    units = Sentences()(text)
    assert unit_texts(units) == list(sentences)
    assert [i for group in units.groups for i in group] == list(range(len(units.words)))


def test_a_long_text_is_split_in_linear_time() -> None:
    assert len(Sentences()("a b c . " * 20_000).groups) == 20_000
