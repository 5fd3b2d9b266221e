"""A BERT read without transformers: the same to the bit, and transformers is never loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.types import Run
from evenmatch.vectors import checkpoints
from evenmatch.vectors.bert_files import load_bert, load_bert_tokenizer
from evenmatch.vectors.blocks import fresh_blocks, load_blocks, run_batch
from evenmatch.vectors.pretrained import Pretrained
from evenmatch.vectors.tokens import load_tokenizer
from tests.vectors.conftest import FolderOf

TEXTS = ["the quick brown fox", "a cat sat on the mat", "rain", "", "Prices fell by 3 percent."]


@pytest.fixture
def folder(folder_of: FolderOf, tmp_path: Path) -> Path:
    """A tiny BERT of one's own to change."""
    import shutil

    return Path(shutil.copytree(folder_of("bert"), tmp_path / "bert"))


def _changed(folder: Path, name: str, **settings: Any) -> checkpoints.Checkpoint:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return checkpoints.find(str(folder))


@pytest.mark.parametrize("lengths", [[9, 9, 9], [9, 4, 7]], ids=["whole", "padded"])
def test_its_states_are_those_of_transformers_to_the_bit(folder: Path, lengths: list[int]) -> None:
    checkpoint = checkpoints.find(str(folder))
    ids = np.random.default_rng(0).integers(5, 60, (3, 9))
    found = []
    for blocks in (load_blocks(checkpoint, False, "cpu"), fresh_blocks(checkpoint, False, "cpu")):
        with blocks.cut_to([0, 2, 4]) as forward:
            found.append(run_batch(forward, ids, lengths, "cpu"))
    assert type(load_blocks(checkpoint, False, "cpu").module).__module__ == "evenmatch.vectors.bert"
    for layer in (0, 2, 4):
        for row, length in enumerate(lengths):
            ours, theirs = (each[layer][row, :length] for each in found)
            np.testing.assert_array_equal(ours, theirs)


def test_its_tokenizer_is_that_of_transformers(folder: Path) -> None:
    checkpoint = checkpoints.find(str(folder))
    found = load_bert_tokenizer(checkpoint)
    assert found is not None
    theirs = load_tokenizer(checkpoint, False)
    assert found[0].to_str() == theirs.backend_tokenizer.to_str()
    assert found[1:] == (theirs.unk_token, theirs.pad_token)
    ours = Pretrained(str(folder)).keys(TEXTS)
    assert [list(keys) for keys in ours] == theirs(TEXTS)["input_ids"]


@pytest.mark.parametrize(
    "setting",
    [
        {"hidden_act": "relu"},
        {"position_embedding_type": "relative_key"},
        {"is_decoder": True},
        {"auto_map": {"AutoModel": "own.Model"}},
        {"model_type": "roberta"},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_what_is_not_plain_is_left_to_transformers(folder: Path, setting: dict[str, Any]) -> None:
    checkpoint = _changed(folder, "config.json", **setting)
    assert load_bert(checkpoint) is None
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
    assert load_bert(checkpoints.find(str(folder))) is None


def test_weights_below_a_prefix_are_found(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    before = Pretrained(str(folder)).encode(TEXTS, [4], Run())
    path = folder / "model.safetensors"
    save_file({f"bert.{name}": w for name, w in load_file(path).items()}, path)
    assert load_bert(checkpoints.find(str(folder))) is not None
    after = Pretrained(str(folder)).encode(TEXTS, [4], Run())
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a.layers[4], b.layers[4])


def test_a_torn_file_of_weights_is_one_line(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(em.DataError, match="cannot load the model in"):
        load_bert(checkpoints.find(str(folder)))


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
    assert load_bert(_changed(folder, "config.json", **setting)) is None
