"""The mixed loss: cross-entropy and a self-critical policy gradient (Jin & Gildea 2022).

The reward is any metric, or an alignment metric on the policy's own input embeddings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.protocols import Metric
from evenmatch.scoring.metric import AlignMetric, as_metric
from evenmatch.training.generator.decoding import decode_texts, generate_tokens
from evenmatch.training.generator.policy import EncodedInputs, Policy, autocast, eval_mode
from evenmatch.training.loop import similar_lengths
from evenmatch.training.rewards import Reward, lowercase_words, repeated_share, reward
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
    """Means over one step.

    Attributes:
        loss: The mixed loss.
        cross_entropy: Cross-entropy of the targets, summed over tokens.
        reward: Reward of the sampled texts.
        baseline: What it is compared with: the reward of the greedy texts or of other samples.
        length: Number of tokens of the sampled texts.
        repetition: Share of their bigrams that occurred earlier in the text.
        padding: Share of the token positions computed in the step that are padding.
    """

    loss: float
    cross_entropy: float
    reward: float = 0.0
    baseline: float = 0.0
    length: float = 0.0
    repetition: float = 0.0
    padding: float = 0.0


def mixed_loss(
    policy: Policy,
    batch: TuneBatch,
    *,
    rl_weight: float,
    reward: Reward,
    generator: Any,
    longest: tuple[int, int],
    samples: int = 1,
    baseline: str = "greedy",
) -> tuple[Any, StepMetrics]:
    """Compute λ·L_r + (1 − λ)·L_e (Jin & Gildea 2022, section 4), the mean over the examples.

    Both losses are sums over the tokens of a text; L_r is the mean over the samples of an input.
    The inputs are read once: for cross-entropy, for the texts sampled with the torch generator,
    and for the greedy text. Texts are generated, and the log-likelihood of the sampled ones is
    computed, without dropout in the decoder, so that it is the likelihood under the distribution
    they were sampled from.
    """
    with autocast(policy):
        inputs = policy.encode(batch.sources, longest[0])
        targets = policy.tokenize(batch.targets, longest[1])
        supervised = -log_likelihood(policy, inputs, *targets).mean()
        masks = [inputs.mask, targets[1]]
        if rl_weight == 0:
            value = supervised.item()
            return supervised, StepMetrics(value, value, padding=_padding_share(masks))
        greedy = baseline == "greedy"
        with eval_mode(policy.model):
            ids, mask = generate_tokens(
                policy,
                inputs,
                longest=longest[1],
                samples=samples,
                greedy=greedy,
                generator=generator,
            )
            texts = decode_texts(policy, ids, mask)
            references = batch.references * (samples + greedy)
            values = _score_texts(reward, texts, references).view(samples + greedy, -1)
            rewards, drawn = values[:samples], samples * len(batch.sources)
            base = values[samples:] if greedy else _leave_one_out(rewards)
            decoded, ids, mask = int(mask.sum()), ids[:drawn], mask[:drawn]
            likelihood, sampled_masks = _likelihood_by_length(
                policy, inputs.repeat(samples), ids, mask
            )
        # Detached numbers: no gradient flows through the reward.
        reinforced = ((base - rewards) * likelihood.view_as(rewards)).mean()
    loss = rl_weight * reinforced + (1 - rl_weight) * supervised
    return loss, StepMetrics(
        loss.item(),
        supervised.item(),
        rewards.mean().item(),
        base.mean().item(),
        mask.sum(1).float().mean().item(),
        float(np.mean([repeated_share(lowercase_words(text)) for text in texts[:drawn]])),
        _padding_share([*masks, *sampled_masks], decoded=decoded),
    )


def _score_texts(reward: Reward, texts: Sequence[str], references: Sequence[Any]) -> Any:
    """Return the rewards of texts; models that compute them are not part of the autocast."""
    import torch

    with torch.autocast("cpu", enabled=False):
        pairs = [Pair(text, refs) for text, refs in zip(texts, references, strict=True)]
        return torch.tensor(reward(pairs))


def _leave_one_out(rewards: Any) -> Any:
    """Return for each sample (samples, inputs) the mean reward of the input's other samples.

    >>> import torch
    >>> _leave_one_out(torch.tensor([[1.0], [2.0], [6.0]])).squeeze(1).tolist()
    [4.0, 3.5, 1.5]
    """
    return (rewards.sum(0) - rewards) / (len(rewards) - 1)


def _padding_share(masks: Sequence[Any], decoded: int = 0) -> float:
    """Return the share of padding among the positions of masks and `decoded` single tokens."""
    positions = decoded + sum(mask.numel() for mask in masks)
    return float(1 - (decoded + sum(int(mask.sum()) for mask in masks)) / positions)


def log_likelihood(policy: Policy, inputs: EncodedInputs, tokens: Any, mask: Any) -> Any:
    """Return the log-probability of each text, summed over its tokens."""
    from torch.nn.functional import cross_entropy, pad

    shifted = pad(tokens[:, :-1], (1, 0), value=policy.start_token)
    logits, _ = policy.next_logits(inputs, shifted, None, use_cache=False)
    losses = cross_entropy(
        logits.float().flatten(0, 1), tokens.flatten(), reduction="none"
    ).view_as(tokens)
    return -(losses * mask).sum(1)


def _likelihood_by_length(
    policy: Policy, inputs: EncodedInputs, ids: Any, mask: Any
) -> tuple[Any, list[Any]]:
    """Return the log-probability of each text, computed for texts of similar length together.

    Sampled texts differ in length more than the targets of a batch; one that runs to the limit
    would pad all others. Also returns the masks of the groups.
    """
    import torch

    groups = similar_lengths(mask.sum(1).tolist())
    values, masks = [], []
    for group in groups:
        rows = torch.tensor(group)
        width = int(mask[group[0]].sum())
        masks.append(mask[rows, :width])
        values.append(log_likelihood(policy, inputs.select(rows), ids[rows, :width], masks[-1]))
    order = torch.tensor([row for group in groups for row in group])
    return torch.cat(values)[order.argsort()], masks


def reference_cross_entropy(
    policy: Policy,
    sources: Sequence[str],
    texts: Sequence[str],
    *,
    longest: tuple[int, int],
    batch_size: int,
) -> float:
    """Return the mean cross-entropy per token of texts, given their inputs."""
    import torch

    order = sorted(range(len(sources)), key=lambda i: (len(sources[i]), len(texts[i])))
    total, count = 0.0, 0
    with eval_mode(policy.model), torch.no_grad(), autocast(policy):
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            inputs = policy.encode([sources[i] for i in batch], longest[0])
            ids, mask = policy.tokenize([texts[i] for i in batch], longest[1])
            total -= float(log_likelihood(policy, inputs, ids, mask).sum())
            count += int(mask.sum())
    return total / count


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
