"""A BERT read without transformers: the same states, and transformers is never loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.models import checkpoints, fast_bert
from evenmatch.models.backbone import (
    Blocks,
    Forward,
    PretrainedBackbone,
    load_blocks,
    load_trainable_blocks,
    run_forward,
)
from evenmatch.models.loading import load_bert_tokenizer, load_packed_model
from evenmatch.models.tokenizer import load_transformers_tokenizer
from evenmatch.types import Array
from tests.support.model_families import FolderOf

LAYERS = [0, 2, 4]
TEXTS = ["the quick brown fox", "a cat sat on the mat", "rain", "", "Prices fell by 3 percent."]


@pytest.fixture
def folder(folder_of: FolderOf, tmp_path: Path) -> Path:
    """A tiny BERT of one's own to change."""
    import shutil

    return Path(shutil.copytree(folder_of("bert"), tmp_path / "bert"))


def _changed(folder: Path, name: str, **settings: Any) -> checkpoints.Checkpoint:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return checkpoints.find_checkpoint(str(folder))


@pytest.mark.parametrize("lengths", [[9, 9, 9], [9, 4, 7]], ids=["whole", "padded"])
def test_its_states_are_those_of_transformers(folder: Path, lengths: list[int]) -> None:
    ids = np.random.default_rng(0).integers(5, 60, (3, 9))
    ours, theirs = (
        _states(blocks, lambda forward: run_forward(forward, ids, lengths, "cpu"))
        for blocks in _both(folder)
    )
    real = np.array([place < length for length in lengths for place in range(9)])
    for layer in LAYERS:
        assert ours[layer][real] == pytest.approx(theirs[layer][real], abs=2e-6)


def test_texts_end_to_end_do_not_see_each_other(folder: Path) -> None:
    lengths = [9, 7, 7, 3, 1]
    ids = np.random.default_rng(1).integers(5, 60, sum(lengths))
    ours, theirs = _both(folder)
    together = _states(ours, lambda forward: run_forward(forward, ids, lengths, "cpu"))
    stop = 0
    for length in lengths:
        start, stop = stop, stop + length
        alone, plain = (_alone(blocks, ids[start:stop]) for blocks in (ours, theirs))
        for layer in LAYERS:
            np.testing.assert_array_equal(together[layer][start:stop], alone[layer])
            assert alone[layer] == pytest.approx(plain[layer], abs=2e-6)


SIZES = {
    "vocab_size": 64,
    "hidden_size": 16,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
SPECIAL = dict.fromkeys(("bos_token_id", "cls_token_id", "eos_token_id", "sep_token_id"), 2)
RELATIVES: dict[str, tuple[str, dict[str, Any]]] = {
    "roberta": ("Roberta", {**SIZES, "max_position_embeddings": 102}),
    "xlm-roberta": ("XLMRoberta", {**SIZES, "max_position_embeddings": 102}),
    "camembert": ("Camembert", {**SIZES, "max_position_embeddings": 102}),
    "electra": ("Electra", {**SIZES, "embedding_size": 8}),
    "distilbert": (
        "DistilBert",
        {"vocab_size": 64, "dim": 16, "n_layers": 4, "n_heads": 2, "hidden_dim": 32},
    ),
    "mpnet": ("MPNet", SIZES),
    "modernbert": ("ModernBert", {**SIZES, **SPECIAL, "pad_token_id": 0, "local_attention": 8}),
}


@pytest.mark.parametrize("name", RELATIVES)
def test_relatives_of_bert_give_the_states_of_transformers(name: str, tmp_path: Path) -> None:
    """Packed texts, one of them with a padding token inside and one longer than local attention."""
    import torch
    import transformers

    prefix, settings = RELATIVES[name]
    torch.manual_seed(0)
    model = getattr(transformers, f"{prefix}Model")(
        getattr(transformers, f"{prefix}Config")(**settings)
    )
    for parameter in model.parameters():  # biases and norms start as zeros and ones
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(tmp_path)
    lengths = [40, 9, 7, 7, 1]
    ids = np.random.default_rng(2).integers(3, 60, sum(lengths))
    ids[44] = 1  # the padding token of RoBERTa and MPNet
    ours, theirs = _both(tmp_path)
    together = _states(ours, lambda forward: run_forward(forward, ids, lengths, "cpu"))
    stop = 0
    for length in lengths:
        start, stop = stop, stop + length
        plain = _alone(theirs, ids[start:stop])
        for layer in LAYERS:
            assert together[layer][start:stop] == pytest.approx(plain[layer], abs=2e-6)


@pytest.mark.parametrize("name", RELATIVES)
def test_relatives_of_bert_ignore_padding(name: str, tmp_path: Path) -> None:
    import torch
    import transformers

    prefix, settings = RELATIVES[name]
    torch.manual_seed(1)
    config = getattr(transformers, f"{prefix}Config")(**settings)
    getattr(transformers, f"{prefix}Model")(config).save_pretrained(tmp_path)
    ids, lengths = np.random.default_rng(3).integers(3, 60, (2, 20)), [20, 11]
    ids[1, 11:] = config.pad_token_id
    ours, theirs = (
        _states(blocks, lambda forward: run_forward(forward, ids, lengths, "cpu"))
        for blocks in _both(tmp_path)
    )
    real = np.array([place < length for length in lengths for place in range(20)])
    for layer in LAYERS:
        assert ours[layer][real] == pytest.approx(theirs[layer][real], abs=2e-6)


def test_weights_that_cannot_be_prepacked_give_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = checkpoints.find_checkpoint(str(folder))
    packed = PretrainedBackbone(str(folder)).open().encode(TEXTS, LAYERS)
    assert (
        load_blocks(checkpoint, False, "cpu").module.blocks[0].query_key_value._packed_weight
        is not None
    )
    load_blocks.cache_clear()
    monkeypatch.setattr(fast_bert, "_can_pack", lambda: False)
    plain = PretrainedBackbone(str(folder)).open().encode(TEXTS, LAYERS)
    load_blocks.cache_clear()
    for a, b in zip(packed, plain, strict=True):
        for layer in LAYERS:
            assert a.layers[layer] == pytest.approx(b.layers[layer], abs=2e-6)


def test_operators_that_do_otherwise_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_bert, "_packed_linear", lambda states, packed, *_: states @ packed)
    assert not fast_bert._can_pack.__wrapped__()


def _both(folder: Path) -> tuple[Blocks, Blocks]:
    """The model as we read it and as transformers does."""
    checkpoint = checkpoints.find_checkpoint(str(folder))
    ours = load_blocks(checkpoint, False, "cpu")
    assert type(ours.module).__module__ == "evenmatch.models.fast_bert"
    return ours, load_trainable_blocks(checkpoint, False, "cpu")


def _alone(blocks: Blocks, ids: Array) -> dict[int, Array]:
    return _states(blocks, lambda forward: run_forward(forward, ids[None], [len(ids)], "cpu"))


def _states(blocks: Blocks, run: Callable[[Forward], dict[int, Array]]) -> dict[int, Array]:
    with blocks.truncate_to(LAYERS) as forward:
        return run(forward)


def test_its_tokenizer_is_that_of_transformers(folder: Path) -> None:
    checkpoint = checkpoints.find_checkpoint(str(folder))
    found = load_bert_tokenizer(checkpoint)
    assert found is not None
    theirs = load_transformers_tokenizer(checkpoint, False)
    assert found[0].to_str() == theirs.backend_tokenizer.to_str()
    assert found[1:] == (theirs.unk_token, theirs.pad_token)
    ours = list(PretrainedBackbone(str(folder)).open().token_ids(TEXTS))
    assert [list(keys) for keys in ours] == theirs(TEXTS)["input_ids"]


@pytest.mark.parametrize(
    "setting",
    [
        {"hidden_act": "relu"},
        {"position_embedding_type": "relative_key"},
        {"is_decoder": True},
        {"auto_map": {"AutoModel": "own.Model"}},
        {"model_type": "deberta"},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_what_is_not_plain_is_left_to_transformers(folder: Path, setting: dict[str, Any]) -> None:
    checkpoint = _changed(folder, "config.json", **setting)
    assert load_packed_model(checkpoint) is None
    assert load_bert_tokenizer(checkpoint) is None


def test_a_tokenizer_that_its_config_overrules_is_left_to_transformers(folder: Path) -> None:
    before = json.loads((folder / "tokenizer.json").read_text())["normalizer"]["lowercase"]
    checkpoint = _changed(folder, "tokenizer_config.json", do_lower_case=not before)
    assert load_bert_tokenizer(checkpoint) is None


def test_weights_by_other_names_are_left_to_transformers(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    weights = load_file(path)
    save_file({name.replace("LayerNorm", "norm"): w for name, w in weights.items()}, path)
    assert load_packed_model(checkpoints.find_checkpoint(str(folder))) is None


def test_weights_below_a_prefix_are_found(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    before = PretrainedBackbone(str(folder)).open().encode(TEXTS, [4])
    path = folder / "model.safetensors"
    save_file({f"bert.{name}": w for name, w in load_file(path).items()}, path)
    assert load_packed_model(checkpoints.find_checkpoint(str(folder))) is not None
    after = PretrainedBackbone(str(folder)).open().encode(TEXTS, [4])
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a.layers[4], b.layers[4])


def test_a_torn_file_of_weights_is_one_line(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(em.DataError, match="cannot load the model in"):
        load_packed_model(checkpoints.find_checkpoint(str(folder)))


def test_a_score_loads_no_transformers(folder: Path) -> None:
    program = f"""
import sys
import evenmatch as em
em.score(["a cat"], ["the cat"], "bertscore(model={str(folder)!r}, layer=2)")
print([name for name in ("transformers", "torch._dynamo", "scipy.optimize") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert done.stdout.decode().strip() == "[]"


@pytest.mark.parametrize("setting", [{"hidden_size": 24}, {"num_attention_heads": 5}], ids=str)
def test_sizes_that_do_not_fit_the_weights_are_left_to_transformers(
    folder: Path, setting: dict[str, Any]
) -> None:
    assert load_packed_model(_changed(folder, "config.json", **setting)) is None
