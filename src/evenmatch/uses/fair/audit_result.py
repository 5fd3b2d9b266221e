"""The outcome of an audit, and how it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenmatch.data.fair_pairs import FairSet
from evenmatch.data.fair_texts import FairPair
from evenmatch.data.tables import Table, as_text
from evenmatch.stats.arrays import Floats
from evenmatch.uses.fair.bias import Bias, Draws, measure, normalised_gaps
from evenmatch.uses.fair.groups import Group, crossed, grouped
from evenmatch.uses.fair.kinds import kind_of, published_kind

MEAN = "mean"
PUBLISHED = "published scores"  # in place of a signature


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """One metric's scores of the first and the second candidates of one attribute."""

    attribute: str
    metric: str
    first: Floats
    second: Floats
    signature: str
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class Worst:
    """A pair that one metric scores very differently; `gap` is in hundredths of the range."""

    attribute: str
    metric: str
    number: int  # of the pair in its set, from 1
    gap: float
    score_a: float
    score_b: float
    cand_a: str
    cand_b: str
    ref_a: str
    ref_b: str


@dataclass(frozen=True, slots=True)
class Audit:
    """Biases by attribute and metric, and the pairs that differ most."""

    data: str
    biases: tuple[Bias, ...]
    worst: tuple[Worst, ...]
    signatures: Mapping[str, str]
    draws: Draws

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each bias as a plain dictionary."""
        return [asdict(each) for each in self.biases]

    @property
    def attributes(self) -> list[str]:
        """What was audited, in order."""
        return list(dict.fromkeys(each.attribute for each in self.biases))

    @property
    def metrics(self) -> list[str]:
        """Which metrics were, in order."""
        return list(dict.fromkeys(each.metric for each in self.biases))

    @property
    def groups(self) -> list[Group]:
        """Mean biases by paradigm and encoder, the fairest first."""
        kinds = {
            metric: published_kind(metric) if recipe == PUBLISHED else kind_of(recipe)
            for metric, recipe in self.signatures.items()
        }
        return grouped(self.biases, kinds)

    def grid(self) -> Table:
        """The bias of each metric on each attribute, and its mean over them."""
        known = {(each.metric, each.attribute): each.bias for each in self.biases}
        rows = []
        for metric in self.metrics:
            own = [known.get((metric, attribute)) for attribute in self.attributes]
            given = [value for value in own if value is not None]
            cells = ["-" if value is None else f"{value:.2f}" for value in own]
            rows.append([metric, *cells, f"{sum(given) / len(given):.2f}"])
        return [["metric", *self.attributes, MEAN], *rows]

    def table(self) -> Table:
        """Every bias with its interval, the signed one with its test, the raw ones, the range."""
        header = ["attribute", "metric", "pairs", "bias", *self._bounds, "stereotype"]
        header += [*self._bounds, "p", "raw", "raw signed", "least", "most"]
        return [header, *map(_cells, self.biases)]

    def notes(self) -> list[str]:
        """What the numbers rest on."""
        t = self.draws
        return [
            "bias: mean distance of a pair's scores where the set's scores span 0 to 100; "
            "stereotype: the same with its sign, positive where stereotypes are preferred",
            "raw: the same two in the metric's own unit; least, most: the range that was stretched",
            f"intervals: {t.resamples} resamples of pairs, the range kept; p: {t.trials} random "
            f"swaps within pairs, two-sided; seed {t.seed}",
            *(f"{name}: {recipe}" for name, recipe in self.signatures.items()),
        ]

    def __str__(self) -> str:
        worst = "\n\n".join(map(_told, self.worst))
        groups = self.groups
        crossing = as_text(crossed(groups)) if len(groups) > 1 else ""
        tables = [as_text(self.grid()), crossing, as_text(self.table())]
        parts = [*tables, worst, "\n".join(self.notes())]
        return "\n\n".join(part for part in parts if part)

    @property
    def _bounds(self) -> tuple[str, str]:
        outside = 50 * (1 - self.draws.confidence)
        return f"{outside:.3g}%", f"{100 - outside:.3g}%"


def judged(found: FairSet, verdicts: Sequence[Verdict], draws: Draws, worst: int) -> Audit:
    """The audit that the scores of all metrics come to."""
    biases = [
        measure(
            v.attribute,
            v.metric,
            v.first,
            v.second,
            higher_is_better=v.higher_is_better,
            draws=draws,
        )
        for v in verdicts
    ]
    cases = [case for v in verdicts for case in _worst(v, found.pairs[v.attribute], worst)]
    recipes = {v.metric: v.signature for v in verdicts}
    return Audit(found.name, tuple(biases), tuple(cases), recipes, draws)


def _worst(verdict: Verdict, pairs: Sequence[FairPair], count: int) -> Iterator[Worst]:
    gaps = normalised_gaps(verdict.first, verdict.second)
    order = np.argsort(-np.abs(gaps), kind="stable")[:count]
    for at in (int(i) for i in order if gaps[i]):
        pair = pairs[at]
        yield Worst(
            verdict.attribute,
            verdict.metric,
            at + 1,
            float(gaps[at]) * (1 if verdict.higher_is_better else -1),
            float(verdict.first[at]),
            float(verdict.second[at]),
            pair.first.candidate,
            pair.second.candidate,
            pair.first.references[0],
            pair.second.references[0],
        )


def _cells(each: Bias) -> list[str]:
    hundredths = (each.bias, each.low, each.high)
    signed = (each.stereotype, each.stereotype_low, each.stereotype_high)
    plain = (each.raw, each.raw_stereotype, each.least, each.most)
    return [
        each.attribute,
        each.metric,
        str(each.pairs),
        *(f"{value:.2f}" for value in (*hundredths, *signed)),
        f"{each.p:.4f}",
        *(f"{value:.4f}" for value in plain),
    ]


def _told(case: Worst) -> str:
    same = case.ref_a == case.ref_b
    references = (
        [f"  reference {case.ref_a}"]
        if same
        else [
            f"  reference {case.ref_a}",
            f"            {case.ref_b}",
        ]
    )
    return "\n".join(
        [
            f"{case.attribute} pair {case.number}, {case.metric}: {case.gap:+.2f}",
            f"  {case.score_a:9.4f} {case.cand_a}",
            f"  {case.score_b:9.4f} {case.cand_b}",
            *references,
        ]
    )
