"""Likelihood metrics by name: BARTScore and PRISM, on their authors' kind of model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from evenmatch.registry import register
from evenmatch.registry.borrowing import with_settings_of
from evenmatch.scoring.likelihood import PROMPT, Likelihood

_BART = "facebook/bart-large-cnn"
_TRANSLATOR = "facebook/m2m100_418M"


@register("metric", "bartscore")
def bartscore(
    model: str = _BART,
    prompt: str = PROMPT,
    weights: str = "",
    long: Literal["truncate", "error"] = "truncate",
    trust_remote_code: bool = False,
    adapter: str = "",
) -> Likelihood:
    """BARTScore: the mean of precision and recall as log-probabilities (Yuan et al. 2021).

    The mean runs over all pieces of a text and the marks around it. `weights` takes the authors'
    bart_score.pth. A causal model reads `prompt`.
    """
    return Likelihood(
        model,
        prompt=prompt,
        weights=weights,
        long=long,
        trust_remote_code=trust_remote_code,
        adapter=adapter,
    )


@register("metric", "bartscore_precision")
@with_settings_of(bartscore)
def bartscore_precision(**settings: Any) -> Likelihood:
    """BARTScore's precision: the candidate's log-probability after the reference."""
    return replace(bartscore(**settings), direction="precision")


@register("metric", "bartscore_recall")
@with_settings_of(bartscore)
def bartscore_recall(**settings: Any) -> Likelihood:
    """BARTScore's recall: the reference's log-probability after the candidate."""
    return replace(bartscore(**settings), direction="recall")


@register("metric", "prism")
def prism(
    model: str = _TRANSLATOR,
    source_tag: str = "__en__",
    target_tag: str = "__en__",
    weights: str = "",
    long: Literal["truncate", "error"] = "truncate",
    trust_remote_code: bool = False,
    adapter: str = "",
) -> Likelihood:
    """PRISM: a multilingual translator, told to write the same language, as judge.

    The mean runs over the pieces and the closing token, not the tag (Thompson & Post 2020). Their
    own model is none that transformers loads by itself; with a port of it, write target_tag='<en>'
    and source_tag='', since it reads without a tag.
    """
    return Likelihood(
        model, "both", PROMPT, source_tag, target_tag, weights, long, trust_remote_code, adapter
    )
