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
from evenmatch.training.generator.policy import Policy, eval_mode, generate_tokens
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
    import torch

    ids, mask = policy.tokenize(batch.sources, longest[0])
    states = policy.encode(ids, mask)
    targets = policy.tokenize(batch.targets, longest[1])
    supervised = -log_likelihood(policy, states, mask, *targets).mean()
    if rl_weight == 0:
        return supervised, StepMetrics(supervised.item(), supervised.item())
    half = len(batch.sources)
    with eval_mode(policy.model):
        tokens = generate_tokens(policy, states, mask, generator=generator, longest=longest[1])
        texts, references = policy.decode(*tokens), batch.references * 2
        values = reward([Pair(t, r) for t, r in zip(texts, references, strict=True)])
        sampled, greedy = values[:half], values[half:]
        gap = torch.tensor(greedy) - torch.tensor(sampled)
        sampled_tokens = (each[:half] for each in tokens)
        reinforced = (gap * log_likelihood(policy, states, mask, *sampled_tokens)).mean()
    loss = rl_weight * reinforced + (1 - rl_weight) * supervised
    means = sum(sampled) / half, sum(greedy) / half
    return loss, StepMetrics(loss.item(), supervised.item(), *means)


def log_likelihood(policy: Policy, states: Any, mask: Any, tokens: Any, tokens_mask: Any) -> Any:
    """Return the log-probability of each text, summed over its tokens."""
    from torch.nn.functional import cross_entropy, pad

    inputs = pad(tokens[:, :-1], (1, 0), value=policy.model.config.decoder_start_token_id)
    logits = policy.model(
        encoder_outputs=(states,), attention_mask=mask, decoder_input_ids=inputs, use_cache=False
    ).logits
    losses = cross_entropy(logits.transpose(1, 2), tokens, reduction="none")
    return -(losses * tokens_mask).sum(1)


def policy_reward(spec: str, policy: Policy, *, own_embeddings: bool) -> Reward:
    """Turn a metric into a reward; with `own_embeddings`, on the policy's current embeddings.

    Opening and closing tokens are left out. Metrics without embeddings, such as bleu, are used
    unchanged.
    """
    metric = as_metric(spec)
    if own_embeddings and isinstance(metric, AlignMetric):
        return reward(_use_policy_embeddings(metric, policy))
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
