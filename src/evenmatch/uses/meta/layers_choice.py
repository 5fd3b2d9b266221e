"""A layer chosen by ratings: every layer's agreement, what the choice rests on, and its storage."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from evenmatch.data.tables import as_text
from evenmatch.uses.meta.layers_folds import Folds
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.layer_choices import write_choice
from evenmatch.version import __version__


@dataclass(frozen=True, slots=True)
class Choosing:
    """By what the layers were judged, and which parts were held out."""

    level: str
    method: str
    folds: Folds
    seed: int


@dataclass(frozen=True, slots=True)
class LayerAgreement:
    """How one layer agrees with people: on all ratings, and as the mean over held-out folds.

    `chosen` is in how many folds it was the best on the rest.
    """

    layer: int
    agreement: float
    held_out: float
    chosen: int


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """The best layer, with every layer's agreement.

    `held_out` is the mean agreement of what was chosen without the fold it is judged on: what to
    expect of the choice on other ratings. `metric` is the metric at the chosen layer.
    """

    metric: str
    model: str
    layer: int
    held_out: float
    rows: tuple[LayerAgreement, ...]
    data: str
    subsets: tuple[str, ...]
    outputs: int
    choosing: Choosing

    def __str__(self) -> str:
        table = [["layer", "agreement", "held out", "chosen"]]
        table += [
            [str(r.layer), _shown(r.agreement), _shown(r.held_out), str(r.chosen)]
            for r in self.rows
        ]
        how = self.choosing
        parts = "subset by subset" if how.folds == "subsets" else f"in {how.folds} parts"
        return (
            f"{as_text(table)}\n\nlayer {self.layer} of {self.model}; agreement of the choice on "
            f"ratings held out: {_shown(self.held_out)}\n{how.method}, {how.level}, "
            f"{self._over} ({self.outputs} outputs); "
            f"held out {parts}, seed {how.seed}\nto use: {self.metric}"
        )

    @property
    def _over(self) -> str:
        count = len(self.subsets)
        return f"mean over {count} subsets of {self.data}" if count > 1 else self.data

    def document(self) -> dict[str, Any]:
        """The choice as JSON has it; an agreement there is none of becomes null."""
        rows = [
            {key: _finite(value) for key, value in asdict(agreement).items()}
            for agreement in self.rows
        ]
        return {**asdict(self), "held_out": _finite(self.held_out), "rows": rows}


def keep(choice: LayerChoice, checkpoint: Checkpoint) -> None:
    """Store a choice with the model's content hash, for `layer='auto'`."""
    facts = choice.document() | {"evenmatch": __version__}
    write_choice(checkpoint, choice.layer, facts)


def _shown(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "-"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
