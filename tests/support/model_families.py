"""Tiny models with random weights, one of each family."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from evenmatch.models.loading import quiet_transformers

BLOCKS = 4
LIMIT = 24  # sub-words, including special tokens
CORPUS = [
    "the quick brown fox jumps over the lazy dog",
    "a cat sat on the mat and looked at the dog",
    "rain is expected in the north tomorrow",
    "pack my box with five dozen liquor jugs",
    "Prices fell by 3 percent, to 12 euros.",
]
SHAPE = {"hidden_size": 16, "num_hidden_layers": BLOCKS, "num_attention_heads": 2}
INNER = {"intermediate_size": 32}
SPREAD = {"initializer_range": 0.3}


@dataclass(frozen=True)
class Family:
    """How to create the tokenizer and the config of a model family."""

    name: str
    tokenizer: Callable[[], Any]
    config: Callable[[int], Any]
    special_tokens: tuple[int, int] = (1, 1)  # number of tokens before and after a text


def wordpiece() -> dict[str, int]:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=specials)
    made.train_from_iterator(CORPUS, trainer)
    return made.get_vocab()


def byte_pairs() -> dict[str, Any]:
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator(CORPUS, trainer)
    model = json.loads(made.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(pair) for pair in model["merges"]]}


def unigram(specials: list[str], unknown: str) -> list[tuple[str, float]]:
    made = tokenizers.Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=90, special_tokens=specials, unk_token=unknown, show_progress=False
    )
    made.train_from_iterator(CORPUS, trainer)
    vocab = json.loads(made.to_str())["model"]["vocab"]
    return [(piece, score) for piece, score in vocab]


def _bert() -> Any:
    from transformers import BertTokenizer

    return BertTokenizer(vocab=wordpiece())


def _distilbert() -> Any:
    from transformers import DistilBertTokenizer

    return DistilBertTokenizer(vocab=wordpiece())


def _roberta() -> Any:
    from transformers import RobertaTokenizer

    return RobertaTokenizer(**byte_pairs())


def _bart() -> Any:
    from transformers import BartTokenizer

    return BartTokenizer(**byte_pairs())


def _xlm_roberta() -> Any:
    from transformers import XLMRobertaTokenizer

    return XLMRobertaTokenizer(vocab=unigram(["<s>", "<pad>", "</s>", "<unk>"], "<unk>"))


def _albert() -> Any:
    from transformers import AlbertTokenizer

    return AlbertTokenizer(vocab=unigram(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], "<unk>"))


def _deberta() -> Any:
    from transformers import DebertaV2Tokenizer

    return DebertaV2Tokenizer(
        vocab=unigram(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], "[UNK]")
    )


def _t5() -> Any:
    from transformers import T5Tokenizer

    vocab = unigram(["<pad>", "</s>", "<unk>"], "<unk>")
    return T5Tokenizer(vocab=vocab, extra_ids=0)


def _config(kind: str, **settings: Any) -> Callable[[int], Any]:
    def make(vocabulary: int) -> Any:
        import transformers

        return getattr(transformers, kind)(vocab_size=vocabulary, **settings)

    return make


# Positions of these models start after the padding id, 1, so the table has two more rows.
_BEHIND_PADDING = {"max_position_embeddings": LIMIT + 2, "pad_token_id": 1}
FAMILIES = (
    Family(
        "bert",
        _bert,
        _config("BertConfig", max_position_embeddings=LIMIT, **SHAPE, **INNER, **SPREAD),
    ),
    Family("roberta", _roberta, _config("RobertaConfig", **_BEHIND_PADDING, **SHAPE, **INNER)),
    Family(
        "xlm-roberta",
        _xlm_roberta,
        _config("XLMRobertaConfig", **_BEHIND_PADDING, **SHAPE, **INNER),
    ),
    Family(
        "deberta-v2",
        _deberta,
        _config(
            "DebertaV2Config",
            max_position_embeddings=LIMIT,
            relative_attention=True,
            position_biased_input=False,
            pos_att_type=["p2c", "c2p"],
            **SHAPE,
            **INNER,
            **SPREAD,
        ),
    ),
    Family(
        "distilbert",
        _distilbert,
        _config(
            "DistilBertConfig",
            dim=16,
            n_layers=BLOCKS,
            n_heads=2,
            hidden_dim=32,
            max_position_embeddings=LIMIT,
            **SPREAD,
        ),
    ),
    Family(
        "albert",
        _albert,
        _config(
            "AlbertConfig",
            embedding_size=8,
            max_position_embeddings=LIMIT,
            **SHAPE,
            **INNER,
            **SPREAD,
        ),
    ),
    Family(
        "bart",
        _bart,
        _config(
            "BartConfig",
            d_model=16,
            encoder_layers=BLOCKS,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            max_position_embeddings=LIMIT,
            init_std=0.3,
        ),
    ),
    Family(
        "t5",
        _t5,
        _config("T5Config", d_model=16, d_kv=8, d_ff=32, num_layers=BLOCKS, num_heads=2),
        special_tokens=(0, 1),
    ),
)


def save(family: Family, folder: Path) -> Path:
    """Create a model of that family and save it in the folder."""
    import torch
    from transformers import AutoModel

    tokenizer = family.tokenizer()
    # Only T5 has no position table, so its limit must be right. For the others it is too high, as
    # in many published models.
    tokenizer.model_max_length = LIMIT if family.name == "t5" else 512
    torch.manual_seed(0)
    auto: Any = AutoModel  # its methods carry no types
    model = auto.from_config(family.config(len(tokenizer)))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


FolderOf = Callable[[str], Path]


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> FolderOf:
    """Return a function from a family name to the folder of its model; each is built once."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    made: dict[str, Path] = {}

    def find(name: str) -> Path:
        if name not in made:
            family = next(f for f in FAMILIES if f.name == name)
            with quiet_transformers():
                made[name] = save(family, tmp_path_factory.mktemp(name))
        return made[name]

    return find
