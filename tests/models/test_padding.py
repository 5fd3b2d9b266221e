from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.models import embedding_cache
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.models.loading import quiet_transformers
from evenmatch.scoring.engine import chunk_pairs
from evenmatch.types import Array, Pair
from tests.support.model_families import BLOCKS, FAMILIES, Family, FolderOf

TEXTS = ["the cat sat on the mat", "rain", "", "the dog sat on the mat and looked at the fox"]
ALL = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
LENGTH = 20


def by_transformers(folder: Path, text: str) -> Array:
    """The last hidden states of a padded text, its padding hidden from it."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    with quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model: Any = AutoModel.from_pretrained(folder).eval()
    if "ByteLevel" in repr(tokenizer.backend_tokenizer.pre_tokenizer):
        text = " " + text
    given = tokenizer(
        text, padding="max_length", max_length=LENGTH, truncation=True, return_tensors="pt"
    )
    encoder = model.get_encoder() if model.config.is_encoder_decoder else model
    with torch.no_grad():
        states = encoder(given.input_ids, attention_mask=given.attention_mask)
    found: Array = states.last_hidden_state[0].numpy()
    return found


@ALL
def test_paddings_get_the_vectors_that_transformers_gives_them(
    family: Family, folder_of: FolderOf
) -> None:
    folder = folder_of(family.name)
    for text in ("the cat sat on the mat", "rain"):
        encoder = em.Transformer(str(folder), layer=BLOCKS, pad_to=LENGTH)
        found = encoder([em.Pieces(marks=True)(text)])[0].vectors
        assert found == pytest.approx(by_transformers(folder, text), abs=1e-5)


@ALL
def test_padding_moves_no_piece_of_the_text(family: Family, folder_of: FolderOf) -> None:
    folder = str(folder_of(family.name))
    layers = [0, 2, BLOCKS]
    plain = PretrainedBackbone(folder).open().encode(TEXTS, layers)
    padded = PretrainedBackbone(folder, pad_to=LENGTH).open().encode(TEXTS, layers)
    for before, after in zip(plain, padded, strict=True):
        count = min(len(before.token_ids), LENGTH)
        assert len(after.token_ids) == len(after.spans) == LENGTH
        assert all(i in after.special_tokens for i in range(count, LENGTH))
        if len(before.token_ids) <= LENGTH:
            assert after.token_ids[:count].tolist() == before.token_ids.tolist()
            for layer in layers:
                assert after.layers[layer][:count] == pytest.approx(before.layers[layer], abs=1e-5)


def test_paddings_are_units_without_weight(folder_of: FolderOf) -> None:
    encoder = em.Transformer(str(folder_of("bert")), layer=1, pad_to=LENGTH)
    marked, unmarked = (encoder([em.Pieces(marks=m)("rain")])[0] for m in (True, False))
    plain = em.Transformer(str(folder_of("bert")), layer=1)([em.Pieces()("rain")])[0]
    count = len(plain.weights)
    assert marked.weights.tolist() == [0] + [1] * count + [0] * (LENGTH - count - 1)
    assert marked.mass.tolist() == [1] * LENGTH
    assert unmarked.vectors == pytest.approx(plain.vectors, abs=1e-5)


def test_a_padded_text_is_truncated_at_its_length(folder_of: FolderOf) -> None:
    encoder = em.Transformer(str(folder_of("bert")), layer=1, pad_to=6)
    found = encoder([em.Pieces(marks=True)("the cat sat on the mat and looked at the dog")])[0]
    assert found.weights.tolist() == [0, 1, 1, 1, 1, 0]
    assert found.flags == {"truncated"}


def test_an_empty_text_has_no_units_however_long_its_padding(folder_of: FolderOf) -> None:
    encoder = em.Transformer(str(folder_of("bert")), layer=1, pad_to=LENGTH)
    assert len(encoder([em.Pieces(marks=True)(" ")])[0].weights) == 0


def test_padded_vectors_do_not_depend_on_their_batch(folder_of: FolderOf) -> None:
    encoder = em.Transformer(str(folder_of("bert")), layer=2, pad_to=LENGTH)
    units = [em.Pieces(marks=True)(text) for text in TEXTS]
    for unit, together in zip(units, encoder(units), strict=True):
        assert together.vectors == pytest.approx(encoder([unit])[0].vectors, abs=1e-6)


def test_padded_and_plain_texts_are_cached_apart(folder_of: FolderOf) -> None:
    folder = str(folder_of("bert"))
    named = {PretrainedBackbone(folder, pad_to=n).open()._identity for n in (0, 10, 20)}
    assert len(named) == 3


def test_padding_survives_the_cache(folder_of: FolderOf) -> None:
    states = (
        PretrainedBackbone(str(folder_of("bert")), pad_to=LENGTH).open().encode(["rain"], [1])[0]
    )
    (again,) = embedding_cache.states_from_bytes(
        ["rain"], 1, [embedding_cache.states_to_bytes(states, 1, exact=True)]
    )
    assert again.special_tokens == states.special_tokens
    assert again.token_ids.tolist() == states.token_ids.tolist()
    assert np.array_equal(again.layers[1], states.layers[1])


def test_idf_counts_no_paddings(folder_of: FolderOf) -> None:
    folder = str(folder_of("bert"))
    plain, padded = (
        next(PretrainedBackbone(folder, pad_to=n).open().token_ids(["rain"])) for n in (0, LENGTH)
    )
    assert plain.tolist() == padded.tolist()


@pytest.mark.parametrize(
    ("pad_to", "message"),
    [
        (2, "can be padded to 3 up to 24 tokens, got 2"),
        (25, "can be padded to 3 up to 24 tokens, got 25"),
    ],
)
def test_lengths_a_model_cannot_have_are_refused(
    folder_of: FolderOf, pad_to: int, message: str
) -> None:
    encoder = em.Transformer(str(folder_of("bert")), layer=1, pad_to=pad_to)
    with pytest.raises(InputError, match=message):
        encoder([em.Pieces()("rain")])


def test_a_length_no_model_has_is_refused() -> None:
    with pytest.raises(InputError, match=r"pad_to must be 0 \(no padding\) to 4096, got -1"):
        em.Transformer(pad_to=-1)
    with pytest.raises(InputError, match="leave out long='windows' or pad_to"):
        em.Transformer(pad_to=10, long="windows")


def test_a_model_without_a_padding_token_is_refused(
    folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dataclasses

    from evenmatch.models import backbone

    padded = PretrainedBackbone(str(folder_of("bert")), pad_to=10)
    without = dataclasses.replace(PretrainedBackbone(padded.model).open().tokenizer, padding=None)
    monkeypatch.setattr(backbone, "load_model_tokenizer", lambda *_: without)
    with pytest.raises(InputError, match="has no padding token; leave its texts unpadded"):
        padded.open().encode(["rain"], [1])


def test_windows_of_padded_texts_hold_fewer_pairs() -> None:
    pairs = [Pair(f"a {i}", (f"b {i}",)) for i in range(500)]
    plain, padded = ([len(w) for w, _ in chunk_pairs(pairs, pad_to)] for pad_to in (0, 384))
    assert plain == [500]
    assert sum(padded) == 500
    # no more than about 16 million similarities at a time
    assert max(padded) * 384 * 384 <= 16e6
