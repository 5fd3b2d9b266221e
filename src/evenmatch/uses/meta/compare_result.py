"""The outcome of a comparison of systems, and how it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evenmatch.data.tables import Table, as_text, number

_MARKS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


@dataclass(frozen=True, slots=True)
class Testing:
    """How intervals and p-values were made."""

    confidence: float
    resamples: int
    trials: int
    seed: int


@dataclass(frozen=True, slots=True)
class SystemScore:
    """One metric's score of one system with its bootstrap interval.

    `score` is what was resampled: the corpus score or the mean over segments, as `statistic` says.
    """

    metric: str
    system: str
    statistic: str
    score: float
    low: float
    high: float
    mean: float
    corpus: float | None


@dataclass(frozen=True, slots=True)
class Gap:
    """By how much one metric scores a system higher than a baseline.

    P-values are those of no difference, two-sided; `holm_…` are adjusted for the number of pairs
    of systems this metric compares.
    """

    metric: str
    baseline: str
    system: str
    difference: float
    low: float
    high: float
    p_bootstrap: float
    p_randomisation: float
    holm_bootstrap: float
    holm_randomisation: float

    @property
    def mark(self) -> str:
        """Stars for .05, .01 and .001 of the adjusted p-values, both of them."""
        p = max(self.holm_bootstrap, self.holm_randomisation)
        return next((mark for level, mark in _MARKS if p < level), "")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Systems compared: scores by metric and system, gaps by metric and pair of systems."""

    systems: tuple[str, ...]
    scores: tuple[SystemScore, ...]
    gaps: tuple[Gap, ...]
    higher_is_better: Mapping[str, bool]
    signatures: Mapping[str, str]
    testing: Testing

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each gap as a plain dictionary, with the two scores and which system is `better`.

        `better` is None where the tests, adjusted, do not agree on a difference at .05.
        """
        scores = {(s.metric, s.system): s.score for s in self.scores}
        return [
            {
                **asdict(gap),
                "baseline_score": scores[gap.metric, gap.baseline],
                "system_score": scores[gap.metric, gap.system],
                "better": self.better(gap),
            }
            for gap in self.gaps
        ]

    def better(self, gap: Gap) -> str | None:
        """The system that is significantly better of the two, if one is."""
        if not gap.mark:
            return None
        ahead = gap.difference > 0
        return gap.system if ahead is self.higher_is_better[gap.metric] else gap.baseline

    def score_table(self) -> Table:
        """Scores by metric and system; the interval is that of what was tested."""
        header = ["metric", "system", "mean", "corpus", *self._bounds, "tested"]
        rows = [
            [s.metric, s.system, *map(number, (s.mean, s.corpus, s.low, s.high)), s.statistic]
            for s in self.scores
        ]
        return [header, *rows]

    def gap_table(self) -> Table:
        """Differences by metric and pair of systems."""
        header = ["metric", "system", "less", "difference", *self._bounds]
        header += ["bootstrap", "Holm", "randomised", "Holm", "better"]
        return [header, *map(self._gap_row, self.gaps)]

    def notes(self) -> list[str]:
        """What the tables rest on: the tests, the marks, and the recipe of each metric."""
        t = self.testing
        lower = [name for name, higher in self.higher_is_better.items() if not higher]
        return [
            f"p-values: paired bootstrap ({t.resamples} resamples) and approximate randomisation "
            f"({t.trials} trials), two-sided, seed {t.seed}",
            "better: * .05, ** .01, *** .001 by both tests, adjusted (Holm) for the pairs of "
            "systems of a metric",
            *([f"lower is better: {', '.join(lower)}"] if lower else []),
            *(f"{name}: {signature}" for name, signature in self.signatures.items()),
        ]

    def __str__(self) -> str:
        tables = as_text(self.score_table()), as_text(self.gap_table())
        return "\n\n".join([*tables, "\n".join(self.notes())])

    @property
    def _bounds(self) -> tuple[str, str]:
        outside = 50 * (1 - self.testing.confidence)
        return f"{outside:.3g}%", f"{100 - outside:.3g}%"

    def _gap_row(self, gap: Gap) -> list[str]:
        numbers = (gap.difference, gap.low, gap.high, gap.p_bootstrap, gap.holm_bootstrap)
        shown = [*map(number, (*numbers, gap.p_randomisation, gap.holm_randomisation))]
        better = self.better(gap)
        said = f"{better} {gap.mark}" if better else "-"
        return [gap.metric, gap.system, gap.baseline, *shown, said]
