"""Biases by paradigm and encoder: whether how a metric judges matters, or what it judges by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenmatch.data.tables import Table
from evenmatch.uses.fair.bias import Bias
from evenmatch.uses.fair.kinds import Kind


@dataclass(frozen=True, slots=True)
class Group:
    """The metrics of one paradigm on one encoder, and their mean bias over attributes.

    The pairs of two attributes have nothing to do with each other, so the widths of their intervals
    add up in squares; metrics of one group see the same pairs, so theirs are averaged.
    """

    paradigm: str
    encoder: str
    metrics: tuple[str, ...]
    bias: float
    low: float
    high: float


def grouped(biases: Sequence[Bias], kinds: Mapping[str, Kind]) -> list[Group]:
    """A group for each paradigm and encoder that occur, the fairest first."""
    members: dict[Kind, list[str]] = {}
    for metric, kind in kinds.items():
        members.setdefault(kind, []).append(metric)
    groups = [_group(kind, own, biases) for kind, own in members.items()]
    return sorted(groups, key=lambda group: group.bias)


def _group(kind: Kind, metrics: Sequence[str], biases: Sequence[Bias]) -> Group:
    own = [each for each in biases if each.metric in metrics]
    attributes = list(dict.fromkeys(each.attribute for each in own))
    means, below, above = [], [], []
    for attribute in attributes:
        some = [each for each in own if each.attribute == attribute]
        means.append(_mean([each.bias for each in some]))
        below.append(_mean([each.bias - each.low for each in some]))
        above.append(_mean([each.high - each.bias for each in some]))
    bias = _mean(means)
    return Group(
        kind.paradigm,
        kind.encoder,
        tuple(metrics),
        bias,
        bias - math.hypot(*below) / len(attributes),
        bias + math.hypot(*above) / len(attributes),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def crossed(groups: Sequence[Group]) -> Table:
    """Mean biases with their intervals: a row for each paradigm, a column for each encoder."""
    known = {(g.paradigm, g.encoder): f"{g.bias:.2f} ({g.low:.2f}-{g.high:.2f})" for g in groups}
    encoders = list(dict.fromkeys(group.encoder for group in groups))
    return [
        ["paradigm", *encoders],
        *(
            [paradigm, *(known.get((paradigm, encoder), "-") for encoder in encoders)]
            for paradigm in dict.fromkeys(group.paradigm for group in groups)
        ),
    ]
