"""N-gram metrics as parts: specs, signatures, settings, and what they need."""

from __future__ import annotations

import importlib.metadata
import math
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import _lcs_table

import evenmatch as em
from evenmatch.errors import DataError, InputError, MissingExtraError
from evenmatch.metrics.ngram.meteor import wordnet
from evenmatch.metrics.ngram.rouge import lcs_length
from evenmatch.metrics.ngram.tokens import mostly_latin, tokenize_texts
from evenmatch.protocols import Metric
from evenmatch.units.keyphrases import get_stemmer

PACKAGES = {
    "bleu": "sacrebleu",
    "chrf": "sacrebleu",
    "ter": "sacrebleu",
    "rouge": "rouge-score",
    "bleu_nltk": "nltk",
    "chrf_nltk": "nltk",
    "nist": "nltk",
    "meteor": "nltk",
}
SPECS = (
    *PACKAGES,
    "bleu(tokenizer='zh', lowercase=True, smoothing='add-k', order=2)",
    "chrf(word_order=2)",
    "chrf(char_order=4, beta=3.0, lowercase=True, whitespace=True, eps_smoothing=True)",
    "ter(normalized=True, no_punct=True, asian_support=True, case_sensitive=True)",
    "rouge(stemmer=True)",
    "rouge(share='2', tokenizer='words')",
    "rouge(share='L', stemmer=True, tokenizer='rouge')",
    "bleu_nltk(order=2, smoothing=4, tokenizer='whitespace')",
    "chrf_nltk(min_order=2, max_order=3, beta=1.0, whitespace=True)",
    "nist(order=2, tokenizer='words')",
    "meteor(alpha=0.5, beta=1.0, gamma=0.2, tokenizer='whitespace')",
)
PAIRS = [
    em.Pair("A cat sat here.", ("The cat is sitting here.", "Cats sit.")),
    em.Pair("Привет, мир", ("Здравствуй, мир",)),
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_spec_builds_a_metric_that_says_its_spec(spec: str) -> None:
    metric = em.build(spec)
    assert isinstance(metric, Metric)
    assert em.spec(metric) == spec
    assert pickle.loads(pickle.dumps(metric)) == metric


@pytest.mark.parametrize("spec", SPECS)
def test_a_signature_names_the_library_and_rebuilds_the_scores(spec: str) -> None:
    scores = em.build(spec)(PAIRS)
    recipe, *facts = scores.signature.split(" · ")
    package = PACKAGES[spec.partition("(")[0]]
    assert f"{package} {importlib.metadata.version(package)}" in facts
    assert em.build(recipe)(PAIRS) == scores


def test_rouge_names_differ_in_the_kind_of_overlap() -> None:
    assert em.build("rouge1(stemmer=True)") == em.build("rouge(share='1', stemmer=True)")
    assert em.build("rouge2") == em.build("rouge(share='2')")
    assert em.build("rougeL") == em.build("rouge(share='L')")


def test_meteors_signature_names_its_wordnet_by_content() -> None:
    assert em.build("meteor").signature.endswith(" · wordnet@1ce780a56662")


@pytest.mark.parametrize("name", PACKAGES)
def test_only_ter_is_better_lower(name: str) -> None:
    assert em.build(name).higher_is_better is (name != "ter")


@pytest.mark.parametrize("name", PACKAGES)
def test_only_ter_and_nist_have_no_upper_end(name: str) -> None:
    low, high = em.build(name).bounds
    assert (low, math.isinf(high)) == (0, name in ("ter", "nist"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bleu(order=0)", "bleu's order must be at least 1, got 0"),
        ("chrf(char_order=0)", "chrf needs a char_order of at least 1"),
        ("chrf(beta=0)", "a beta above 0, got 6, 0 and 0"),
        ("bleu_nltk(order=0)", "bleu_nltk's order must be at least 1, got 0"),
        ("chrf_nltk(min_order=3, max_order=2)", "chrf_nltk needs 1 <= min_order <= max_order"),
        ("nist(order=-1)", "nist's order must be at least 1, got -1"),
        ("meteor(gamma=2)", "meteor needs alpha and gamma between 0 and 1"),
        ("bleu(tokenizer='moses')", "tokenizer takes '13a' or 'intl'"),
        ("bleu_nltk(smoothing=6)", "smoothing takes 1 or 2 or 3 or 4, got 6"),
    ],
)
def test_settings_out_of_range_are_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        em.build(spec)


@pytest.mark.parametrize("name", PACKAGES)
def test_pairs_that_could_be_misread_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="must be a tuple of strings, got one string"):
        em.build(name)([em.Pair("a", "a b")])  # type: ignore[arg-type]  # the mistake meant


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_library_is_named_with_the_line_that_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = PACKAGES[name].replace("-", "_")
    for module in [m for m in sys.modules if m == top or m.startswith(f"{top}.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, top, None)
    with pytest.raises(
        MissingExtraError, match=r"install it with: pip install 'evenmatch\[ngram\]"
    ):
        em.build(name)(PAIRS)


def test_the_signature_of_a_metric_whose_library_is_missing_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    with pytest.raises(MissingExtraError, match="this metric needs sacrebleu; install it with"):
        em.build("bleu").signature


def test_a_tokenizer_that_needs_mecab_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    with pytest.raises(MissingExtraError, match=r"needs mecab; .*pip install 'sacrebleu\[ja\]'"):
        em.score(["猫"], ["猫"], "bleu(tokenizer='ja-mecab')")


def test_meteor_without_wordnet_says_how_to_fetch_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENMATCH_MODELS", str(tmp_path))
    with pytest.raises(DataError, match=r"'wordnet' is not in .*evenmatch models get wordnet"):
        em.score(["a"], ["a"], "meteor")


def test_wordnet_is_read_once() -> None:
    assert wordnet() is wordnet()


def test_the_metrics_can_be_named_without_loading_their_libraries() -> None:
    code = (
        "import sys, evenmatch; "
        f"[evenmatch.spec(evenmatch.build(s)) for s in {SPECS!r}]; "
        "print({'nltk', 'sacrebleu', 'rouge_score', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_the_longest_common_subsequence_is_rouge_scores(a: list[str], b: list[str]) -> None:
    assert lcs_length(a, b) == _lcs_table(a, b)[-1][-1]


@pytest.mark.parametrize(
    ("texts", "latin"),
    [
        (("plain text", "more text"), True),
        (("naïve façade", "Über"), True),
        (("“quoted” — text…", "text"), True),
        (("the 猫 sat", "the cat sat"), True),
        (("1 2 3", "4"), True),
        (("我爱 Python", "我爱编程"), False),
        (("привет", "hello"), False),
        (("!!!", "?"), False),
        (("", ""), False),
        (("😀", "😀"), False),
    ],
)
def test_a_pair_is_latin_where_latin_words_prevail(texts: tuple[str, str], latin: bool) -> None:
    assert mostly_latin(*texts) is latin


def test_both_sides_of_a_pair_are_tokenized_alike() -> None:
    assert tokenize_texts("auto", "the cat.", "the 猫.") == [["the", "cat."], ["the", "猫."]]
    assert tokenize_texts("words", "the cat.", "the 猫.") == [
        ["the", "cat", "."],
        ["the", "猫", "."],
    ]
    assert tokenize_texts("whitespace", "猫です。", "犬 です。") == [["猫です。"], ["犬", "です。"]]


def test_stems_are_porters() -> None:
    assert [get_stemmer().stem(word) for word in ("running", "flies")] == ["run", "fli"]
