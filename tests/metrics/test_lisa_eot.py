from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.scoring.reducers import Average, Prf
from evenmatch.types import Alignment, Embedded, Units
from tests.support.small_models import save_causal

PAIRS = [("the cat sat", "a cat is sitting"), ("stock prices fell", "we like to swim at night")]


@pytest.mark.model
def test_it_is_the_cosine_of_the_last_hidden_states_of_the_closing_tokens() -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = PretrainedBackbone("minilm").checkpoint().folder
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModel.from_pretrained(folder).eval()
    scores = em.score([c for c, _ in PAIRS], [r for _, r in PAIRS], "eot").segments
    for pair, score in zip(PAIRS, scores, strict=True):
        with torch.no_grad():
            x, y = (
                model(**tokenizer(t, return_tensors="pt")).last_hidden_state[0, -1] for t in pair
            )
        wanted = torch.nn.functional.cosine_similarity(x, y, dim=0).item()
        assert score.value == pytest.approx(wanted, abs=1e-5)


def test_without_a_closing_token_it_is_the_cosine_of_the_last_tokens(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from transformers import AutoModel, AutoTokenizer

    folder = save_causal(tmp_path)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModel.from_pretrained(folder).eval()
    spec = f"eot(model={str(folder)!r})"
    found = em.score([c for c, _ in PAIRS], [r for _, r in PAIRS], spec).segments
    for pair, score in zip(PAIRS, found, strict=True):
        with torch.no_grad():  # as in bert_score, a text begins with a space for such a tokenizer
            x, y = (
                model(**tokenizer(f" {t}", return_tensors="pt")).last_hidden_state[0, -1]
                for t in pair
            )
        wanted = torch.nn.functional.cosine_similarity(x, y, dim=0).item()
        assert score.value == pytest.approx(wanted, abs=1e-5)
    assert em.align("the cat", "the dog", spec).candidate_units[0].strip() == "cat"


@pytest.mark.model
def test_the_closing_token_is_the_only_unit() -> None:
    aligned = em.align("the cat", "the dog", "eot")
    assert aligned.candidate_units == aligned.reference_units == ["[SEP]"]
    assert aligned.pairs == [(0, 0, 1.0)]


@pytest.mark.model
def test_padding_is_no_matter_to_the_closing_token() -> None:
    spec = "align(units=closing, vectors=transformer(layer='last', pad_to={}), scoring=average)"
    plain, padded = (em.score([PAIRS[0][0]], [PAIRS[0][1]], spec.format(n)) for n in (0, 40))
    assert plain.mean == pytest.approx(padded.mean, abs=1e-5)


@pytest.mark.model
def test_a_truncated_text_keeps_its_closing_token() -> None:
    score = em.score(["word " * 600], ["word " * 600], "eot").segments[0]
    assert score.value == pytest.approx(1.0, abs=1e-5)
    assert score.flags == {"truncated"}


def test_vectors_of_words_have_no_closing_token() -> None:
    with pytest.raises(InputError, match="words have no closing token"):
        em.score(["a"], ["b"], "align(units=closing, vectors=hashed)")


@pytest.mark.model
def test_a_model_that_closes_no_text_is_refused(tmp_path: Any) -> None:
    table = tmp_path / "vectors.txt"
    table.write_text("a 1 0\nb 0 1\n")
    with pytest.raises(InputError, match="puts no closing token after a text"):
        em.score(["a"], ["b"], f"align(units=closing, vectors=lookup(table={str(table)!r}))")


def unit() -> Embedded:
    return Embedded(Units("x"), np.ones((1, 1)), np.ones(1), np.ones(1))


def test_an_average_may_be_negative_where_an_f_is_not() -> None:
    similarity, pair = np.array([[-0.25]]), Alignment(np.ones((1, 1)), np.ones((1, 1)))
    assert Average()(similarity, pair, unit(), unit()).value == -0.25
    assert Prf()(similarity, pair, unit(), unit()).value == 0


def test_an_average_knows_its_bounds() -> None:
    assert Average().score_bounds(-1.0, 1.0) == (-1.0, 1.0)
    assert em.Rescale(low=0.5, base=Average()).score_bounds(-1.0, 1.0) == (-3.0, 1.0)
