"""The reward of a run: any metric, or one that looks words up in the policy's own embeddings."""

from __future__ import annotations

import dataclasses

from evenmatch.errors import InputError
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.together import as_metric
from evenmatch.types import Metric
from evenmatch.units.pieces import Pieces
from evenmatch.uses.train.rewards import Reward, reward
from evenmatch.uses.train.tune_policy import Policy
from evenmatch.vectors.lookup import LiveLookup, Lookup
from evenmatch.vectors.transformer import Transformer
from evenmatch.vectors.weighting import is_uncounted


def policy_reward(spec: str, policy: Policy, *, own_embeddings: bool) -> Reward:
    """The metric as a reward; with `own_embeddings`, on the policy's current input embeddings.

    Opening and closing tokens are left out. Metrics that are not made of parts, such as bleu, have
    no embeddings and are taken as they are.
    """
    metric = as_metric(spec)
    if own_embeddings and isinstance(metric, AlignMetric):
        metric = _with_own(metric, policy)
    return reward(metric)


def _with_own(metric: AlignMetric, policy: Policy) -> Metric:
    match metric.vectors:
        case Transformer(weights=weights, mass=mass) | Lookup(weights=weights, mass=mass):
            if is_uncounted(metric.vectors):
                raise InputError("a reward on own embeddings takes no idf that is still uncounted")
            live = LiveLookup(policy.model, policy.tokenizer, weights, mass)
            return dataclasses.replace(metric, units=Pieces(), vectors=live)
    raise InputError(
        "own_embeddings needs a metric over a model's pieces, such as f_disc; "
        "for this one say own_embeddings = false"
    )
