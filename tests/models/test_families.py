"""Every family of encoders, on tiny models with random weights, beside transformers itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.models.backbone import PretrainedBackbone, load_input_embeddings
from evenmatch.models.checkpoints import count_layers, find_checkpoint
from evenmatch.models.loading import quiet_transformers
from evenmatch.registry import CallContext
from evenmatch.types import Array, Run
from tests.support.model_families import BLOCKS, FAMILIES, Family, FolderOf

TEXTS = ["the cat sat on the mat", "rain", "Prices fell by 3 percent."]
ALL = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def by_transformers(folder: Path, text: str) -> list[Array]:
    """The hidden states of each height, as dropping the blocks above would leave them."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    with quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model: Any = AutoModel.from_pretrained(folder).eval()
    if "ByteLevel" in repr(tokenizer.backend_tokenizer.pre_tokenizer):
        text = " " + text
    ids = torch.tensor([tokenizer(text).input_ids])
    encoder = model.get_encoder() if model.config.is_encoder_decoder else model
    with torch.no_grad():
        states = list(encoder(ids, output_hidden_states=True).hidden_states)
        if model.config.model_type == "t5":
            states[:-1] = [encoder.final_layer_norm(s) for s in states[:-1]]
    return [s[0].numpy() for s in states]


@ALL
def test_layer_l_is_what_transformers_calls_hidden_state_l(
    family: Family, folder_of: FolderOf
) -> None:
    folder = folder_of(family.name)
    for text in TEXTS:
        wanted = by_transformers(folder, text)
        assert len(wanted) == BLOCKS + 1
        for layer, states in enumerate(wanted):
            encoder = em.Transformer(str(folder), layer)
            found = encoder([em.Pieces(marks=True)(text)])[0].vectors
            assert found == pytest.approx(states, abs=1e-5), f"layer {layer}"


@ALL
def test_input_embeddings_are_those_of_transformers(family: Family, folder_of: FolderOf) -> None:
    from transformers import AutoModel

    folder = folder_of(family.name)
    with quiet_transformers():
        model: Any = AutoModel.from_pretrained(folder)
    wanted = model.get_input_embeddings().weight.detach().numpy()
    found = load_input_embeddings(find_checkpoint(str(folder)))
    assert (found == wanted).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_input_embeddings_in_half_precision(
    dtype: str, folder_of: FolderOf, tmp_path: Path
) -> None:
    import torch
    from transformers import AutoModel

    with quiet_transformers():
        model: Any = AutoModel.from_pretrained(folder_of("bert")).to(getattr(torch, dtype))
        model.save_pretrained(tmp_path)
    found = load_input_embeddings(find_checkpoint(str(tmp_path)))
    assert found.dtype == "float32"
    assert (found == model.get_input_embeddings().weight.detach().float().numpy()).all()


@ALL
def test_several_layers_come_out_of_one_pass(family: Family, folder_of: FolderOf) -> None:
    folder = folder_of(family.name)
    for wanted in ([0], [2], [0, 1, 3], [1, BLOCKS]):
        found = PretrainedBackbone(str(folder)).open().encode(TEXTS, wanted)
        for text, states in zip(TEXTS, found, strict=True):
            truth = by_transformers(folder, text)
            assert sorted(states.layers) == wanted
            for layer in wanted:
                assert states.layers[layer] == pytest.approx(truth[layer], abs=1e-5)


@ALL
def test_the_special_tokens_of_a_text_are_found(family: Family, folder_of: FolderOf) -> None:
    tokens = PretrainedBackbone(str(folder_of(family.name))).open().tokenizer
    assert (len(tokens.opening_tokens), len(tokens.closing_tokens)) == family.special_tokens
    plain, marked = (
        em.Transformer(str(folder_of(family.name)), 1)([em.Pieces(marks=m)(TEXTS[0])])[0]
        for m in (False, True)
    )
    opening, closing = family.special_tokens
    assert len(marked.vectors) == len(plain.vectors) + opening + closing
    assert (
        plain.vectors.tolist() == marked.vectors[opening : len(marked.vectors) - closing].tolist()
    )
    assert marked.weights.sum() == len(plain.vectors)


@ALL
def test_blocks_above_the_layer_are_not_computed(family: Family, folder_of: FolderOf) -> None:
    from torch.nn.modules.module import register_module_forward_hook

    backbone = PretrainedBackbone(str(folder_of(family.name)))
    backbone.open().encode(["rain"], [BLOCKS])
    counted: list[str] = []
    hook = register_module_forward_hook(lambda module, *_: counted.append(type(module).__name__))
    try:
        calls = {}
        for layer in (1, 2, BLOCKS):
            counted.clear()
            backbone.open().encode(["rain"], [layer])
            calls[layer] = max(counted.count(name) for name in set(counted) if name in BLOCK_NAMES)
    finally:
        hook.remove()
    assert calls == {1: 1, 2: 2, BLOCKS: BLOCKS}


BLOCK_NAMES = {
    "BertBlock",
    "BertLayer",
    "RobertaLayer",
    "XLMRobertaLayer",
    "DebertaV2Layer",
    "TransformerBlock",
    "AlbertLayer",
    "BartEncoderLayer",
    "T5Block",
}


@ALL
def test_the_number_of_blocks_is_read_from_the_config(family: Family, folder_of: FolderOf) -> None:
    checkpoint = PretrainedBackbone(str(folder_of(family.name))).checkpoint()
    assert count_layers(checkpoint) == BLOCKS


@ALL
def test_a_batch_changes_no_vector(family: Family, folder_of: FolderOf) -> None:
    backbone = PretrainedBackbone(str(folder_of(family.name)))
    texts = [*TEXTS, "", "the dog sat on the box", "the fox sat on the mat", TEXTS[0]]
    alone = [backbone.open().encode([text], [2])[0].layers[2] for text in texts]
    for tokens in (1, 16, 4096):
        together = backbone.open(CallContext(Run(batch_tokens=tokens))).encode(texts, [2])
        for text, one, states in zip(texts, alone, together, strict=True):
            assert states.text == text
            assert states.layers[2] == pytest.approx(one, abs=1e-6)


@ALL
def test_every_family_scores_by_name(family: Family, folder_of: FolderOf) -> None:
    folder = folder_of(family.name)
    for name in ("bertscore", "f_disc", "f_cont"):
        scores = em.score(
            ["the cat sat", "", "rain"],
            ["the cat sat", "rain", "the lazy dog"],
            f"{name}(model={str(folder)!r}, layer=2)",
        )
        assert scores.segments[0].value == pytest.approx(1.0, abs=1e-5)
        assert scores.segments[1].value == 0.0
        assert scores.segments[2].value < 0.999


PREFIXED = [f for f in FAMILIES if f.name in ("roberta", "bart")]


@pytest.mark.parametrize("family", PREFIXED, ids=lambda family: family.name)
def test_a_word_is_the_same_piece_at_the_start_of_a_text(
    family: Family, folder_of: FolderOf
) -> None:
    tokens = PretrainedBackbone(str(folder_of(family.name))).open().tokenizer
    first, later = (cut.token_ids[1:-1].tolist() for cut in tokens(["cat", "the cat"]))
    assert later[-len(first) :] == first


def with_prefix_space(folder: str, copy: Path) -> str:
    """The model with the setting that bert_score means to make and transformers 5 ignores."""
    from transformers import AutoTokenizer

    shutil.copytree(folder, copy)
    AutoTokenizer.from_pretrained(folder, add_prefix_space=True).save_pretrained(copy)
    return str(copy)


# T5's closing token carries weight in bert_score, which knows no name for it.
COMPARED = [f for f in FAMILIES if f.name != "t5"]


@pytest.mark.parametrize("family", COMPARED, ids=lambda family: family.name)
def test_every_family_scores_as_bert_score_scores_it(
    family: Family, folder_of: FolderOf, tmp_path: Path
) -> None:
    import bert_score

    folder = str(folder_of(family.name))
    candidates = ["the cat sat on the mat", "Rain, rain"]
    references = ["a cat sat", "rain tomorrow"]
    with quiet_transformers():
        found = bert_score.score(
            candidates,
            references,
            model_type=with_prefix_space(folder, tmp_path / "model"),
            num_layers=3,
            batch_size=1,
            device="cpu",
        )
    ours = em.score(candidates, references, f"bertscore(model={folder!r}, layer=3)").segments
    assert [s.precision for s in ours] == pytest.approx(found[0].tolist(), abs=1e-5)
    assert [s.recall for s in ours] == pytest.approx(found[1].tolist(), abs=1e-5)
    assert [s.value for s in ours] == pytest.approx(found[2].tolist(), abs=1e-5)
