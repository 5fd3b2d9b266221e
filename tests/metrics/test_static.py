"""f_static: one-to-one alignment of input embeddings, weighted by the idf table that is shipped."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import evenmatch as em
from evenmatch.models.backbone import load_input_embeddings
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.models.tokenizer import load_model_tokenizer
from evenmatch.vectors.weighting import SHIPPED_TABLES, load_idf_table, store_idf_table

TEXTS = ["The cat sat on the mat.", "A dog sat there, un\u00e9xpectedly!"]


@pytest.mark.model
def test_it_equals_the_formula_written_out() -> None:
    found = find_checkpoint("minilm")
    table, matrix = load_idf_table("english"), load_input_embeddings(found)
    tokenizer = load_model_tokenizer(found, False)
    x, y = (np.array(tokenizer.backend.encode(t, add_special_tokens=False).ids) for t in TEXTS)
    u, v = (matrix[i] / np.linalg.norm(matrix[i], axis=1, keepdims=True) for i in (x, y))
    similarity = u @ v.T
    rows, cols = linear_sum_assignment(similarity, maximize=True)
    df = dict(zip(table.keys.tolist(), table.counts.tolist(), strict=True))
    a, b = (
        np.array([np.log((table.documents + 1) / (df.get(int(i), 0) + 1)) for i in ids])
        for ids in (x, y)
    )
    precision = (a[rows] * similarity[rows, cols]).sum() / a.sum()
    recall = (b[cols] * similarity[rows, cols]).sum() / b.sum()
    score = em.score(TEXTS[:1], TEXTS[1:], "f_static").segments[0]
    assert (score.precision, score.recall) == pytest.approx((precision, recall), abs=1e-6)
    assert score.value == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-6)


@pytest.mark.model
def test_its_signature_names_the_table_by_content_and_rebuilds_it() -> None:
    scores = em.score(TEXTS[:1], TEXTS[1:], "f_static")
    assert SHIPPED_TABLES["english"] in scores.signature
    again = em.score(TEXTS[:1], TEXTS[1:], scores.signature.split(" \u00b7 ")[0])
    assert again.mean == scores.mean


@pytest.mark.parametrize("name", SHIPPED_TABLES)
def test_the_name_of_a_shipped_table_is_the_hash_of_its_content(name: str) -> None:
    assert store_idf_table(load_idf_table(name)) == SHIPPED_TABLES[name]


@pytest.mark.model
def test_it_loads_neither_torch_nor_transformers() -> None:
    code = (
        "import sys; import evenmatch as em; em.score(['a cat'], ['the cat'], 'f_static'); "
        "print({'torch', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.model
def test_its_units_are_readable() -> None:
    aligned = em.align("unbelievable cats", "cats", "f_static")
    assert aligned.candidate_units[-1] == "cats"
    assert "".join(aligned.candidate_units[:-1]) == "unbelievable"


_TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
_PIECES = st.sampled_from(
    ["cat", " ", "  ", "\t", "\u00a0", "\x1c", "[SEP]", "##s", "\u0301", "\u4e2d"]
)


@pytest.mark.model
@given(st.one_of(_TEXT, st.lists(_PIECES, max_size=12).map("".join)))
def test_tokens_of_cached_words_are_those_of_the_whole_text(text: str) -> None:
    tokenizer = load_model_tokenizer(find_checkpoint("minilm"), False)
    assert tokenizer.word_caches
    whole = tokenizer.backend.encode(text.strip()).ids
    assert tokenizer.token_ids([text])[0].tolist() == whole
