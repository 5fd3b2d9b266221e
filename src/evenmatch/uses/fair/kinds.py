"""Of what kind a metric is: by which paradigm it judges, and on which encoder.

Read off its signature, so that results of another day and machine can be sorted too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

WORDS = "n-grams, edits"
NO_ENCODER = "none"
_OTHER = "other"
_SOLVERS: Mapping[str, str] = {
    "greedy": "greedy",
    "lsa": "one-to-one",
    **dict.fromkeys(("row_mask", "recursive", "auction"), "one-to-one, approximate"),
    "topk": "best pairs",
    **dict.fromkeys(("emd", "sinkhorn"), "transport"),
}
_UNITS: Mapping[str, str] = {
    **dict.fromkeys(("subtrees", "constituents"), "structure"),
    **dict.fromkeys(("closing", "opening", "whole_text"), "one vector"),
}
_DIRECTIONS: Mapping[str, str] = {
    "precision": "likelihood of the candidate",
    "recall": "likelihood of the reference",
    "both": "likelihood, both ways",
}
_TRAINED: Mapping[str, str] = {
    "regression": "regression, side by side",
    "fitted": "regression, two towers",
}
# How the published scores are called: a metric, perhaps an encoder, perhaps a direction.
_PUBLISHED: Mapping[str, str] = {
    "BERTScore": "greedy",
    "MoverScore": "transport",
    **dict.fromkeys(("BLEURT", "FrugalScore"), _TRAINED["regression"]),
    **dict.fromkeys(("BLEU", "ROUGE", "METEOR", "NIST", "chrF"), WORDS),
}
_ENDS: Mapping[str, str] = {"-p": "precision", "-r": "recall", "-F": "both"}
_FACT = re.compile(r" · (model|adapter) (\S+?)@")


@dataclass(frozen=True, slots=True)
class Kind:
    """A paradigm, and an encoder with the layer that is read."""

    paradigm: str
    encoder: str


def kind_of(signature: str) -> Kind:
    """The kind of the metric with this signature.

    >>> kind_of("align(alignment=lsa, vectors=transformer(layer=4)) · model minilm@f7")
    Kind(paradigm='one-to-one', encoder='minilm, layer 4')
    >>> kind_of("chrf · sacrebleu 2.6.0")
    Kind(paradigm='n-grams, edits', encoder='none')
    """
    try:
        name, settings = _call(ast.parse(signature.split(" · ")[0], mode="eval").body)
    except SyntaxError:  # a part without a name has no spec
        name, settings = _OTHER, {}
    encoder = _encoder(signature, settings.get("vectors"))
    if name == "align":
        return Kind(_aligning(settings), encoder)
    if name == "likelihood":
        return Kind(_DIRECTIONS[_literal(settings.get("direction"), "both")], encoder)
    if name in _TRAINED:
        return Kind(_TRAINED[name], encoder)
    plain = encoder == NO_ENCODER and name != _OTHER
    return Kind(WORDS if plain else _OTHER, encoder)


def published_kind(name: str) -> Kind:
    """The kind of a metric whose scores were published with Metric-Fairness.

    >>> published_kind("BARTScore-BART-base-p")
    Kind(paradigm='likelihood of the candidate', encoder='BART-base')
    """
    stem, _, encoder = name.partition("-")
    if stem in _PUBLISHED:
        return Kind(_PUBLISHED[stem], encoder or NO_ENCODER)
    way = _ENDS.get(name[-2:])
    if way is None:
        return Kind(_OTHER, encoder or NO_ENCODER)
    own = name[:-2]
    return Kind(_DIRECTIONS[way], own.partition("-")[2] or own)


def _aligning(settings: Mapping[str, ast.expr]) -> str:
    units = _call(settings["units"])[0] if "units" in settings else "pieces"
    solver = _call(settings["alignment"])[0] if "alignment" in settings else "greedy"
    return _UNITS.get(units, _SOLVERS.get(solver, _OTHER))


def _encoder(signature: str, vectors: ast.expr | None) -> str:
    facts = _FACT.findall(signature)
    named = [name for what, name in facts if what == "model"]
    if not named:
        return _call(vectors)[0] if vectors is not None else NO_ENCODER
    layer = _literal(_call(vectors)[1].get("layer"), "") if vectors is not None else ""
    adapted = [f"adapter {name}" for what, name in facts if what == "adapter"]
    return ", ".join([*named, *([f"layer {layer}"] if layer else []), *adapted])


def _call(node: ast.expr) -> tuple[str, dict[str, ast.expr]]:
    """A part's name and settings."""
    if isinstance(node, ast.Call):
        settings = {each.arg: each.value for each in node.keywords if each.arg}
        return _call(node.func)[0], settings
    return (node.id if isinstance(node, ast.Name) else _OTHER), {}


def _literal(node: ast.expr | None, default: str) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else default
