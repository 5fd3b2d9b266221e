"""The mixed loss: cross-entropy, and reward above that of the likeliest text (self-critical).

The reward of a run: any metric, or one that looks words up in the policy's own embeddings.
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
    """Examples of one step: what is read, what is to be written, and every reference."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """Means over the examples of one step; `reward` is that of what was drawn."""

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
    draw: Any,
    longest: tuple[int, int],
) -> tuple[Any, StepMetrics]:
    """λ·L_r + (1 − λ)·L_e (Jin & Gildea 2022, section 4), the mean over the examples.

    Both are sums over a text's pieces. The inputs are encoded once, for cross-entropy, the text
    that is drawn with the generator `draw`, and the likeliest one. Texts are written, and the
    drawn one weighed, without dropout in the decoder: so the weights are those it was drawn with.
    """
    ids, mask = policy.tokenize(batch.sources, longest[0])
    states = policy.encode(ids, mask)
    wanted, real = policy.tokenize(batch.targets, longest[1])
    supervised = -log_likelihood(policy, states, mask, GeneratedTokens(wanted, real)).mean()
    if rl_weight == 0:
        return supervised, StepMetrics(supervised.item(), supervised.item())
    reinforced, drawn, likeliest = _self_critical_loss(
        policy, batch, states, mask, reward=reward, draw=draw, longest=longest[1]
    )
    loss = rl_weight * reinforced + (1 - rl_weight) * supervised
    return loss, StepMetrics(loss.item(), supervised.item(), drawn, likeliest)


def _self_critical_loss(
    policy: Policy,
    batch: TuneBatch,
    states: Any,
    mask: Any,
    *,
    reward: Reward,
    draw: Any,
    longest: int,
) -> tuple[Any, float, float]:
    """L_r, and the mean rewards of the texts drawn and of the likeliest."""
    import torch

    half = len(batch.sources)
    with eval_mode(policy.model):
        both = generate_tokens(policy, states, mask, draw=draw, longest=longest)
        drawn, likeliest = compute_rewards(policy, both, batch, reward)
        gap = torch.tensor(likeliest) - torch.tensor(drawn)
        sample = GeneratedTokens(both.ids[:half], both.mask[:half])
        loss = (gap * log_likelihood(policy, states, mask, sample)).mean()
    return loss, sum(drawn) / half, sum(likeliest) / half


def compute_rewards(
    policy: Policy, both: GeneratedTokens, batch: TuneBatch, reward: Reward
) -> tuple[list[float], list[float]]:
    """The rewards of the texts drawn and of the likeliest texts, which stand below them."""
    texts, references = decode_generated(policy, both), [*batch.references, *batch.references]
    values = reward([Pair(t, r) for t, r in zip(texts, references, strict=True)])
    half = len(batch.references)
    return values[:half], values[half:]


def log_likelihood(policy: Policy, states: Any, mask: Any, written: GeneratedTokens) -> Any:
    """The log-probability of each text, summed over its pieces."""
    from torch.nn.functional import cross_entropy, pad

    before = pad(written.ids[:, :-1], (1, 0), value=policy.start_token_id)
    logits = policy.model(
        encoder_outputs=(states,), attention_mask=mask, decoder_input_ids=before, use_cache=False
    ).logits
    lost = cross_entropy(logits.transpose(1, 2), written.ids, reduction="none")
    return -(lost * written.mask).sum(1)


def policy_reward(spec: str, policy: Policy, *, own_embeddings: bool) -> Reward:
    """The metric as a reward; with `own_embeddings`, on the policy's current input embeddings.

    Opening and closing tokens are left out. Metrics that are not made of parts, such as bleu, have
    no embeddings and are taken as they are.
    """
    metric = as_metric(spec)
    if own_embeddings and isinstance(metric, AlignMetric):
        metric = _use_policy_embeddings(metric, policy)
    return reward(metric)


def _use_policy_embeddings(metric: AlignMetric, policy: Policy) -> Metric:
    match metric.vectors:
        case Transformer(weights=weights, mass=mass) | Lookup(weights=weights, mass=mass):
            if lacks_idf_table(metric.vectors):
                raise InputError("a reward on own embeddings takes no idf that is still uncounted")
            live = LiveLookup(policy.model, policy.tokenizer, weights, mass)
            return dataclasses.replace(metric, units=Pieces(), vectors=live)
    raise InputError(
        "own_embeddings needs a metric over a model's pieces, such as f_disc; "
        "for this one say own_embeddings = false"
    )
