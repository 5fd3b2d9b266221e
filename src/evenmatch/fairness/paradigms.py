"""Biases grouped by the paradigm and the encoder of the metrics.

The groups show whether bias comes from how texts are compared (the paradigm: greedy matching,
transport, regression, …) or from the encoder. Both are parsed from a metric's signature, so that
stored results can be grouped without loading a model.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.data.tables import TextTable
from evenmatch.errors import InputError
from evenmatch.fairness.bias import Bias
from evenmatch.registry.parts import check_arguments
from evenmatch.stats.bootstrap import Interval

NGRAM_PARADIGM = "n-grams, edits"
NO_ENCODER = "none"
_OTHER = "other"

_ALIGNMENT_PARADIGMS: Mapping[str, str] = {
    "greedy": "greedy",
    "lsa": "one-to-one",
    **dict.fromkeys(("row_mask", "recursive", "auction"), "one-to-one, approximate"),
    "topk": "best pairs",
    "mutual": "mutual best",
    **dict.fromkeys(("emd", "sinkhorn", "unbalanced"), "transport"),
    "partial": "one-to-one, partial",
}

_UNIT_PARADIGMS: Mapping[str, str] = {
    **dict.fromkeys(("subtrees", "constituents"), "structure"),
    **dict.fromkeys(("closing", "opening", "whole_text"), "one vector"),
    "sentences": "sentences",
}

_LIKELIHOOD_PARADIGMS: Mapping[str, str] = {
    "precision": "likelihood of the candidate",
    "recall": "likelihood of the reference",
    "both": "likelihood, both ways",
    "candidate": "fluency",
    "reference": "fluency",
}

_TRAINED_PARADIGMS: Mapping[str, str] = {
    "regression": "regression, cross-encoder",
    "fitted": "regression, bi-encoder",
}

# Names of the published scores: METRIC[-ENCODER][-DIRECTION].
_PUBLISHED_PARADIGMS: Mapping[str, str] = {
    "BERTScore": "greedy",
    "MoverScore": "transport",
    **dict.fromkeys(("BLEURT", "FrugalScore"), _TRAINED_PARADIGMS["regression"]),
    **dict.fromkeys(("BLEU", "ROUGE", "METEOR", "NIST", "chrF"), NGRAM_PARADIGM),
}

_DIRECTION_SUFFIXES: Mapping[str, str] = {"-p": "precision", "-r": "recall", "-F": "both"}
_SIGNATURE_FACT = re.compile(r" · (model|adapter) (\S+?)@")


@dataclass(frozen=True, slots=True)
class MetricKind:
    """A paradigm, and an encoder with the layer whose hidden states are used."""

    paradigm: str
    encoder: str


@dataclass(frozen=True, slots=True)
class ParadigmGroup:
    """The metrics with one paradigm and encoder, and their mean bias over attributes.

    `effect` is in standard deviations of the scores and may be compared between groups, unlike
    `bias`, which is on the scale from 0 to 100. The pairs of different attributes are independent,
    so the squared half-widths of their intervals add up; the metrics of a group score the same
    pairs, so their half-widths are averaged.
    """

    paradigm: str
    encoder: str
    metrics: tuple[str, ...]
    bias: float
    low: float
    high: float
    effect: float
    effect_low: float
    effect_high: float


@check_arguments
def metric_kind(signature: str) -> MetricKind:
    """Paradigm and encoder of the metric with this signature.

    >>> metric_kind("align(alignment=lsa, vectors=transformer(layer=4)) · model minilm@f7")
    MetricKind(paradigm='one-to-one', encoder='minilm, layer 4')
    >>> metric_kind("chrf · sacrebleu 2.6.0")
    MetricKind(paradigm='n-grams, edits', encoder='none')
    >>> metric_kind("counterfactual_mean(base=chrf) · sacrebleu 2.6.0").paradigm
    'n-grams, edits, mean over groups'
    """
    try:
        name, settings = _parse_call(ast.parse(signature.split(" · ")[0], mode="eval").body)
    except SyntaxError:  # a part that is not registered has no spec
        name, settings = _OTHER, {}
    if name == "counterfactual_mean":
        base = metric_kind(ast.unparse(settings["base"]) + signature[signature.find(" · ") :])
        return MetricKind(f"{base.paradigm}, mean over groups", base.encoder)
    encoder = _encoder_label(signature, settings.get("vectors"))
    if name == "align":
        units = _parse_call(settings["units"])[0] if "units" in settings else "pieces"
        solver = _parse_call(settings["alignment"])[0] if "alignment" in settings else "greedy"
        paradigm = _UNIT_PARADIGMS.get(units) or _ALIGNMENT_PARADIGMS.get(solver, _OTHER)
        return MetricKind(paradigm, encoder)
    if name == "likelihood":
        return MetricKind(
            _LIKELIHOOD_PARADIGMS[_literal_value(settings.get("direction"), "both")], encoder
        )
    if name in _TRAINED_PARADIGMS:
        return MetricKind(_TRAINED_PARADIGMS[name], encoder)
    plain = encoder == NO_ENCODER and name != _OTHER
    return MetricKind(NGRAM_PARADIGM if plain else _OTHER, encoder)


@check_arguments
def published_metric_kind(name: str) -> MetricKind:
    """Paradigm and encoder of a metric whose scores were published with Metric-Fairness.

    >>> published_metric_kind("BARTScore-BART-base-p")
    MetricKind(paradigm='likelihood of the candidate', encoder='BART-base')
    """
    stem, _, encoder = name.partition("-")
    if stem in _PUBLISHED_PARADIGMS:
        return MetricKind(_PUBLISHED_PARADIGMS[stem], encoder or NO_ENCODER)
    direction = _DIRECTION_SUFFIXES.get(name[-2:])
    if direction is None:
        return MetricKind(_OTHER, encoder or NO_ENCODER)
    base = name[:-2]
    return MetricKind(_LIKELIHOOD_PARADIGMS[direction], base.partition("-")[2] or base)


@check_arguments
def group_biases(biases: Sequence[Bias], kinds: Mapping[str, MetricKind]) -> list[ParadigmGroup]:
    """Group metrics by paradigm and encoder, the least biased group first."""
    members: dict[MetricKind, list[str]] = {}
    measured = {each.metric for each in biases}
    for metric, kind in kinds.items():
        if metric not in measured:
            raise InputError(f"there is no bias of {metric!r:.40}; give one for each metric")
        members.setdefault(kind, []).append(metric)
    groups = [_build_group(kind, metrics, biases) for kind, metrics in members.items()]
    return sorted(groups, key=lambda group: group.effect)


@check_arguments
def paradigm_table(groups: Sequence[ParadigmGroup]) -> TextTable:
    """Table of mean effects with intervals: a row for each paradigm, a column for each encoder."""
    known = {
        (g.paradigm, g.encoder): f"{g.effect:.2f} ({g.effect_low:.2f}-{g.effect_high:.2f})"
        for g in groups
    }
    encoders = list(dict.fromkeys(group.encoder for group in groups))
    return [
        ["paradigm", *encoders],
        *(
            [paradigm, *(known.get((paradigm, encoder), "-") for encoder in encoders)]
            for paradigm in dict.fromkeys(group.paradigm for group in groups)
        ),
    ]


def _build_group(kind: MetricKind, metrics: Sequence[str], biases: Sequence[Bias]) -> ParadigmGroup:
    own = [each for each in biases if each.metric in metrics]
    bias = _mean_interval([(b.attribute, Interval(b.bias, b.low, b.high)) for b in own])
    effect = _mean_interval([(b.attribute, b.effect_interval) for b in own])
    return ParadigmGroup(
        kind.paradigm,
        kind.encoder,
        tuple(metrics),
        *(bias.value, bias.low, bias.high),
        *(effect.value, effect.low, effect.high),
    )


def _mean_interval(estimates: Sequence[tuple[str, Interval]]) -> Interval:
    """Average the estimates of each attribute, then those means."""
    by_attribute: dict[str, list[tuple[float, float, float]]] = {}
    for attribute, found in estimates:
        margins = (found.value, found.value - found.low, found.high - found.value)
        by_attribute.setdefault(attribute, []).append(margins)
    means = np.array([np.mean(each, axis=0) for each in by_attribute.values()])
    value = float(means[:, 0].mean())
    below, above = (math.hypot(*each) / len(means) for each in means[:, 1:].T)
    return Interval(value, value - below, value + above)


def _encoder_label(signature: str, vectors: ast.expr | None) -> str:
    facts = _SIGNATURE_FACT.findall(signature)
    named = [name for what, name in facts if what == "model"]
    if not named:
        return _parse_call(vectors)[0] if vectors is not None else NO_ENCODER
    layer = _literal_value(_parse_call(vectors)[1].get("layer"), "") if vectors is not None else ""
    adapted = [f"adapter {name}" for what, name in facts if what == "adapter"]
    return ", ".join([*named, *([f"layer {layer}"] if layer else []), *adapted])


def _parse_call(node: ast.expr) -> tuple[str, dict[str, ast.expr]]:
    """Return the name and the settings of a part."""
    if isinstance(node, ast.Call):
        settings = {each.arg: each.value for each in node.keywords if each.arg}
        return _parse_call(node.func)[0], settings
    return (node.id if isinstance(node, ast.Name) else _OTHER), {}


def _literal_value(node: ast.expr | None, default: str) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else default
