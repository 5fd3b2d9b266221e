"""The policy: a language model with its tokenizer, loaded, made, frozen in part, and saved.

Both kinds of language models read an input once and decode texts from what they have read: an
encoder-decoder (`Seq2SeqPolicy`) from the hidden states of its encoder, a causal model
(`CausalPolicy`) from the keys and values of its prompt. Everything below them is the same for
both. `decoding.py` writes texts with them.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.graphs import TRIPLE_TOKENS
from evenmatch.errors import DataError, InputError, needs_extra
from evenmatch.files import explain_failed_write, set_ordinary_modes
from evenmatch.models.checkpoints import find_checkpoint, read_config
from evenmatch.models.heads import block_lists, language_model_head
from evenmatch.models.loading import load_auto_model, quiet_transformers
from evenmatch.models.tokenizer import NO_LIMIT, load_transformers_tokenizer, token_limit
from evenmatch.training.generator.tune_settings import DecodingSettings, T5Shape

DECODING_FILE = "decoding.json"
_PAD, _END, _UNKNOWN = "<pad>", "</s>", "<unk>"
_CAUSAL_HEADS = ("ForCausalLM", "LMHeadModel")  # ends of class names in config.json


@dataclass(frozen=True, eq=False)
class EncodedInputs:
    """Inputs that a policy has read, one row each; texts are decoded from them.

    Attributes:
        states: Hidden states of an encoder; None for a causal model.
        prefix: Keys, then values, of each layer for the tokens of a prompt; empty for an
            encoder-decoder.
        mask: 1 for the tokens of an input, 0 for padding.
    """

    states: Any
    prefix: tuple[Any, ...]
    mask: Any

    def repeat(self, times: int) -> EncodedInputs:
        """Return all rows several times, one copy after the other."""
        return self._map(lambda tensor: tensor.repeat(times, *[1] * (tensor.dim() - 1)))

    def select(self, rows: Any) -> EncodedInputs:
        """Return some of the rows."""
        return self._map(lambda tensor: tensor.index_select(0, rows))

    def _map(self, change: Any) -> EncodedInputs:
        states = None if self.states is None else change(self.states)
        return EncodedInputs(states, tuple(map(change, self.prefix)), change(self.mask))


@dataclass(frozen=True, eq=False)
class Seq2SeqPolicy:
    """An encoder-decoder with its tokenizer; `bf16` multiplies matrices in bfloat16 (autocast)."""

    model: Any
    tokenizer: Any
    bf16: bool = False

    @property
    def start_token(self) -> int:
        """The token that precedes every text."""
        return int(self.model.config.decoder_start_token_id)

    def encode(self, sources: Sequence[str], longest: int) -> EncodedInputs:
        """Run the encoder on inputs, truncated to `longest` tokens."""
        ids, mask = self.tokenize(sources, longest)
        encoded = self.model.get_encoder()(input_ids=ids, attention_mask=mask)
        return EncodedInputs(encoded.last_hidden_state, (), mask)

    def tokenize(self, texts: Sequence[str], longest: int) -> tuple[Any, Any]:
        """Return token ids and mask, padded on the right."""
        encoded = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=longest, return_tensors="pt"
        )
        return encoded["input_ids"], encoded["attention_mask"]

    def next_logits(
        self, inputs: EncodedInputs, tokens: Any, memory: Any, *, use_cache: bool
    ) -> tuple[Any, Any]:
        """Return the logits of the token after each of `tokens`, and the cache with these tokens.

        `memory` is the cache of the tokens before them, None at the start of a text. Without
        `use_cache`, as caching rounds, the returned cache is of no use.
        """
        output = self.model(
            encoder_outputs=(inputs.states,),
            attention_mask=inputs.mask,
            decoder_input_ids=tokens,
            past_key_values=memory,
            use_cache=use_cache,
        )
        return output.logits, output.past_key_values


@dataclass(frozen=True, eq=False)
class CausalPolicy:
    """A causal language model with its tokenizer.

    The prompt is an input and the separator, whose last token is the start token. The model reads
    the rest of the prompt once; its keys and values are shared by all texts that are decoded, and
    gradients flow through them.
    """

    model: Any
    tokenizer: Any
    bf16: bool = False
    separator: str = "\n"
    max_tokens: int = NO_LIMIT  # of a prompt and its text together

    @property
    def start_token(self) -> int:
        """The last token of the separator."""
        return self._separator_ids[-1]

    @property
    def _separator_ids(self) -> list[int]:
        ids: list[int] = self.tokenizer(self.separator, add_special_tokens=False)["input_ids"]
        return ids

    def encode(self, sources: Sequence[str], longest: int) -> EncodedInputs:
        """Run the model on the prompts, which are padded on the left."""
        import torch

        end, before_start = self.tokenizer.eos_token_id, self._separator_ids[:-1]
        rows = []
        for ids in self.tokenizer(list(sources), truncation=True, max_length=longest)["input_ids"]:
            ids = ids[:-1] if ids and ids[-1] == end else ids
            rows.append([*ids, *before_start] or [end])
        width = max(map(len, rows))
        ids = torch.tensor([[end] * (width - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        self._check_positions(positions)
        memory = self._new_cache()
        self.model.get_decoder()(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=memory,
            use_cache=True,
        )
        layers = memory.layers
        return EncodedInputs(
            None, (*(layer.keys for layer in layers), *(layer.values for layer in layers)), mask
        )

    def tokenize(self, texts: Sequence[str], longest: int) -> tuple[Any, Any]:
        """Return token ids and mask, padded on the right, each text with a closing token."""
        import torch

        end = self.tokenizer.eos_token_id
        rows = [
            [*ids[: longest - 1], end]
            for ids in self.tokenizer(list(texts), add_special_tokens=False)["input_ids"]
        ]
        width = max(map(len, rows))
        ids = torch.tensor([row + [end] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        return ids, mask

    def next_logits(
        self, inputs: EncodedInputs, tokens: Any, memory: Any, *, use_cache: bool
    ) -> tuple[Any, Any]:
        """Run the model on tokens after the prompt and the tokens in the cache."""
        import torch

        if memory is None:
            memory, count = self._new_cache(), len(inputs.prefix) // 2
            for i in range(count):
                memory.update(inputs.prefix[i], inputs.prefix[count + i], i)
        done = memory.get_seq_length() - inputs.mask.shape[1]
        written = inputs.mask.new_ones((len(tokens), done + tokens.shape[1]))
        positions = inputs.mask.sum(1, keepdim=True) + torch.arange(done, written.shape[1])
        self._check_positions(positions)
        output = self.model(
            input_ids=tokens,
            attention_mask=torch.cat([inputs.mask, written], 1),
            position_ids=positions,
            past_key_values=memory,
            use_cache=True,
        )
        return output.logits, memory

    def _check_positions(self, positions: Any) -> None:
        if (count := int(positions.max()) + 1) > self.max_tokens:
            raise InputError(
                f"an input and its text have {count} tokens, but the model reads at most "
                f"{self.max_tokens}; shorten the input, or tune with a lower longest_source or "
                "longest_target"
            )

    def _new_cache(self) -> Any:
        from transformers import DynamicCache

        return DynamicCache()


# A language model that writes a text for an input; both kinds have the same methods.
Policy: TypeAlias = Seq2SeqPolicy | CausalPolicy


def save_policy(policy: Policy, folder: Path, decoding: DecodingSettings) -> None:
    """Write model, tokenizer and decoding settings to a folder that can be loaded as a model.

    Low-rank adapters are merged into the weights. `generate` uses the settings.
    """
    fresh = folder.with_name(f".{folder.name}")
    shutil.rmtree(fresh, ignore_errors=True)
    model = policy.model
    with explain_failed_write(folder), quiet_transformers():
        if is_adapted(model):
            model = copy.deepcopy(model).merge_and_unload()
        model.save_pretrained(fresh)
        policy.tokenizer.save_pretrained(fresh)
        (fresh / DECODING_FILE).write_text(json.dumps(asdict(decoding)), "utf-8")
        set_ordinary_modes(fresh)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


def read_decoding_settings(folder: Path) -> DecodingSettings:
    """Return the settings stored with a tuned model; the defaults for another model."""
    path = folder / DECODING_FILE
    try:
        return DecodingSettings(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return DecodingSettings()
    except (OSError, TypeError, ValueError):
        raise DataError(f"cannot read {path}; tune the model again, or remove the file") from None


def load_policy(model: str, settings: DecodingSettings = DecodingSettings()) -> Policy:
    """Load the language model of that name or folder; not shared, since training changes it."""
    found = find_checkpoint(model)
    head = language_model_head(found)
    names = read_config(found.folder).get("architectures") or ["LMHeadModel"]
    if head == "causal" and not str(names[0]).endswith(_CAUSAL_HEADS):
        raise InputError(
            f"{model} does not write text; name an encoder-decoder, such as t5-small, or a causal "
            "language model, such as smollm2"
        )
    kind = "AutoModelForCausalLM" if head == "causal" else "AutoModelForSeq2SeqLM"
    loaded, _ = load_auto_model(kind, found, False)
    tokenizer = load_transformers_tokenizer(found, False)
    if tokenizer.eos_token_id is None:
        raise InputError(f"the tokenizer of {model} lacks a closing token")
    if head == "causal":
        limit = token_limit(found, NO_LIMIT - 1)  # none if it has no table of positions
        policy = CausalPolicy(loaded, tokenizer, settings.bf16, settings.separator, limit)
        if not policy._separator_ids:
            raise InputError(f"separator {settings.separator!r} has no tokens; give a longer one")
        return policy
    if tokenizer.pad_token_id is None:
        raise InputError(f"the tokenizer of {model} lacks a padding token")
    return Seq2SeqPolicy(loaded, tokenizer, settings.bf16)


def choose_trainable(policy: Policy, *, last_blocks: int, lora_rank: int) -> Policy:
    """Freeze all weights but the last blocks, or all but new low-rank adapters (LoRA).

    With 0 for both, all weights are trained. Of an encoder-decoder, `last_blocks` counts for the
    encoder and for the decoder.
    """
    if lora_rank:
        with needs_extra("low-rank adapters need peft; install it: pip install 'evenmatch[tune]'"):
            from peft import LoraConfig, get_peft_model
        config = LoraConfig(r=lora_rank, lora_alpha=2 * lora_rank, target_modules="all-linear")
        with quiet_transformers():
            adapted: Any = get_peft_model(policy.model, config)
        return dataclasses.replace(policy, model=adapted)
    if last_blocks:
        stacks = list(block_lists(policy.model))
        if last_blocks > min(map(len, stacks)):
            raise InputError(
                f"last_blocks is {last_blocks}, but the model has {min(map(len, stacks))} blocks"
            )
        policy.model.requires_grad_(False)
        for stack in stacks:
            for block in stack[-last_blocks:]:
                block.requires_grad_(True)
    return policy


def is_adapted(model: Any) -> bool:
    """Whether a model has low-rank adapters."""
    return type(model).__module__.startswith("peft.")


def make_policy(shape: T5Shape, texts: Iterable[str], seed: int) -> Seq2SeqPolicy:
    """Make a T5 with random weights, and a vocabulary learnt from `texts`."""
    with quiet_transformers():
        import torch
        import transformers

        untyped: Any = transformers  # its type hints omit accepted arguments
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
        # Scale the embeddings down, and the decoder's last norm up by the same factor: the residual
        # updates of the layers are then not small relative to the embeddings from the first step
        # on; the initial loss is unchanged. Whether the model learns faster was not measured.
        with torch.no_grad():
            model.shared.weight.mul_(shape.width**-0.5)
            model.decoder.final_layer_norm.weight.mul_(shape.width**0.5)
        return Seq2SeqPolicy(model, tokenizer)


def _train_tokenizer(texts: Iterable[str], words: int) -> Any:
    """Train a byte-level BPE tokenizer; the separators of triples are tokens of their own."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    untyped: Any = transformers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=max(words - len(TRIPLE_TOKENS), 256),
        special_tokens=[_PAD, _END, _UNKNOWN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(list(TRIPLE_TOKENS))
    end = tokenizer.token_to_id(_END)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {_END}", special_tokens=[(_END, end)]
    )
    return untyped.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=_PAD, eos_token=_END, unk_token=_UNKNOWN
    )


def autocast(policy: Policy) -> Any:
    """Return a context in which matrices are multiplied in bfloat16, if the policy asks for it.

    Weights are converted once per context. The first use of each weight must be with gradients, if
    any use is: a weight that was converted without them has none in the rest of the context.
    """
    import torch

    return torch.autocast("cpu", torch.bfloat16, enabled=policy.bf16)


@contextmanager
def eval_mode(model: Any) -> Iterator[None]:
    """Switch to evaluation mode (no dropout) inside the context."""
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)
