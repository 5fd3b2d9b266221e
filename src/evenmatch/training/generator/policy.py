"""The policy: an encoder-decoder with its tokenizer, and greedy and sampled decoding.

`generate` writes texts with a tuned model.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.graphs import TRIPLE_TOKENS
from evenmatch.errors import DataError, InputError
from evenmatch.files import explain_failed_write, set_ordinary_modes
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.models.heads import language_model_head
from evenmatch.models.loading import load_auto_model, quiet_transformers
from evenmatch.models.tokenizer import load_transformers_tokenizer
from evenmatch.registry.parts import check_arguments, check_at_least
from evenmatch.training.generator.tune_settings import DecodingSettings, T5Shape

DECODING_FILE = "decoding.json"
_PAD, _END, _UNKNOWN = "<pad>", "</s>", "<unk>"


@dataclass(frozen=True, eq=False)
class Policy:
    """An encoder-decoder with its tokenizer."""

    model: Any
    tokenizer: Any

    def tokenize(self, texts: Sequence[str], longest: int) -> tuple[Any, Any]:
        """Return token ids and attention mask, padded, truncated to `longest` tokens."""
        encoded = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=longest, return_tensors="pt"
        )
        return encoded["input_ids"], encoded["attention_mask"]

    def decode(self, ids: Any, mask: Any) -> list[str]:
        """Return the texts of rows of token ids where the mask is True."""
        texts = self.tokenizer.batch_decode(
            ids.masked_fill(~mask, self.tokenizer.pad_token_id),
            skip_special_tokens=True,
            clean_up_tokenization_spaces=False,
        )
        return [text.strip() for text in texts]

    def encode(self, ids: Any, mask: Any) -> Any:
        """Return the encoder's last hidden states."""
        return self.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state

    def save(self, folder: Path, decoding: DecodingSettings) -> None:
        """Write model, tokenizer and decoding settings to a folder that can be loaded as a model.

        `generate` uses the settings.
        """
        fresh = folder.with_name(f".{folder.name}")
        shutil.rmtree(fresh, ignore_errors=True)
        with explain_failed_write(folder), quiet_transformers():
            self.model.save_pretrained(fresh)
            self.tokenizer.save_pretrained(fresh)
            (fresh / DECODING_FILE).write_text(json.dumps(asdict(decoding)), "utf-8")
            set_ordinary_modes(fresh)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)


@check_arguments
def generate(
    model: str | PathLike[str], sources: Sequence[str], *, batch_size: int = 64
) -> list[str]:
    """Write a text for each input with an encoder-decoder, such as the result of `tune`.

    `sources` are lines of text: for a graph read by `read_graphs`, its `graph.line`. Texts are
    decoded greedily. The prefix of the inputs and the greatest lengths are those of the tuning.
    """
    check_at_least(1, batch_size=batch_size)
    if isinstance(sources, str) or not all(isinstance(source, str) for source in sources):
        raise InputError("the sources must be a list of strings")
    policy = load_policy(str(model))
    settings = _read_decoding_settings(find_checkpoint(str(model)).folder)
    inputs = [settings.prefix + source for source in sources]
    longest = settings.longest_source, settings.longest_target
    return generate_texts(policy, inputs, longest=longest, batch_size=batch_size)


def _read_decoding_settings(folder: Path) -> DecodingSettings:
    path = folder / DECODING_FILE
    try:
        return DecodingSettings(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError:  # a model that was not tuned here
        return DecodingSettings()
    except (OSError, TypeError, ValueError):
        raise DataError(f"cannot read {path}; tune the model again, or remove the file") from None


def load_policy(model: str) -> Policy:
    """Load the encoder-decoder of that name or folder; not shared, since training changes it."""
    found = find_checkpoint(model)
    if language_model_head(found) != "seq2seq":
        raise InputError(f"{model} is not an encoder-decoder; name one, such as T5")
    loaded, _ = load_auto_model("AutoModelForSeq2SeqLM", found, False)
    tokenizer = load_transformers_tokenizer(found, False)
    if tokenizer.eos_token_id is None or tokenizer.pad_token_id is None:
        raise InputError(f"the tokenizer of {model} lacks a closing or a padding token")
    return Policy(loaded, tokenizer)


def make_policy(shape: T5Shape, texts: Iterable[str], seed: int) -> Policy:
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
        return Policy(model, tokenizer)


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


def generate_tokens(
    policy: Policy, states: Any, mask: Any, *, generator: Any | None = None, longest: int
) -> tuple[Any, Any]:
    """Decode greedily; with a torch generator also sample, sampled rows before greedy ones.

    Returns token ids, and a mask of those up to and including the first closing token.
    """
    import torch

    rows = len(states) if generator is not None else 0
    if rows:
        states, mask = states.repeat(2, 1, 1), mask.repeat(2, 1)
    last = torch.full((len(states), 1), policy.model.config.decoder_start_token_id)
    unfinished = torch.ones_like(last, dtype=torch.bool)
    ids: list[Any] = []
    alive: list[Any] = []
    memory: Any = None
    with torch.no_grad():
        while len(ids) < longest and unfinished.any():
            output = policy.model(
                encoder_outputs=(states,),
                attention_mask=mask,
                decoder_input_ids=last,
                past_key_values=memory,
                use_cache=True,
            )
            logits, memory = output.logits[:, -1], output.past_key_values
            last = logits.argmax(-1, keepdim=True)
            if rows:
                last[:rows] = _sample_tokens(logits[:rows], generator)
            ids.append(last)
            alive.append(unfinished)
            unfinished = unfinished & (last != policy.tokenizer.eos_token_id)
    return torch.cat(ids, 1), torch.cat(alive, 1)


def _sample_tokens(logits: Any, generator: Any) -> Any:
    """Sample one token for each row from the model's distribution.

    Uses one random number per row and the cumulative distribution: torch.multinomial draws one
    number for every token of the vocabulary, which took a fifth of the step.
    """
    import torch

    cumulative = logits.softmax(-1).cumsum(-1)
    thresholds = torch.rand(len(cumulative), 1, generator=generator) * cumulative[:, -1:]
    tokens = torch.searchsorted(cumulative, thresholds, right=True)
    return tokens.clamp(max=cumulative.shape[1] - 1)


def generate_texts(
    policy: Policy, sources: Sequence[str], *, longest: tuple[int, int], batch_size: int
) -> list[str]:
    """Decode a text greedily for each input; inputs of similar length share a batch."""
    import torch

    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    found: dict[int, str] = {}
    with eval_mode(policy.model), torch.no_grad():
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            ids, mask = policy.tokenize([sources[i] for i in batch], longest[0])
            tokens = generate_tokens(policy, policy.encode(ids, mask), mask, longest=longest[1])
            found.update(zip(batch, policy.decode(*tokens), strict=True))
    return [found[i] for i in range(len(sources))]


@contextmanager
def eval_mode(model: Any) -> Iterator[None]:
    """Switch to evaluation mode (no dropout) inside the context."""
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)
