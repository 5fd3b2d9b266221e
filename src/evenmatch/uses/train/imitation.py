"""How closely a student says what its teacher says, and how much sooner."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.data.tables import Table
from evenmatch.scoring.together import score_together
from evenmatch.stats.panel import Panel
from evenmatch.types import Metric, Pair, Run
from evenmatch.uses.train.judging import Judged, row_of


@dataclass(frozen=True, slots=True)
class Imitation:
    """Correlations with the teacher, and how long both took over the same pairs."""

    judged: Judged
    teacher_seconds: float
    student_seconds: float

    def table(self) -> Table:
        """A line per set of texts."""
        return self.judged.table()

    @property
    def faster(self) -> float:
        """How many times as fast the student scores, alignment included."""
        return self.teacher_seconds / self.student_seconds

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        times = {"teacher_seconds": self.teacher_seconds, "student_seconds": self.student_seconds}
        return {**self.judged.document(), **times, "faster": self.faster}


def imitation(
    student: Metric, teacher: Metric, tests: Mapping[str, Sequence[Pair]], run: Run, *, seed: int
) -> Imitation:
    """Both metrics over each set of pairs, correlated."""
    rows, spent = [], [0.0, 0.0]
    for name, pairs in tests.items():
        sides = []
        for number, metric in enumerate((teacher, student)):
            start = time.perf_counter()
            scores = score_together([metric], pairs, run)[0]
            spent[number] += time.perf_counter() - start
            sides.append(np.array([[score.value for score in scores.segments]]))
        rows.append(row_of(name, "", Panel(sides[1][None], sides[0]), len(pairs), seed))
    return Imitation(Judged(tuple(rows)), *spent)
