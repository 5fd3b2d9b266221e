"""Measures of the form of a text written for a graph, and the text of a template."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np

from evenmatch.data.graphs import GraphText, Triples
from evenmatch.training.rewards import lowercase_words, repeated_share

REPETITION = "repeated"
_LOOP_LENGTHS, _LOOP_COUNT = range(1, 9), 3  # so many words, so many times in a row
_NAMES = re.compile(r"(?<=[\w,;:)] )[A-Z]\w+|\d+(?:[.,]\d+)*")  # not at the start of a sentence


def repetition_rate(text: str, graph: GraphText | None = None) -> float:
    """Return the share of bigrams that repeat an earlier one."""
    return repeated_share(lowercase_words(text))


def has_loop(text: str, graph: GraphText | None = None) -> float:
    """Return 1 if up to eight words occur three times in a row, else 0.

    >>> has_loop("the cat and the cat and the cat and"), has_loop("the cat and the dog")
    (1.0, 0.0)
    """
    words = lowercase_words(text)
    for size in _LOOP_LENGTHS:
        for start in range(len(words) - _LOOP_COUNT * size + 1):
            whole = words[start : start + _LOOP_COUNT * size]
            if whole == whole[:size] * _LOOP_COUNT:
                return 1.0
    return 0.0


def length_ratio(text: str, graph: GraphText) -> float:
    """Return the number of words, divided by the mean number of words of the references."""
    wanted = float(np.mean([len(lowercase_words(each)) for each in graph.references]))
    return len(lowercase_words(text)) / max(wanted, 1.0)


def triple_coverage(text: str, graph: GraphText) -> float:
    """Return the share of the subjects and objects of a graph that the text mentions.

    One is mentioned if at least half of its words occur in the text, in any case.

    >>> each = GraphText(Triples((("Aarhus_Airport", "city", "Aarhus"),)), ("",))
    >>> triple_coverage("The airport serves a city.", each)
    0.5
    """
    assert isinstance(graph.graph, Triples)
    words = set(_plain_words(text))
    parts = {part for subject, _, value in graph.graph.triples for part in (subject, value)}
    wanted = [own for part in sorted(parts) if (own := _plain_words(part))]
    mentioned = [2 * sum(word in words for word in own) >= len(own) for own in wanted]
    return float(np.mean(mentioned)) if mentioned else 1.0


def invented_share(text: str, graph: GraphText) -> float:
    """Return the share of names and numbers in a text that neither graph nor references contain.

    Names are capitalised words that do not begin a sentence. 0 for a text without any.

    >>> each = GraphText(Triples((("Aarhus", "country", "Denmark"),)), ("Aarhus is Danish.",))
    >>> round(invented_share("In Denmark, Aarhus and Cork lie.", each), 3)
    0.333
    """
    found = [name.lower() for name in _NAMES.findall(text)]
    known = set(_plain_words(" ".join([graph.graph.line, *graph.references])))
    new = [not set(_plain_words(name)) <= known for name in found]
    return float(np.mean(new)) if new else 0.0


TEXT_MEASURES: Mapping[str, Callable[[str, GraphText], float]] = {
    "length": length_ratio,
    "covered": triple_coverage,
    "invented": invented_share,
    "loops": has_loop,
    REPETITION: repetition_rate,
}


def _plain_words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def template_text(each: GraphText) -> str:
    """Return a sentence for each triple: 'The R of H is T.'; other graphs are copied."""
    if not isinstance(each.graph, Triples):
        return each.graph.line
    lines = (Triples((triple,)).line for triple in each.graph.triples)
    parts = [re.split(r" ?<[HRT]> ", line)[1:] for line in lines]
    return " ".join(f"The {r.lower()} of {h} is {t}." for h, r, t in parts)
