"""Adapters in whole models: in the encoder and in the decoder, beside the model without."""

from __future__ import annotations

from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.models.adapters import Adapter, find_adapter, new_adapter, save_adapter
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.models.heads import HeadedModel
from tests.support.model_families import BLOCKS
from tests.support.small_models import save

pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> HeadedModel:
    """Four blocks that encode, and one that decodes."""
    folder = save(tmp_path_factory.mktemp("bart"), "bart", "AutoModelForSeq2SeqLM")
    return HeadedModel(find_checkpoint(str(folder)), "seq2seq")


def large(blocks: int, only: int | None = None) -> Adapter:
    """An adapter that plainly changes what comes out, perhaps of one block only."""
    weights = new_adapter(16, blocks, factor=4, seed=3).weights
    return Adapter(
        {
            name: weight.detach() * (30 if only is None or name.startswith(f"{only}.") else 0)
            for name, weight in weights.items()
        }
    )


def test_the_decoder_s_blocks_lie_above_the_encoder_s(bart: HeadedModel) -> None:
    kinds = [type(block).__name__ for block in bart.copy_blocks().stack]
    assert kinds == ["BartEncoderLayer"] * BLOCKS + ["BartDecoderLayer"]


@pytest.mark.parametrize("only", [0, BLOCKS])
def test_an_adapter_of_one_block_changes_the_score(
    bart: HeadedModel, only: int, tmp_path: Path
) -> None:
    save_adapter(large(BLOCKS + 1, only), tmp_path, {})
    spec = f"bartscore(model={str(bart.checkpoint.folder)!r}"
    plain, adapted = (f"{spec})", f"{spec}, adapter={str(tmp_path)!r})")
    found = em.score(["a cat"], ["the dog"], [plain, adapted])
    assert abs(found[plain].mean - found[adapted].mean) > 1e-4


def test_a_model_with_an_adapter_shares_the_weights_of_the_one_without(
    bart: HeadedModel, tmp_path: Path
) -> None:
    save_adapter(large(2), tmp_path, {})
    adapted, plain = bart.with_adapter(find_adapter(str(tmp_path))), bart.with_adapter(None)
    assert adapted is not plain
    assert all(a is b for a, b in zip(adapted.parameters(), plain.parameters(), strict=True))


def test_an_adapter_with_more_blocks_than_the_model_is_refused(
    bart: HeadedModel, tmp_path: Path
) -> None:
    save_adapter(large(BLOCKS + 2), tmp_path, {})
    with pytest.raises(InputError, match="for 6 blocks of hidden size 16, and this model has 5 of"):
        bart.with_adapter(find_adapter(str(tmp_path)))


def test_a_model_whose_blocks_are_one_is_refused(tmp_path: Path) -> None:
    folder = save(tmp_path, "albert", "AutoModelForSequenceClassification", num_labels=1)
    with pytest.raises(InputError, match=r"type 'albert' .* their blocks share one set of weights"):
        HeadedModel(find_checkpoint(str(folder)), "regression").copy_blocks()
