"""Texts below, at and above what a model can take."""

from __future__ import annotations

import numpy as np
import pytest

import evenmatch as em
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.models.tokenizer import owning_windows, sliding_windows
from tests.support.model_families import FAMILIES, LIMIT, Family, FolderOf

ALL = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


@ALL
def test_a_text_is_truncated_at_the_true_limit_of_its_model(
    family: Family, folder_of: FolderOf
) -> None:
    folder = folder_of(family.name)
    backbone = PretrainedBackbone(str(folder))
    assert backbone.open().tokenizer.max_tokens == LIMIT
    opening, closing = family.special_tokens
    for tokens in (LIMIT - 1, LIMIT, LIMIT + 1, 3 * LIMIT):
        text = of_length(backbone, tokens)
        (states,) = backbone.open().encode([text], [1])
        assert len(states.token_ids) == min(tokens, LIMIT)
        assert ("truncated" in states.flags) == (tokens > LIMIT)
        assert sorted(states.special_tokens) == [
            *range(opening),
            *range(len(states.token_ids) - closing, len(states.token_ids)),
        ]


def of_length(backbone: PretrainedBackbone, tokens: int) -> str:
    """A text that the model's tokenizer splits into so many tokens, special tokens included."""
    words: list[str] = []
    while len(backbone.open().tokenizer([" ".join(words)])[0].token_ids) < tokens:
        words.append("d")
    text = " ".join(words)
    if (
        len(backbone.open().tokenizer([text])[0].token_ids) > tokens
    ):  # where a letter makes two tokens
        text = " ".join(words[:-1]) + "d"
    assert len(backbone.open().tokenizer([text])[0].token_ids) == tokens
    return text


@ALL
def test_too_long_can_be_an_error(family: Family, folder_of: FolderOf) -> None:
    folder = str(folder_of(family.name))
    backbone = PretrainedBackbone(folder, long="error")
    backbone.open().encode([of_length(backbone, LIMIT)], [1])
    with pytest.raises(em.InputError, match=rf"has {LIMIT + 1} tokens and .* takes {LIMIT}; short"):
        backbone.open().encode([of_length(backbone, LIMIT + 1)], [1])


@ALL
def test_windows_cover_every_piece(family: Family, folder_of: FolderOf) -> None:
    folder = str(folder_of(family.name))
    whole, cut = PretrainedBackbone(folder, long="windows"), PretrainedBackbone(folder)
    for tokens in (LIMIT + 1, 2 * LIMIT, 5 * LIMIT):
        text = of_length(whole, tokens)
        (states,) = whole.open().encode([text], [0, 2])
        assert states.token_ids.tolist() == whole.open().tokenizer([text])[0].token_ids.tolist()
        assert states.layers[2].shape[0] == tokens
        assert states.flags == frozenset()
        # The beginning is seen as a truncated text's is, up to where the window's edge is felt.
        (start,) = cut.open().encode([text], [2])
        quarter = LIMIT // 4
        assert states.layers[2][:quarter] == pytest.approx(start.layers[2][:quarter], abs=1e-5)


@ALL
def test_windows_change_nothing_for_a_text_that_fits(family: Family, folder_of: FolderOf) -> None:
    folder = str(folder_of(family.name))
    for tokens in (5, LIMIT):
        text = of_length(PretrainedBackbone(folder), tokens)
        whole, plain = (
            PretrainedBackbone(folder, long).open().encode([text], [3])[0].layers[3]
            for long in ("windows", "truncate")
        )
        assert np.array_equal(whole, plain)


@ALL
def test_a_truncated_text_is_flagged_in_its_score(family: Family, folder_of: FolderOf) -> None:
    folder = str(folder_of(family.name))
    texts = [of_length(PretrainedBackbone(folder), n) for n in (LIMIT, LIMIT + 1)]
    for name in ("bertscore", "f_disc", "f_cont"):
        metric = f"{name}(model={folder!r}, layer=1)"
        flags = [s.flags for s in em.score(texts, ["d", "d"], metric).segments]
        assert flags == [frozenset(), frozenset({"truncated"})]
        flags = [s.flags for s in em.score(["d", "d"], texts, metric).segments]
        assert flags == [frozenset(), frozenset({"truncated"})]


def test_units_beyond_the_limit_keep_their_place_without_weight(folder_of: FolderOf) -> None:
    encoder = em.Transformer(str(folder_of("bert")), 1)
    units = em.Words()("d " * (LIMIT + 6))
    (found,) = encoder([units])
    assert len(found.weights) == LIMIT + 6
    assert found.weights.tolist() == [1.0] * (LIMIT - 2) + [0.0] * 8
    assert not found.vectors[LIMIT:].any()
    assert found.flags == {"truncated"}


@pytest.mark.parametrize("count", [1, 4, 5, 9, 10, 50])
def test_windows_overlap_and_leave_nothing_out(count: int) -> None:
    cuts = sliding_windows(count, 4)
    assert {i for a, b in cuts for i in range(a, b)} == set(range(count))
    assert all(b - a == min(4, count) for a, b in cuts)
    owner = owning_windows(count, 4)
    assert all(cuts[w][0] <= item < cuts[w][1] for item, w in enumerate(owner))
