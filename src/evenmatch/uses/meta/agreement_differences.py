"""By how much one metric agrees with people better than another, set by set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from evenmatch.errors import InputError
from evenmatch.stats.intervals import difference_interval
from evenmatch.stats.resampling import FITTING
from evenmatch.uses.meta.agreement import LEVELS
from evenmatch.uses.meta.agreement_panels import panel_of, points
from evenmatch.uses.meta.agreement_result import Agreement, Entry
from evenmatch.uses.meta.agreement_scores import ScoredSet


def agreement_differences(
    agreement: Agreement, pairs: Sequence[tuple[str, str]]
) -> list[list[Entry]]:
    """For each set the differences of these pairs of metrics, both on the same resamples.

    An entry's metric is `FIRST - SECOND`. A set that has not both metrics is left out of them.
    """
    unknown = [name for pair in pairs for name in pair if name not in agreement.metrics]
    if unknown:
        raise InputError(f"{unknown[0]!r} was not compared; known: {', '.join(agreement.metrics)}")
    return [list(_differences(agreement, scored, pairs)) for scored in agreement.scored]


def _differences(
    agreement: Agreement, scored: ScoredSet, pairs: Sequence[tuple[str, str]]
) -> Iterator[Entry]:
    first, testing, names = agreement.entries[0], agreement.testing, list(scored.marks)
    level = LEVELS[first.level]
    own = panel_of(scored, level)
    counts = points(own, level)
    for one, other in pairs:
        if one not in names or other not in names:
            continue
        a, b = names.index(one), names.index(other)
        found = difference_interval(
            own,
            a,
            b,
            level=level,
            method=first.method,  # type: ignore[arg-type]  # checked when it was compared
            over=FITTING[level],
            confidence=testing.confidence,
            resamples=testing.resamples,
            seed=testing.seed + scored.group,
        )
        yield replace(
            first,
            data=scored.rated.name,
            subset=scored.rated.subset,
            metric=f"{one} - {other}",
            value=found.value,
            n=min(counts[a], counts[b]),
            low=found.low,
            high=found.high,
            cluster=None,
        )
