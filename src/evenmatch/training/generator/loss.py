"""The mixed loss: cross-entropy and a self-critical policy gradient (Jin & Gildea 2022).

The reward is any metric, or an alignment metric on the policy's own input embeddings.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from evenmatch.errors import InputError
from evenmatch.protocols import Metric
from evenmatch.scoring.metric import AlignMetric, as_metric
from evenmatch.training.generator.policy import (
    GeneratedTokens,
    Policy,
    decode_generated,
    eval_mode,
    generate_tokens,
)
from evenmatch.training.rewards.rewards import Reward, reward
from evenmatch.types import Pair
from evenmatch.units.text import Pieces
from evenmatch.vectors.lookup import LiveLookup, Lookup
from evenmatch.vectors.transformer import Transformer
from evenmatch.vectors.weighting import lacks_idf_table


@dataclass(frozen=True, slots=True)
class TuneBatch:
    """The examples of one step: inputs, target texts, and all references of each input."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """Means over one step; `reward` is that of the sampled texts, `baseline` of the greedy ones."""

    loss: float
    cross_entropy: float
    reward: float = 0.0
    baseline: float = 0.0


def mixed_loss(
    policy: Policy,
    batch: TuneBatch,
    *,
    rl_weight: float,
    reward: Reward,
    generator: Any,
    longest: tuple[int, int],
) -> tuple[Any, StepMetrics]:
    """Compute λ·L_r + (1 − λ)·L_e (Jin & Gildea 2022, section 4), the mean over the examples.

    Both losses are sums over the tokens of a text. The inputs are encoded once for cross-entropy,
    for the text sampled with the torch generator, and for the greedy text. Texts are generated,
    and the log-likelihood of the sampled one is computed, without dropout in the decoder, so that
    it is the likelihood under the distribution it was sampled from.
    """
    ids, mask = policy.tokenize(batch.sources, longest[0])
    states = policy.encode(ids, mask)
    targets = GeneratedTokens(*policy.tokenize(batch.targets, longest[1]))
    supervised = -log_likelihood(policy, states, mask, targets).mean()
    if rl_weight == 0:
        return supervised, StepMetrics(supervised.item(), supervised.item())
    reinforced, sampled, greedy = _self_critical_loss(
        policy, batch, states, mask, reward=reward, generator=generator, longest=longest[1]
    )
    loss = rl_weight * reinforced + (1 - rl_weight) * supervised
    return loss, StepMetrics(loss.item(), supervised.item(), sampled, greedy)


def _self_critical_loss(
    policy: Policy,
    batch: TuneBatch,
    states: Any,
    mask: Any,
    *,
    reward: Reward,
    generator: Any,
    longest: int,
) -> tuple[Any, float, float]:
    """Return L_r, and the mean rewards of the sampled and of the greedy texts."""
    import torch

    half = len(batch.sources)
    with eval_mode(policy.model):
        both = generate_tokens(policy, states, mask, generator=generator, longest=longest)
        sampled, greedy = compute_rewards(policy, both, batch, reward)
        gap = torch.tensor(greedy) - torch.tensor(sampled)
        sample = GeneratedTokens(both.ids[:half], both.mask[:half])
        loss = (gap * log_likelihood(policy, states, mask, sample)).mean()
    return loss, sum(sampled) / half, sum(greedy) / half


def compute_rewards(
    policy: Policy, both: GeneratedTokens, batch: TuneBatch, reward: Reward
) -> tuple[list[float], list[float]]:
    """Return the rewards of the sampled texts (first half of the rows) and of the greedy ones."""
    texts, references = decode_generated(policy, both), [*batch.references, *batch.references]
    values = reward([Pair(t, r) for t, r in zip(texts, references, strict=True)])
    half = len(batch.references)
    return values[:half], values[half:]


def log_likelihood(policy: Policy, states: Any, mask: Any, tokens: GeneratedTokens) -> Any:
    """Return the log-probability of each text, summed over its tokens."""
    from torch.nn.functional import cross_entropy, pad

    inputs = pad(tokens.ids[:, :-1], (1, 0), value=policy.start_token_id)
    logits = policy.model(
        encoder_outputs=(states,), attention_mask=mask, decoder_input_ids=inputs, use_cache=False
    ).logits
    losses = cross_entropy(logits.transpose(1, 2), tokens.ids, reduction="none")
    return -(losses * tokens.mask).sum(1)


def policy_reward(spec: str, policy: Policy, *, own_embeddings: bool) -> Reward:
    """Turn a metric into a reward; with `own_embeddings`, on the policy's current embeddings.

    Opening and closing tokens are left out. Metrics without embeddings, such as bleu, are used
    unchanged.
    """
    metric = as_metric(spec)
    if own_embeddings and isinstance(metric, AlignMetric):
        metric = _use_policy_embeddings(metric, policy)
    return reward(metric)


def _use_policy_embeddings(metric: AlignMetric, policy: Policy) -> Metric:
    match metric.vectors:
        case Transformer(weights=weights, mass=mass) | Lookup(weights=weights, mass=mass):
            if lacks_idf_table(metric.vectors):
                raise InputError(
                    "with own_embeddings, idf needs a table; the reward has no references to "
                    "count words in"
                )
            live = LiveLookup(policy.model, policy.tokenizer, weights, mass)
            return dataclasses.replace(metric, units=Pieces(), vectors=live)
    raise InputError(
        "own_embeddings needs a metric on a model's tokens, such as f_disc; "
        "for other metrics set own_embeddings = false"
    )
