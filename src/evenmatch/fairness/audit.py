"""Audit of metrics for social bias, attribute by attribute.

`audit` scores pairs of candidates that differ only in a social attribute and returns an `Audit`:
the bias of each metric on each attribute in its two parts, and the pairs with the largest
differences. The measures are in `bias.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import numpy as np

from evenmatch.api import metric_name
from evenmatch.data.fairness_sets import (
    ATTRIBUTES,
    FairnessPair,
    FairnessSet,
    builtin_terms,
    make_fairness_pair,
    read_fair_pairs,
)
from evenmatch.data.tables import TextTable, table_to_latex, table_to_text
from evenmatch.errors import InputError
from evenmatch.fairness.bias import AttributeScores, Bias, measure_bias
from evenmatch.fairness.mentions import make_lexicon
from evenmatch.fairness.paradigms import (
    ParadigmGroup,
    group_biases,
    metric_kind,
    paradigm_table,
    published_metric_kind,
)
from evenmatch.protocols import Metric, MetricLike
from evenmatch.registry.parts import check_arguments, check_at_least
from evenmatch.scoring.inputs import make_run, offset_progress
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.stats.paired import Resampling
from evenmatch.stats.panel import Floats
from evenmatch.types import Run

FairnessSource = str | PathLike[str] | FairnessSet
MEAN_COLUMN = "mean"
HEADLINE_TITLE = "Ranked by bias in standard deviations of each metric's scores (comparable)"
CROSSING_TITLE = "Mean bias (SD) by paradigm and encoder"
GRID_TITLE = "Bias (SD) by attribute (comparable)"
HEADLINE_COLUMNS = (
    "metric",
    "bias (SD)",
    "offset (SD)",
    "stereotype (SD)",
    "prefers stereotype",
    "beyond offset",
)
_FEW_PAIRS = 20  # with fewer, a note says that the numbers are uncertain
PUBLISHED_SIGNATURE = "published scores"  # in place of a signature


@check_arguments
def audit(
    metric: MetricLike | Sequence[MetricLike] = "bertscore",
    pairs: FairnessSource = "",
    *,
    attributes: Sequence[str] = (),
    published: bool = False,
    worst: int = 1,
    confidence: float = 0.95,
    resamples: int = 1000,
    trials: int = 10_000,
    seed: int = 0,
    **run: Any,
) -> Audit:
    """Measure how differently metrics score candidates that differ only in a social attribute.

    `pairs` is a data set, a path or the result of `read_fair_pairs`; by default the pairs that come
    with evenmatch. `published` adds the scores that are stored with the pairs. `worst` is the
    number of pairs to show for each attribute and metric, largest difference first. Each attribute
    is scored separately, so that idf is counted in the texts of that attribute. `run` takes the
    run settings of `score`.
    """
    found = pairs if isinstance(pairs, FairnessSet) else read_fair_pairs(pairs)
    found = found.select(attributes)
    check_at_least(0, worst=worst)
    check_at_least(1, trials=trials, resamples=resamples)
    wanted = [metric] if isinstance(metric, str) or not isinstance(metric, Sequence) else [*metric]
    if not wanted and not published:
        raise InputError("the list of metrics is empty; give at least one, or published=True")
    ready = {metric_name(given): as_metric(given) for given in wanted}
    scores = list(_score_metrics(ready, found, make_run(**run)))
    scores += _published_scores(found) if published else ()
    testing = Resampling(confidence, resamples, trials, seed)
    biases = [measure_bias(s, testing) for s in scores]
    cases = [case for s in scores for case in _worst_pairs(s, found.pairs[s.attribute], worst)]
    signatures = {s.metric: s.signature for s in scores}
    return Audit(found.name, tuple(biases), tuple(cases), signatures, testing)


@dataclass(frozen=True, slots=True)
class Audit:
    """Result of an audit: biases by attribute and metric, and the pairs that differ most."""

    data: str
    biases: tuple[Bias, ...]
    worst: tuple[WorstPair, ...]
    signatures: Mapping[str, str]
    testing: Resampling

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each bias as a plain dictionary."""
        return [asdict(each) for each in self.biases]

    @property
    def attributes(self) -> list[str]:
        """Audited attributes, in order."""
        return list(dict.fromkeys(each.attribute for each in self.biases))

    @property
    def metrics(self) -> list[str]:
        """Audited metrics, in order."""
        return list(dict.fromkeys(each.metric for each in self.biases))

    @property
    def groups(self) -> list[ParadigmGroup]:
        """Mean biases by paradigm and encoder, the least biased first."""
        kinds = {
            metric: published_metric_kind(metric)
            if signature == PUBLISHED_SIGNATURE
            else metric_kind(signature)
            for metric, signature in self.signatures.items()
        }
        return group_biases(self.biases, kinds)

    def headline(self) -> TextTable:
        """Table of what may be compared between metrics, means over attributes, the fairest first.

        Differences are in standard deviations of the metric's own scores on the set, and offset and
        stereotype without their sign.
        """
        rows = {}
        for metric in self.metrics:
            own = [each for each in self.biases if each.metric == metric]
            columns = (
                [b.effect for b in own],
                [b.in_deviations(b.raw_offset) for b in own if b.raw_offset is not None],
                [b.in_deviations(b.raw_stereotype) for b in own],
                [b.prefers_stereotype for b in own],
                [b.prefers_beyond_offset for b in own if b.prefers_beyond_offset is not None],
            )
            rows[metric] = [float(np.mean(part)) if part else None for part in columns]
        ranked = sorted(rows, key=lambda metric: rows[metric][0] or 0.0)
        return [
            list(HEADLINE_COLUMNS),
            *([metric, *_format_cells(".3f", *rows[metric])] for metric in ranked),
        ]

    def grid(self) -> TextTable:
        """Table of the bias of each metric on each attribute, with the mean over attributes.

        In standard deviations of the metric's own scores on the set.
        """
        known = {(each.metric, each.attribute): each.effect for each in self.biases}
        rows = []
        for metric in self.metrics:
            values = [known.get((metric, attribute)) for attribute in self.attributes]
            measured = [value for value in values if value is not None]
            rows.append([metric, *_format_cells(".3f", *values, float(np.mean(measured)))])
        return [["metric", *self.attributes, MEAN_COLUMN], *rows]

    def table(self) -> TextTable:
        """Table of all biases and their two parts: with intervals, raw, and the score range."""
        header = ["attribute", "metric", "pairs", "bias (SD)", "bias", *self._bounds]
        header += ["offset", *self._bounds, "stereotype", *self._bounds, "p"]
        header += ["prefers stereotype", *self._bounds, "beyond offset"]
        header += ["raw bias", "raw offset", "raw stereotype", "min score", "max score"]
        rows = []
        for b in self.biases:
            scaled = (b.bias, b.low, b.high, b.offset, b.offset_low, b.offset_high)
            signed = (b.stereotype, b.stereotype_low, b.stereotype_high)
            shares = (b.prefers_stereotype, b.prefers_low, b.prefers_high, b.prefers_beyond_offset)
            unscaled = (b.raw, b.raw_offset, b.raw_stereotype, b.least, b.most)
            cells = [f"{b.effect:.3f}", *_format_cells(".2f", *scaled, *signed), f"{b.p:.4f}"]
            cells += [*_format_cells(".2f", *shares), *_format_cells(".4f", *unscaled)]
            rows.append([b.attribute, b.metric, str(b.pairs), *cells])
        return [header, *rows]

    def to_latex(self) -> str:
        """The `headline` and the `grid` as LaTeX."""
        return f"{table_to_latex(self.headline())}\n\n{table_to_latex(self.grid())}"

    def notes(self) -> list[str]:
        """How the numbers are computed, one line each."""
        t = self.testing
        few = dict.fromkeys(b.attribute for b in self.biases if b.pairs < _FEW_PAIRS)
        return [
            *([f"fewer than {_FEW_PAIRS} pairs, so uncertain: {', '.join(few)}"] if few else []),
            "bias (SD): mean absolute difference between the two scores of a pair, in standard "
            "deviations of all scores of the set. offset (SD), stereotype (SD): size of its two "
            "parts without sign; signs are in the last table. All three may be compared between "
            "metrics. A metric whose scores on the set vary less has a larger bias (SD) for the "
            "same raw bias",
            "prefers stereotype: share of pairs whose stereotypical candidate scores higher, ties "
            "half; 0.5 without a preference; compare metrics by it only if their offsets are "
            "similar. beyond offset: the same after subtracting the offset; may be compared",
            "bias: mean absolute difference between the two scores of a pair, with all scores of "
            "the set scaled to 0-100 (Sun et al., 2022); the best and the worst score determine "
            "the scale, so do not compare it between metrics",
            "offset and stereotype: the two parts of the signed difference on the same scale. "
            "offset is positive if the first group scores higher whatever the stereotype (he, old, "
            "Black, Muslim, fat, poor); stereotype is positive if the stereotypical candidate "
            "scores higher whatever its group; - where the pairs do not tell them apart",
            "raw: on the metric's own scale; min score, max score: the scores that are scaled to 0 "
            "and 100",
            f"intervals: {t.confidence:.0%}, {t.resamples} bootstrap resamples of pairs, scaling "
            f"fixed; p: permutation test of the stereotype, two-sided, {t.trials} random swaps "
            f"of the scores within pairs; seed {t.seed}",
            *(f"{name}: {signature}" for name, signature in self.signatures.items()),
        ]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the tables in notebooks instead of all fields."""
        printer.text(str(self))

    def __str__(self) -> str:
        worst = "\n\n".join(map(_format_worst_pair, self.worst))
        groups = self.groups
        crossing = ""
        if len(groups) > 1:
            crossing = f"{CROSSING_TITLE}\n{table_to_text(paradigm_table(groups))}"
        headline = f"{HEADLINE_TITLE}\n{table_to_text(self.headline())}"
        grid = f"{GRID_TITLE}\n{table_to_text(self.grid())}"
        tables = [headline, grid, crossing, table_to_text(self.table())]
        parts = [*tables, worst, "\n".join(self.notes())]
        return "\n\n".join(part for part in parts if part)

    @property
    def _bounds(self) -> tuple[str, str]:
        outside = 50 * (1 - self.testing.confidence)
        return f"{outside:.3g}%", f"{100 - outside:.3g}%"


@dataclass(frozen=True, slots=True)
class WorstPair:
    """A pair whose candidates get very different scores; `gap` is in percent of the score range."""

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

    @property
    def pair(self) -> FairnessPair:
        """The pair itself, with its first reference if there are several."""
        return make_fairness_pair(self.cand_a, self.ref_a, self.cand_b, self.ref_b)


@check_arguments
def pair_directions(attribute: str, pairs: Sequence[FairnessPair]) -> Floats:
    """Return which of two groups the stereotypical candidates are about: 1, -1, or 0 if unknown.

    A pair states it, or the words that differ do if they are built-in terms of the attribute.
    """
    lexicon = make_lexicon(builtin_terms(attribute) if attribute in ATTRIBUTES else ())
    found = (
        pair.direction or lexicon.direction(pair.first.candidate, pair.second.candidate)
        for pair in pairs
    )
    return np.array([*found], dtype=np.float64)


def _format_cells(how: str, *values: float | None) -> list[str]:
    return ["-" if value is None else f"{value:{how}}" for value in values]


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
        directions = pair_directions(attribute, pairs)
        for (name, metric), result in zip(metrics.items(), scores, strict=True):
            values = np.array([score.value for score in result.segments])
            facts = (result.signature, metric.higher_is_better, directions)
            yield AttributeScores(attribute, name, values[::2], values[1::2], *facts)


def _published_scores(found: FairnessSet) -> Iterator[AttributeScores]:
    if not any(pairs[0].scores for pairs in found.pairs.values()):
        raise InputError(
            f"{found.name} has no published scores; use 'metric-fairness', or add the fields "
            "scores_a and scores_b"
        )
    for attribute, pairs in found.pairs.items():
        directions = pair_directions(attribute, pairs)
        for name in pairs[0].scores:
            if missing := [n for n, pair in enumerate(pairs, 1) if name not in pair.scores]:
                raise InputError(
                    f"pair {missing[0]} about {attribute!r} has no score of {name}; add it"
                )
            both = np.array([pair.scores[name] for pair in pairs])
            facts = (PUBLISHED_SIGNATURE, True, directions)
            yield AttributeScores(attribute, name, both[:, 0], both[:, 1], *facts)


def _worst_pairs(
    scores: AttributeScores, pairs: Sequence[FairnessPair], count: int
) -> Iterator[WorstPair]:
    gaps = scores.normalised_gaps
    order = np.argsort(-np.abs(gaps), kind="stable")[:count]
    for at in (int(i) for i in order if gaps[i]):
        pair = pairs[at]
        yield WorstPair(
            scores.attribute,
            scores.metric,
            at + 1,
            float(gaps[at]),
            float(scores.first[at]),
            float(scores.second[at]),
            pair.first.candidate,
            pair.second.candidate,
            pair.first.references[0],
            pair.second.references[0],
        )


def _format_worst_pair(case: WorstPair) -> str:
    lines = [
        f"{case.attribute} pair {case.number}, {case.metric}: {case.gap:+.2f} on the scale 0-100",
        f"  {case.score_a:9.4f} {case.cand_a}",
        f"  {case.score_b:9.4f} {case.cand_b}",
        f"  reference {case.ref_a}",
    ]
    if case.ref_a != case.ref_b:
        lines.append(f"            {case.ref_b}")
    return "\n".join(lines)
