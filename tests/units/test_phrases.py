from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.units.keyphrases import Phrases

WORDS = Phrases(tokens="words")


def test_each_phrase_is_a_unit_of_stems() -> None:
    units = Phrases()("Neural networks;parsing ; deep  learning")
    assert units.items == ("neural network", "pars", "deep learn")
    assert units.groups == ((0, 1), (2,), (3, 4))


def test_spans_refer_to_the_text_as_given() -> None:
    units = Phrases()("Neural networks; parsing")
    assert [units.text[a:b] for a, b in units.spans] == ["Neural", "networks", "parsing"]


def test_empty_phrases_and_the_peos_token_are_dropped() -> None:
    assert Phrases()(";; a ;<peos>; ; b;").items == ("a", "b")


def test_stemming_can_be_disabled() -> None:
    assert Phrases(stem="none")("Neural Networks").items == ("neural networks",)


def test_words_of_any_script_are_split_and_hyphens_are_spaces() -> None:
    assert WORDS("real-time systems (RT)").items == ("real time system ( rt )",)
    assert WORDS("神经网络").items == ("神 经 网 络",)


def test_special_tokens_stay_whole() -> None:
    assert WORDS("a <unk>, <digit>").words == ("a", "<unk>", ",", "<digit>")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a graph ( e.g. a tree ) , of course .", "whitespace"),
        ("A graph, e.g. a tree, of course.", "words"),
        ("graphs and trees", "whitespace"),
        ("一只猫坐在垫子上", "words"),
        ("", "whitespace"),
    ],
)
def test_auto_tokens_follow_from_the_text(text: str, tokens: str) -> None:
    assert Phrases().resolve_tokens(text).tokens == tokens


def test_an_explicit_setting_is_kept() -> None:
    assert Phrases(tokens="whitespace").resolve_tokens("A graph, a tree.").tokens == "whitespace"


def test_running_text_is_split_like_phrases() -> None:
    assert Phrases().tokenize("Neural networks, parsing.") == [
        "neural",
        "network",
        ",",
        "pars",
        ".",
    ]
    assert Phrases().tokenize("neural networks , e.g.") == ["neural", "network", ",", "e.g."]


@given(st.text(alphabet="ab;<>peos .,-猫é\u0301", max_size=30))
def test_every_word_matches_its_span(text: str) -> None:
    for splitter in (Phrases(stem="none"), Phrases(stem="none", tokens="words")):
        units = splitter(text)
        assert [text[a:b].lower() for a, b in units.spans] == list(units.words)
        assert [i for group in units.groups for i in group] == list(range(len(units.words)))


def test_a_separator_must_not_be_white_space() -> None:
    with pytest.raises(InputError, match="separator of phrases cannot be white space, got ' '"):
        Phrases(separator=" ")


def test_a_spec_names_the_splitter() -> None:
    assert em.build("phrases(stem='none')") == Phrases(stem="none")
