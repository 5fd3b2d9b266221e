"""The generator that is tuned: an encoder-decoder and its tokenizer, found or made.

Texts that a policy writes: the likeliest, and others drawn.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.data.graphs import TRIPLE_TOKENS
from evenmatch.errors import InputError
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.models.heads import language_model_head
from evenmatch.models.loading import load_auto_model, quiet_transformers
from evenmatch.models.tokenizer import load_transformers_tokenizer
from evenmatch.training.generator.tune_settings import T5Shape

_PAD, _END, _UNKNOWN = "<pad>", "</s>", "<unk>"


@dataclass(frozen=True, eq=False)
class Policy:
    """An encoder-decoder with its tokenizer."""

    model: Any
    tokenizer: Any

    @property
    def start_token_id(self) -> int:
        """What the decoder is given before the first piece."""
        return int(self.model.config.decoder_start_token_id)

    @property
    def eos_token_id(self) -> int:
        """The piece that ends a text."""
        return int(self.tokenizer.eos_token_id)

    def tokenize(self, texts: Sequence[str], longest: int) -> tuple[Any, Any]:
        """Ids and mask of texts, padded to the longest of them and cut at `longest` pieces."""
        cut = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=longest, return_tensors="pt"
        )
        return cut["input_ids"], cut["attention_mask"]

    def decode(self, ids: Any) -> list[str]:
        """Texts of rows of ids."""
        written = self.tokenizer.batch_decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return [text.strip() for text in written]

    def encode(self, ids: Any, mask: Any) -> Any:
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
    found = find_checkpoint(model)
    if language_model_head(found) != "seq2seq":
        raise InputError(f"{model} has no encoder and decoder; name a model that does, such as T5")
    loaded, _ = load_auto_model("AutoModelForSeq2SeqLM", found, False)
    tokenizer = load_transformers_tokenizer(found, False)
    if tokenizer.eos_token_id is None or tokenizer.pad_token_id is None:
        raise InputError(f"the tokenizer of {model} lacks a closing or a padding token")
    return Policy(loaded, tokenizer)


def make_policy(shape: T5Shape, texts: Iterable[str], seed: int) -> Policy:
    """A T5 of that shape with random weights, and a vocabulary learnt from texts."""
    with quiet_transformers():
        import torch
        import transformers

        untyped: Any = transformers  # its classes take more than their types tell
        tokenizer = _train_tokenizer(texts, shape.words)
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
        _scale_embeddings(model, shape.width)
        return Policy(model, tokenizer)


def _scale_embeddings(model: Any, width: int) -> None:
    """Make the embeddings small, and the last norm large in turn.

    What layers add to the embeddings then counts beside them from the first step on; the loss that
    training begins with stays the same. Whether it learns faster so was not measured.
    """
    import torch

    with torch.no_grad():
        model.shared.weight.mul_(width**-0.5)
        model.decoder.final_layer_norm.weight.mul_(width**0.5)


def _train_tokenizer(texts: Iterable[str], words: int) -> Any:
    """A tokenizer of byte pairs, which knows any text; the marks of triples are pieces too."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    untyped: Any = transformers
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=max(words - len(TRIPLE_TOKENS), 256),
        special_tokens=[_PAD, _END, _UNKNOWN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    made.add_tokens(list(TRIPLE_TOKENS))
    end = made.token_to_id(_END)
    made.post_processor = processors.TemplateProcessing(
        single=f"$A {_END}", special_tokens=[(_END, end)]
    )
    return untyped.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token=_PAD, eos_token=_END, unk_token=_UNKNOWN
    )


@dataclass(frozen=True, slots=True, eq=False)
class GeneratedTokens:
    """Ids that were written, and which of them come up to the first closing piece."""

    ids: Any
    mask: Any


def generate_tokens(
    policy: Policy, states: Any, mask: Any, *, draw: Any | None = None, longest: int
) -> GeneratedTokens:
    """The likeliest piece taken each time; with `draw`, above those, as many texts drawn."""
    import torch

    rows = len(states) if draw is not None else 0
    if rows:
        states, mask = states.repeat(2, 1, 1), mask.repeat(2, 1)
    last = torch.full((len(states), 1), policy.start_token_id)
    unfinished = torch.ones_like(last, dtype=torch.bool)
    ids: list[Any] = []
    alive: list[Any] = []
    memory: Any = None
    with torch.no_grad():
        while len(ids) < longest and unfinished.any():
            told = policy.model(
                encoder_outputs=(states,),
                attention_mask=mask,
                decoder_input_ids=last,
                past_key_values=memory,
                use_cache=True,
            )
            logits, memory = told.logits[:, -1], told.past_key_values
            last = logits.argmax(-1, keepdim=True)
            if rows:
                last[:rows] = _sample_tokens(logits[:rows], draw)
            ids.append(last)
            alive.append(unfinished)
            unfinished = unfinished & (last != policy.eos_token_id)
    return GeneratedTokens(torch.cat(ids, 1), torch.cat(alive, 1))


def _sample_tokens(logits: Any, draw: Any) -> Any:
    """One piece for each row, as likely as the model says.

    By where one number falls in the running sum: torch.multinomial draws one for every piece of the
    vocabulary, and took a fifth of the step.
    """
    import torch

    sums = logits.softmax(-1).cumsum(-1)
    at = torch.rand(len(sums), 1, generator=draw) * sums[:, -1:]
    return torch.searchsorted(sums, at, right=True).clamp(max=sums.shape[1] - 1)


def generate_texts(
    policy: Policy, sources: Sequence[str], *, longest: tuple[int, int], at_a_time: int
) -> list[str]:
    """The likeliest text for each input; inputs of like length go together."""
    import torch

    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    found: dict[int, str] = {}
    with eval_mode(policy.model), torch.no_grad():
        for start in range(0, len(order), at_a_time):
            some = order[start : start + at_a_time]
            ids, mask = policy.tokenize([sources[i] for i in some], longest[0])
            got = generate_tokens(policy, policy.encode(ids, mask), mask, longest=longest[1])
            found.update(zip(some, decode_generated(policy, got), strict=True))
    return [found[i] for i in range(len(sources))]


def decode_generated(policy: Policy, written: GeneratedTokens) -> list[str]:
    """What was written, up to the closing piece, as text."""
    return policy.decode(written.ids.masked_fill(~written.mask, policy.tokenizer.pad_token_id))


@contextmanager
def eval_mode(model: Any) -> Iterator[None]:
    """Without dropout, and afterwards as before."""
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)
