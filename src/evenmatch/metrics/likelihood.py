"""Likelihood metrics: the log-probability of a text, given another one or alone.

`Likelihood` is the general metric; BARTScore (Yuan et al. 2021) and PRISM (Thompson & Post 2020)
are presets of it (`presets.py`). `LikelihoodTokenizer` turns a (source, target) pair of texts into
model input, and `log_probabilities` computes the mean log-probability of the target's tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from evenmatch.errors import InputError
from evenmatch.metrics.regression import TwoTexts, open_pair_model, predict_in_batches
from evenmatch.models.backbone import resolve_model
from evenmatch.models.checkpoints import Checkpoint, find_checkpoint
from evenmatch.models.heads import HeadedModel, HeadType, language_model_head, pin_weights
from evenmatch.models.loading import quiet_transformers
from evenmatch.models.tokenizer import load_transformers_tokenizer, token_limit, unpadded_backend
from evenmatch.registry import CallContext, check_settings, register
from evenmatch.scoring.engine import EngineMetric, ReadyMetric
from evenmatch.types import Array, Run
from evenmatch.units.text import replace_surrogates

SOURCE_PLACEHOLDER, TARGET_PLACEHOLDER = "{source}", "{target}"
DEFAULT_PROMPT = "{source}\nIn other words: {target}"


@register("metric", "likelihood")
@dataclass(frozen=True)
class Likelihood(EngineMetric):
    """Mean log-probability of a text's tokens, given the other text.

    Precision is that of the candidate given the reference, recall that of the reference given the
    candidate. `direction` selects the value: one of them, or their mean (`both`). With `candidate`
    or `reference` it is that of the text alone, its fluency: the model reads an empty text in place
    of the other. `model` is an embedded model's name, a Hugging Face name or a folder: an
    encoder-decoder, or a causal model. `prompt` is the template in which a causal model reads both
    texts. `source_tag` and `target_tag` are the language tokens of an encoder-decoder, put before
    the text it reads and the text it predicts. With a target tag the target is tag, tokens and
    closing token, and the tag is not scored. `weights` is a file of weights to load over the
    model's own. `adapter` loads an adapter trained by `evenmatch debias` for this metric. `long`
    sets what happens to a text that exceeds the model's limit. Where a model adds no special
    tokens, an empty text has no token to predict; it scores as one token of uniform probability
    over the vocabulary.
    """

    model: str = "smollm2"
    direction: Literal["both", "precision", "recall", "candidate", "reference"] = "both"
    prompt: str = DEFAULT_PROMPT
    source_tag: str = ""
    target_tag: str = ""
    weights: str = ""
    long: Literal["truncate", "error"] = "truncate"
    trust_remote_code: bool = False
    adapter: str = ""
    bounds: ClassVar[tuple[float, float]] = (-math.inf, 0.0)
    log_probability: ClassVar[bool] = True  # a reward is then the probability

    def __post_init__(self) -> None:
        check_settings(self)
        check_prompt(self.prompt)

    def open(self, context: CallContext) -> ReadyMetric:
        """Find the model; it is loaded with the first chunk."""
        return open_pair_model(self, context, self.directions, log_probabilities)

    def model_with_head(self, device: str, checkpoint: Checkpoint | None = None) -> HeadedModel:
        """The language model with its prediction head."""
        found = checkpoint or find_checkpoint(self.model)
        return HeadedModel(
            found, language_model_head(found), self.trust_remote_code, device, self.weights
        )

    def make_tokenizer(self, checkpoint: Checkpoint | None = None) -> LikelihoodTokenizer:
        """The tokenizer that makes model input from a source and a target text."""
        checkpoint = checkpoint or find_checkpoint(self.model)
        head = language_model_head(checkpoint)
        if head == "causal" and (self.source_tag or self.target_tag):
            raise InputError(f"{self.model} is a causal model and takes no tags; write a prompt")
        if head == "seq2seq" and self.prompt != DEFAULT_PROMPT:
            raise InputError(f"{self.model} has an encoder and takes no prompt; leave it out")
        return LikelihoodTokenizer(self, checkpoint, head)

    def directions(self, candidate: str, reference: str) -> dict[str, TwoTexts]:
        """Source and target of each log-probability whose mean is the value."""
        both = {"precision": (reference, candidate), "recall": (candidate, reference)}
        alone = {"candidate": ("", candidate), "reference": ("", reference)}
        return (
            both if self.direction == "both" else {self.direction: (both | alone)[self.direction]}
        )

    def resolve(self, context: CallContext) -> tuple[Likelihood, tuple[str, ...]]:
        """Return the metric with model, weights and adapter named by content hash."""
        weights = context.once(pin_weights, self.weights)
        resolved, facts = resolve_model(self, context, weights=weights)
        checkpoint = context.once(find_checkpoint, self.model)
        if language_model_head(checkpoint) == "causal":
            facts = (*facts, f"prompt {self.prompt!r}")
        return resolved, facts


def check_prompt(prompt: str) -> None:
    """Raise InputError unless the prompt contains {source} once and ends with its one {target}."""
    if (
        prompt.count(SOURCE_PLACEHOLDER) != 1
        or prompt.count(TARGET_PLACEHOLDER) != 1
        or not prompt.endswith(TARGET_PLACEHOLDER)
    ):
        raise InputError(
            f"a prompt must contain {SOURCE_PLACEHOLDER} once and end with {TARGET_PLACEHOLDER}, "
            f"got {prompt[:80]!r}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodInput:
    """Token ids for the encoder, token ids to predict, and a mask of the predictions that count.

    A causal model has no encoder: `source` is empty, and `target` begins with what it reads.
    """

    source: Array
    target: Array
    scored_mask: Array
    truncated: bool  # whether either text was truncated


@dataclass(frozen=True)
class LikelihoodTokenizer:
    """Make the input of one model from source and target texts."""

    metric: Likelihood
    checkpoint: Checkpoint
    head: HeadType

    def __call__(self, texts: Sequence[TwoTexts]) -> list[LikelihoodInput]:
        """Tokenize (source, target) pairs of texts."""
        loaded = load_transformers_tokenizer(self.checkpoint, self.metric.trust_remote_code)
        limit = token_limit(self.checkpoint, int(loaded.model_max_length))
        clean = [tuple(replace_surrogates(t).strip() for t in pair) for pair in texts]
        sources, targets = [c[0] for c in clean], [c[1] for c in clean]
        with quiet_transformers():  # it warns about every text beyond the model's limit
            if self.head == "causal":
                return self._encode_prompts(loaded, limit, sources, targets)
            read = self._token_ids(loaded, limit, sources, self.metric.source_tag)
            written = self._token_ids(loaded, limit, targets, self.metric.target_tag)
        # All tokens count, special tokens included, except the language tag.
        first = int(bool(self.metric.target_tag))
        return [
            LikelihoodInput(source, target, np.arange(len(target)) >= first, longer or long)
            for (source, longer), (target, long) in zip(read, written, strict=True)
        ]

    def _token_ids(
        self, loaded: Any, limit: int, texts: Sequence[str], tag: str
    ) -> list[tuple[Array, bool]]:
        """Each text's token ids with special tokens, and whether the text was truncated."""
        # With language tags the special tokens are set here; otherwise the tokenizer adds its own.
        tagged = bool(self.metric.source_tag or self.metric.target_tag)
        opening = [self._tag_id(loaded, tag)] if tag else []
        closing = [loaded.eos_token_id] if tagged else []
        given = loaded(list(texts), add_special_tokens=not tagged)["input_ids"] if texts else []
        found = [np.array([*opening, *ids, *closing], dtype=np.int64) for ids in given]
        if not tagged and found and max(map(len, found)) > limit:
            closing = [1] * self._count_closing_tokens(loaded)
        return [self._truncate_ids(ids, limit, len(closing)) for ids in found]

    def _tag_id(self, loaded: Any, tag: str) -> int:
        found = loaded.convert_tokens_to_ids(tag)
        if found is None or found == loaded.unk_token_id:
            raise InputError(
                f"{self.checkpoint.display_name} has no token {tag!r}; "
                "give the tag as its tokenizer writes it"
            )
        return int(found)

    def _count_closing_tokens(self, loaded: Any) -> int:
        """The number of special tokens that the tokenizer adds after a text."""
        mask = loaded("a", return_special_tokens_mask=True)["special_tokens_mask"]
        return len(mask) - 1 - max(i for i, special in enumerate(mask) if not special)

    def _truncate_ids(self, ids: Array, limit: int, closing: int) -> tuple[Array, bool]:
        if len(ids) <= limit:
            return ids, False
        self._refuse_long(len(ids), limit)
        return np.concatenate([ids[: limit - closing], ids[len(ids) - closing :]]), True

    def _refuse_long(self, count: int, limit: int) -> None:
        if self.metric.long == "error":
            raise InputError(
                f"a text has {count} tokens, but {self.checkpoint.display_name} takes {limit}; "
                "shorten it, or set long='truncate'"
            )

    def _encode_prompts(
        self, loaded: Any, limit: int, sources: Sequence[str], targets: Sequence[str]
    ) -> list[LikelihoodInput]:
        backend = unpadded_backend(loaded)
        before, rest = self.metric.prompt.split(SOURCE_PLACEHOLDER)
        between = rest.removesuffix(TARGET_PLACEHOLDER)
        # Source and target may each use half of the tokens that the prompt leaves.
        half = (limit - len(backend.encode(before + between).ids) - 2) // 2
        short = {text: self._truncate_text(backend, text, half) for text in {*sources, *targets}}
        inputs = []
        for source, target in zip(sources, targets, strict=True):
            (read, longer), (written, long) = short[source], short[target]
            start = len(before + read + between)
            encoding = backend.encode(before + read + between + written)
            ends = np.array([end for _, end in encoding.offsets], dtype=np.int64)
            ids = np.array(encoding.ids, dtype=np.int64)
            inputs.append(LikelihoodInput(ids[:0], ids, ends > start, longer or long))
        return inputs

    def _truncate_text(self, backend: Any, text: str, limit: int) -> tuple[str, bool]:
        encoding = backend.encode(text, add_special_tokens=False)
        if len(encoding.ids) <= limit:
            return text, False
        self._refuse_long(len(encoding.ids), limit)
        return text[: encoding.offsets[limit - 1][1]], True


_POSITIONS_PER_CHUNK = 128


def log_probabilities(model: Any, inputs: Sequence[LikelihoodInput], run: Run) -> list[float]:
    """Mean natural log-probability of each input's scored tokens.

    An input without scored tokens gets the log-probability of a uniform draw from the vocabulary.
    """
    uniform = -math.log(model.config.vocab_size)
    scored = [given for given in inputs if given.scored_mask.any()]
    sizes = [(len(given.source), len(given.target)) for given in scored]
    found = iter(predict_in_batches(partial(_predict_batch, model), scored, sizes, run))
    return [next(found) if given.scored_mask.any() else uniform for given in inputs]


def _predict_batch(model: Any, batch: Sequence[LikelihoodInput]) -> list[float]:
    import torch

    has_encoder = model.config.is_encoder_decoder
    sources, targets = (
        torch.from_numpy(np.stack(rows)).to(model.device)
        for rows in zip(*((given.source, given.target) for given in batch), strict=True)
    )
    if has_encoder:
        # Passed as labels, so that each kind of model shifts them into its own decoder input.
        logits = model(input_ids=sources, labels=targets, use_cache=False).logits
    else:
        logits = model(input_ids=targets, use_cache=False).logits
    first = 0 if has_encoder else 1  # row 0 of the logits predicts this token
    return [
        _mean_log_probability(logits[row], given.target[first:], given.scored_mask[first:])
        for row, given in enumerate(batch)
    ]


def _mean_log_probability(logits: Any, target: Array, scored_mask: Array) -> float:
    """Mean over the scored tokens; row t of the logits predicts token t of the target."""
    import torch

    positions: Any = torch.from_numpy(np.flatnonzero(scored_mask)).to(logits.device)
    token_ids: Any = torch.from_numpy(target[scored_mask]).to(logits.device)
    total = 0.0
    # In double precision, since a single-precision sum over a vocabulary of 50,000 is off by 2e-5;
    # and a few positions at a time, to bound the memory for that vocabulary.
    for rows, ids in zip(
        positions.split(_POSITIONS_PER_CHUNK), token_ids.split(_POSITIONS_PER_CHUNK), strict=True
    ):
        log_probs = torch.log_softmax(logits[rows].double(), -1)
        total += float(log_probs.gather(1, ids[:, None]).sum())
    return total / len(positions)
