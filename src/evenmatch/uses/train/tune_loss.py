"""The mixed loss: cross-entropy, and reward above that of the likeliest text (self-critical)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenmatch.types import Pair
from evenmatch.uses.train.rewards import Reward
from evenmatch.uses.train.tune_policy import Policy
from evenmatch.uses.train.tune_writing import Written, evaluating, texts_of, write


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples of one step: what is read, what is to be written, and every reference."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Told:
    """Means over the examples of one step; `reward` is that of what was drawn."""

    loss: float
    cross_entropy: float
    reward: float = 0.0
    baseline: float = 0.0


def mixed_loss(
    policy: Policy,
    batch: Batch,
    *,
    rl_weight: float,
    reward: Reward,
    draw: Any,
    longest: tuple[int, int],
) -> tuple[Any, Told]:
    """λ·L_r + (1 − λ)·L_e (Jin & Gildea 2022, section 4), the mean over the examples.

    Both are sums over a text's pieces. The inputs are encoded once, for cross-entropy, the text
    that is drawn with the generator `draw`, and the likeliest one. Texts are written, and the
    drawn one weighed, without dropout in the decoder: so the weights are those it was drawn with.
    """
    ids, mask = policy.cut(batch.sources, longest[0])
    states = policy.read(ids, mask)
    wanted, real = policy.cut(batch.targets, longest[1])
    supervised = -likelihood(policy, states, mask, Written(wanted, real)).mean()
    if rl_weight == 0:
        return supervised, Told(supervised.item(), supervised.item())
    reinforced, drawn, likeliest = _reinforced(
        policy, batch, states, mask, reward=reward, draw=draw, longest=longest[1]
    )
    loss = rl_weight * reinforced + (1 - rl_weight) * supervised
    return loss, Told(loss.item(), supervised.item(), drawn, likeliest)


def _reinforced(
    policy: Policy,
    batch: Batch,
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
    with evaluating(policy.model):
        both = write(policy, states, mask, draw=draw, longest=longest)
        drawn, likeliest = rewards_of(policy, both, batch, reward)
        gap = torch.tensor(likeliest) - torch.tensor(drawn)
        sample = Written(both.ids[:half], both.alive[:half])
        loss = (gap * likelihood(policy, states, mask, sample)).mean()
    return loss, sum(drawn) / half, sum(likeliest) / half


def rewards_of(
    policy: Policy, both: Written, batch: Batch, reward: Reward
) -> tuple[list[float], list[float]]:
    """The rewards of the texts drawn and of the likeliest texts, which stand below them."""
    texts, references = texts_of(policy, both), [*batch.references, *batch.references]
    values = reward([Pair(t, r) for t, r in zip(texts, references, strict=True)])
    half = len(batch.references)
    return values[:half], values[half:]


def likelihood(policy: Policy, states: Any, mask: Any, written: Written) -> Any:
    """The log-probability of each text, summed over its pieces."""
    from torch.nn.functional import cross_entropy, pad

    before = pad(written.ids[:, :-1], (1, 0), value=policy.start)
    logits = policy.model(
        encoder_outputs=(states,), attention_mask=mask, decoder_input_ids=before, use_cache=False
    ).logits
    lost = cross_entropy(logits.transpose(1, 2), written.ids, reduction="none")
    return -(lost * written.alive).sum(1)
