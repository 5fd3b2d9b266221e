"""Other people's scores of the systems, beside ours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenmatch.uses.meta.agreement_scores import Marks, ScoredSet


def with_published(scored: ScoredSet) -> ScoredSet:
    """The set with every published metric that has scores of at least two systems that count.

    One that is called as one of ours is marked as published.
    """
    rated, marks = scored.rated, dict(scored.marks)
    nothing = np.full((len(rated.systems), len(rated.segments)), np.nan)
    for metric, systems in rated.published.items():
        if (~np.isnan(systems[scored.kept])).sum() < 2:
            continue
        name = f"{metric} (published)" if metric in marks else metric
        marks[name] = Marks(nothing, systems, True, True, signature="")
    return replace(scored, marks=marks)
