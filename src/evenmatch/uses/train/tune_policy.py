"""The generator that is tuned: an encoder-decoder and its tokenizer, found or made."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.data.graphs import MARKS
from evenmatch.errors import InputError
from evenmatch.uses.train.tune_settings import Shape
from evenmatch.vectors import checkpoints
from evenmatch.vectors.heads import language_head
from evenmatch.vectors.loading import load_auto
from evenmatch.vectors.quiet import quiet_transformers
from evenmatch.vectors.tokens import load_tokenizer

_PAD, _END, _UNKNOWN = "<pad>", "</s>", "<unk>"


@dataclass(frozen=True, eq=False)
class Policy:
    """An encoder-decoder with its tokenizer."""

    model: Any
    tokenizer: Any

    @property
    def start(self) -> int:
        """What the decoder is given before the first piece."""
        return int(self.model.config.decoder_start_token_id)

    @property
    def end(self) -> int:
        """The piece that ends a text."""
        return int(self.tokenizer.eos_token_id)

    def cut(self, texts: Sequence[str], longest: int) -> tuple[Any, Any]:
        """Ids and mask of texts, padded to the longest of them and cut at `longest` pieces."""
        cut = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=longest, return_tensors="pt"
        )
        return cut["input_ids"], cut["attention_mask"]

    def texts(self, ids: Any) -> list[str]:
        """Texts of rows of ids."""
        written = self.tokenizer.batch_decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return [text.strip() for text in written]

    def read(self, ids: Any, mask: Any) -> Any:
        """What the encoder makes of the inputs."""
        return self.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state

    def save(self, folder: Path) -> None:
        """Write model and tokenizer as a folder that can be named as a model."""
        fresh = folder.with_name(f".{folder.name}")
        shutil.rmtree(fresh, ignore_errors=True)
        with quiet_transformers():
            self.model.save_pretrained(fresh)
            self.tokenizer.save_pretrained(fresh)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)


def load_policy(model: str) -> Policy:
    """The encoder-decoder of that name or folder, for itself alone: it is going to change."""
    found = checkpoints.find(model)
    if language_head(found) != "seq2seq":
        raise InputError(f"{model} has no encoder and decoder; name a model that does, such as T5")
    loaded, _ = load_auto("AutoModelForSeq2SeqLM", found, False)
    tokenizer = load_tokenizer(found, False)
    if tokenizer.eos_token_id is None or tokenizer.pad_token_id is None:
        raise InputError(f"the tokenizer of {model} lacks a closing or a padding token")
    return Policy(loaded, tokenizer)


def make_policy(shape: Shape, texts: Iterable[str], seed: int) -> Policy:
    """A T5 of that shape with random weights, and a vocabulary learnt from texts."""
    with quiet_transformers():
        import torch
        import transformers

        untyped: Any = transformers  # its classes take more than their types tell
        tokenizer = _vocabulary(texts, shape.words)
        config = untyped.T5Config(
            vocab_size=len(tokenizer),
            d_model=shape.width,
            d_kv=shape.width // shape.heads,
            d_ff=shape.inner,
            num_layers=shape.layers,
            num_heads=shape.heads,
            dropout_rate=shape.dropout,
            decoder_start_token_id=tokenizer.pad_token_id,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = untyped.T5ForConditionalGeneration(config)
        _settle(model, shape.width)
        return Policy(model, tokenizer)


def _settle(model: Any, width: int) -> None:
    """Make the embeddings small, and the last norm large in turn.

    What layers add to the embeddings then counts beside them from the first step on; the loss that
    training begins with stays the same. Whether it learns faster so was not measured.
    """
    import torch

    with torch.no_grad():
        model.shared.weight.mul_(width**-0.5)
        model.decoder.final_layer_norm.weight.mul_(width**0.5)


def _vocabulary(texts: Iterable[str], words: int) -> Any:
    """A tokenizer of byte pairs, which knows any text; the marks of triples are pieces too."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    untyped: Any = transformers
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=max(words - len(MARKS), 256),
        special_tokens=[_PAD, _END, _UNKNOWN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    made.add_tokens(list(MARKS))
    end = made.token_to_id(_END)
    made.post_processor = processors.TemplateProcessing(
        single=f"$A {_END}", special_tokens=[(_END, end)]
    )
    return untyped.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token=_PAD, eos_token=_END, unk_token=_UNKNOWN
    )
