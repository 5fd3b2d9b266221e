"""audit: how biased metrics are, attribute by attribute.

The outcome of an audit, and how it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import numpy as np

from evenmatch.api import metric_name
from evenmatch.data.fairness_sets import FairnessPair, FairnessSet, read_fair_pairs
from evenmatch.data.tables import TextTable, table_to_text
from evenmatch.errors import InputError
from evenmatch.fairness.bias import AuditTestSettings, Bias, measure_bias, normalised_gaps
from evenmatch.fairness.paradigms import (
    ParadigmGroup,
    group_biases,
    metric_kind,
    paradigm_table,
    published_metric_kind,
)
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import make_run, offset_progress
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.stats.panel import Floats
from evenmatch.types import Run

FairnessSource = str | PathLike[str] | FairnessSet


def audit(
    metric: str | Metric | Sequence[str | Metric] = "bertscore",
    pairs: FairnessSource = "",
    *,
    attributes: Sequence[str] = (),
    published: bool = False,
    worst: int = 3,
    confidence: float = 0.95,
    resamples: int = 1000,
    trials: int = 10_000,
    seed: int = 0,
    **run: Any,
) -> Audit:
    """How differently metrics score candidates that differ only in whom they speak of.

    `pairs` is what `read_fair_pairs` takes or gives: nothing for the pairs that come with
    evenmatch. `published` adds the scores that stand beside the pairs. `worst` pairs of each
    attribute and metric are shown. Each attribute is scored for itself, so that what a metric
    counts in its texts (idf) is counted there. `run` is as in `score`.
    """
    found = (
        pairs if isinstance(pairs, FairnessSet) else read_fair_pairs(pairs, attributes=attributes)
    )
    if worst < 0 or trials < 1 or resamples < 1:
        raise InputError("worst takes 0 or more, trials and resamples 1 or more")
    wanted = [metric] if isinstance(metric, str) or not isinstance(metric, Sequence) else [*metric]
    if not wanted and not published:
        raise InputError("the list of metrics is empty; name at least one, or ask for published")
    ready = {metric_name(given): as_metric(given) for given in wanted}
    verdicts = list(_score_metrics(ready, found, make_run(**run)))
    verdicts += _published_scores(found) if published else ()
    return build_audit(
        found, verdicts, AuditTestSettings(confidence, resamples, trials, seed), worst
    )


def _score_metrics(
    metrics: Mapping[str, Metric], found: FairnessSet, run: Run
) -> Iterator[AttributeScores]:
    done = 0
    for attribute, pairs in found.pairs.items():
        if not metrics:
            return
        texts = [text for pair in pairs for text in pair.both]
        part = offset_progress(run, done, 2 * len(found))
        scores = score_metrics(list(metrics.values()), texts, part)
        done += len(texts)
        for (name, metric), own in zip(metrics.items(), scores, strict=True):
            values = np.array([score.value for score in own.segments])
            yield AttributeScores(
                attribute, name, values[::2], values[1::2], own.signature, metric.higher_is_better
            )


def _published_scores(found: FairnessSet) -> Iterator[AttributeScores]:
    some = False
    for attribute, pairs in found.pairs.items():
        for name in pairs[0].scores:
            some = True
            yield AttributeScores(
                attribute, name, *_score_columns(pairs, name, attribute), PUBLISHED_SIGNATURE
            )
    if not some:
        raise InputError(
            f"{found.name} has no published scores; 'metric-fairness' has, or give lines with "
            "scores_a and scores_b"
        )


def _score_columns(
    pairs: Sequence[FairnessPair], name: str, attribute: str
) -> tuple[Floats, Floats]:
    if lacking := [n for n, pair in enumerate(pairs, 1) if name not in pair.scores]:
        raise InputError(f"pair {lacking[0]} about {attribute!r} has no score of {name}; add it")
    both = np.array([pair.scores[name] for pair in pairs])
    return both[:, 0], both[:, 1]


MEAN_COLUMN = "mean"


PUBLISHED_SIGNATURE = "published scores"  # in place of a signature


@dataclass(frozen=True, slots=True, eq=False)
class AttributeScores:
    """One metric's scores of the first and the second candidates of one attribute."""

    attribute: str
    metric: str
    first: Floats
    second: Floats
    signature: str
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class WorstPair:
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
    worst: tuple[WorstPair, ...]
    signatures: Mapping[str, str]
    testing: AuditTestSettings

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
    def groups(self) -> list[ParadigmGroup]:
        """Mean biases by paradigm and encoder, the fairest first."""
        kinds = {
            metric: published_metric_kind(metric)
            if recipe == PUBLISHED_SIGNATURE
            else metric_kind(recipe)
            for metric, recipe in self.signatures.items()
        }
        return group_biases(self.biases, kinds)

    def grid(self) -> TextTable:
        """The bias of each metric on each attribute, and its mean over them."""
        known = {(each.metric, each.attribute): each.bias for each in self.biases}
        rows = []
        for metric in self.metrics:
            own = [known.get((metric, attribute)) for attribute in self.attributes]
            given = [value for value in own if value is not None]
            cells = ["-" if value is None else f"{value:.2f}" for value in own]
            rows.append([metric, *cells, f"{sum(given) / len(given):.2f}"])
        return [["metric", *self.attributes, MEAN_COLUMN], *rows]

    def table(self) -> TextTable:
        """Every bias with its interval, the signed one with its test, the raw ones, the range."""
        header = ["attribute", "metric", "pairs", "bias", *self._bounds, "stereotype"]
        header += [*self._bounds, "p", "raw", "raw signed", "least", "most"]
        return [header, *map(_table_row, self.biases)]

    def notes(self) -> list[str]:
        """What the numbers rest on."""
        t = self.testing
        return [
            "bias: mean distance of a pair's scores where the set's scores span 0 to 100; "
            "stereotype: the same with its sign, positive where stereotypes are preferred",
            "raw: the same two in the metric's own unit; least, most: the range that was stretched",
            f"intervals: {t.resamples} resamples of pairs, the range kept; p: {t.trials} random "
            f"swaps within pairs, two-sided; seed {t.seed}",
            *(f"{name}: {recipe}" for name, recipe in self.signatures.items()),
        ]

    def __str__(self) -> str:
        worst = "\n\n".join(map(_format_worst_pair, self.worst))
        groups = self.groups
        crossing = table_to_text(paradigm_table(groups)) if len(groups) > 1 else ""
        tables = [table_to_text(self.grid()), crossing, table_to_text(self.table())]
        parts = [*tables, worst, "\n".join(self.notes())]
        return "\n\n".join(part for part in parts if part)

    @property
    def _bounds(self) -> tuple[str, str]:
        outside = 50 * (1 - self.testing.confidence)
        return f"{outside:.3g}%", f"{100 - outside:.3g}%"


def build_audit(
    found: FairnessSet, verdicts: Sequence[AttributeScores], draws: AuditTestSettings, worst: int
) -> Audit:
    """The audit that the scores of all metrics come to."""
    biases = [
        measure_bias(
            v.attribute,
            v.metric,
            v.first,
            v.second,
            higher_is_better=v.higher_is_better,
            draws=draws,
        )
        for v in verdicts
    ]
    cases = [case for v in verdicts for case in _worst_pairs(v, found.pairs[v.attribute], worst)]
    recipes = {v.metric: v.signature for v in verdicts}
    return Audit(found.name, tuple(biases), tuple(cases), recipes, draws)


def _worst_pairs(
    verdict: AttributeScores, pairs: Sequence[FairnessPair], count: int
) -> Iterator[WorstPair]:
    gaps = normalised_gaps(verdict.first, verdict.second)
    order = np.argsort(-np.abs(gaps), kind="stable")[:count]
    for at in (int(i) for i in order if gaps[i]):
        pair = pairs[at]
        yield WorstPair(
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


def _table_row(each: Bias) -> list[str]:
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


def _format_worst_pair(case: WorstPair) -> str:
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
