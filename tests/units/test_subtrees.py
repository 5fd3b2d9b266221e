from __future__ import annotations

import math
from pathlib import Path

import pytest

from evenmatch.errors import DataError, InputError
from evenmatch.units.parsers.files import ParseFile
from evenmatch.units.subtrees import Constituents, Subtrees
from tests.support.parses import BY, HAVING, write_brackets, write_conllu


@pytest.fixture
def figure(tmp_path: Path) -> ParseFile:
    return ParseFile(write_conllu(tmp_path))


@pytest.mark.parametrize(("text", "unique", "multiset"), [(HAVING, 18, 28), (BY, 16, 27)])
def test_figure_1_has_the_published_numbers_of_units(
    figure: ParseFile, text: str, unique: int, multiset: int
) -> None:
    assert len(Subtrees(figure)(text).groups) == unique
    assert len(Subtrees(figure, multiset=True)(text).groups) == multiset


@pytest.mark.parametrize(("kind", "count"), [("nodes", 8), ("paths", 12), ("descendants", 8)])
def test_each_kind_of_unit_can_be_selected(figure: ParseFile, kind: str, count: int) -> None:
    nodes, paths, descendants = (kind == own for own in ("nodes", "paths", "descendants"))
    units = Subtrees(figure, nodes, paths, descendants)(HAVING)
    assert len(units.groups) == count


def test_paths_of_the_girl_are_those_of_appendix_c(figure: ParseFile) -> None:
    units = Subtrees(figure, nodes=False, descendants=False)(HAVING)
    own = [item for item, top in zip(units.items, units.labels, strict=True) if top == "girl"]
    assert own == ["a girl", "girl having a telescope"]


def test_a_unit_is_labelled_by_its_topmost_word(figure: ParseFile) -> None:
    units = Subtrees(figure)(HAVING)
    labels = dict(zip(units.items, units.labels, strict=True))
    assert labels["having a telescope"] == "having"
    assert labels[HAVING] == "saw"


def test_labels_can_be_lower_case(figure: ParseFile) -> None:
    assert Subtrees(figure, lower=True)(HAVING).labels[0] == "i"


def test_units_of_all_sentences_are_joined(figure: ParseFile) -> None:
    units = Subtrees(figure)(f"{HAVING} {BY}")
    assert len(units.groups) == 18 + 16
    assert [units.text[a:b] for a, b in units.spans[8:11]] == ["I", "saw", "a"]


def test_length_weights_are_logarithms(figure: ParseFile) -> None:
    units = Subtrees(figure, weight="log_length")(HAVING)
    assert units.weights == tuple(math.log(len(group)) for group in units.groups)


def test_single_words_have_equal_weights(tmp_path: Path) -> None:
    parser = ParseFile(write_conllu(tmp_path, {"go": (0,)}))
    assert Subtrees(parser, weight="log_length")("go").weights == ()


def test_units_beyond_the_limit_are_dropped_and_the_text_flagged(figure: ParseFile) -> None:
    units = Subtrees(figure, most_words=8)(HAVING)
    assert (len(units.groups), units.flags) == (18, frozenset())
    two = Subtrees(figure, most_words=8)(f"{HAVING} {BY}")
    assert (len(two.groups), two.flags) == (18, frozenset({"truncated"}))


def test_selecting_no_kind_of_unit_is_refused(figure: ParseFile) -> None:
    with pytest.raises(InputError, match="needs at least one of nodes, paths and descendants"):
        Subtrees(figure, nodes=False, paths=False, descendants=False)


@pytest.mark.parametrize("splitter", [Subtrees, Constituents])
def test_a_limit_below_one_word_is_refused(splitter: type[Subtrees | Constituents]) -> None:
    with pytest.raises(InputError, match="most_words must be at least 1, got 0"):
        splitter(most_words=0)


def test_an_empty_text_has_no_units(figure: ParseFile) -> None:
    assert Subtrees(figure)(" ").groups == ()


TREE = "(S (NP (NNP Rome)) (VP (VBD fell) (PP (IN in) (NP (DT a) (NN day)))))"
ROME = "Rome fell in a day"


def test_every_constituent_is_a_unit_words_with_their_tags_too(tmp_path: Path) -> None:
    units = Constituents(ParseFile(write_brackets(tmp_path, TREE)), label="phrase")(ROME)
    assert list(zip(units.labels, units.items, strict=True)) == [
        ("S", ROME),
        ("NP", "Rome"),
        ("NNP", "Rome"),
        ("VP", "fell in a day"),
        ("VBD", "fell"),
        ("PP", "in a day"),
        ("IN", "in"),
        ("NP", "a day"),
        ("DT", "a"),
        ("NN", "day"),
    ]


def test_constituents_are_labelled_by_head_and_words_can_be_left_out(tmp_path: Path) -> None:
    parser = ParseFile(write_brackets(tmp_path, TREE))
    units = Constituents(parser, words=False)(ROME)
    assert units.labels == ("fell", "Rome", "fell", "in", "day")


def test_the_wrong_kind_of_tree_is_refused_with_a_suggestion(
    figure: ParseFile, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"wrap it in phrase_trees\(base=...\)"):
        Constituents(figure)(HAVING)
    with pytest.raises(InputError, match="use constituents, or a dependency parser"):
        Subtrees(ParseFile(write_brackets(tmp_path, TREE)))(ROME)


def test_a_text_missing_from_the_file_is_named(figure: ParseFile) -> None:
    with pytest.raises(DataError, match="contains no parse of 'never parsed'"):
        Subtrees(figure)("never parsed")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no parse file"):
        Subtrees(ParseFile(str(tmp_path / "no.conllu")))("x")


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = write_brackets(tmp_path, "(S (NP x)")
    with pytest.raises(DataError, match=r"hand.ptb: a bracketed tree is not closed"):
        Constituents(ParseFile(path))("x")


def test_quotes_and_brackets_are_found_in_any_form(tmp_path: Path) -> None:
    tree = "(NP (`` ``) (NN x) ('' '') (PRN (-LRB- -LRB-) (NN y) (-RRB- -RRB-)))"
    units = Constituents(ParseFile(write_brackets(tmp_path, tree)))("“x” (y)")
    assert [units.text[a:b] for a, b in units.spans] == ["“", "x", "”", "(", "y", ")"]
