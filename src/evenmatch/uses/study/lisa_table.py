"""What LiSAScore's experiment shows: means, effect sizes, and answers to the paper's claims."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from evenmatch.data.tables import Table
from evenmatch.stats.arrays import Floats
from evenmatch.stats.effects import bootstrapped, effect_size, mean_difference, told_apart
from evenmatch.stats.intervals import Interval
from evenmatch.uses.study.lisa import ALIGNED, BASELINE, GREEDY, SHUFFLED, Cell, Runs


@dataclass(frozen=True, slots=True)
class Row:
    """An encoder, a length and an algorithm: pairs, in-batch negatives, and how far apart.

    `effect` is Cohen's d with its interval; `beyond_greedy` its difference from greedy's, paired,
    and `wider` by how much the two means are further apart than greedy's;
    `lowered` how far the mean of pairs lies below greedy's, `inflated` how far it lies above its
    own without padding, None where there is nothing to compare with.
    """

    encoder: str
    length: int
    algorithm: str
    aligned: float
    shuffled: float
    effect: Interval
    told_apart: float
    beyond_greedy: Interval | None
    wider: Interval | None
    lowered: Interval | None
    inflated: Interval | None
    inflated_shuffled: Interval | None


def rows_of(runs: Runs) -> list[Row]:
    """A row for each encoder, length and algorithm, the baseline first."""
    keys = dict.fromkeys((c.encoder, c.length, c.algorithm) for c in runs.cells)
    return [_row(runs, *key) for key in keys]


def _row(runs: Runs, encoder: str, length: int, algorithm: str) -> Row:
    def scores(side: str, by: str = algorithm, at: int = length) -> Floats | None:
        return runs.cells.get(Cell(encoder, by, at, side))

    pairs, negatives = runs.cells[Cell(encoder, algorithm, length, ALIGNED)], scores(SHUFFLED)
    assert negatives is not None
    effect = effect_size(pairs, negatives)
    of_greedy = beyond = wider = None
    if algorithm not in (GREEDY, BASELINE):
        greedy = scores(ALIGNED, GREEDY), scores(SHUFFLED, GREEDY)
        of_greedy = _difference(greedy[0], pairs)
        if greedy[0] is not None and greedy[1] is not None:
            theirs = effect_size(greedy[0], greedy[1])
            beyond = bootstrapped(lambda w: effect(w) - theirs(w), len(pairs))
            wider = _difference(pairs - negatives, greedy[0] - greedy[1])
    bare = (scores(ALIGNED, at=0), scores(SHUFFLED, at=0)) if length else (None, None)
    return Row(
        encoder,
        length,
        algorithm,
        float(pairs.mean()),
        float(negatives.mean()),
        bootstrapped(effect, len(pairs)),
        told_apart(pairs, negatives),
        beyond,
        wider,
        of_greedy,
        None if bare[0] is None else _difference(pairs, bare[0]),
        None if bare[1] is None else _difference(negatives, bare[1]),
    )


def _difference(x: Floats | None, y: Floats) -> Interval | None:
    return None if x is None else bootstrapped(mean_difference(x, y), len(y))


def table_of(rows: list[Row]) -> Table:
    """The rows as people read them."""
    header = ["encoder", "padded to", "algorithm", "pairs", "negatives", "effect size"]
    header += ["told apart", "effect beyond greedy", "gap beyond greedy", "mean below greedy"]
    header += ["raised by padding"]
    return [
        header,
        *(
            [
                row.encoder,
                padding(row.length),
                row.algorithm,
                *(f"{v:.3f}" for v in (row.aligned, row.shuffled)),
                shown(row.effect, 2),
                f"{row.told_apart:.4f}",
                shown(row.beyond_greedy, 2),
                shown(row.wider, 3),
                shown(row.lowered, 3),
                shown(row.inflated, 3),
            ]
            for row in rows
        ),
    ]


def claims(rows: list[Row]) -> list[str]:
    """The paper's claims, each with what was found for every encoder."""
    found = []
    for encoder in dict.fromkeys(row.encoder for row in rows):
        own = {(r.algorithm, r.length): r for r in rows if r.encoder == encoder}
        lengths = sorted({length for _, length in own})
        lsa, longest = own.get(("lsa", lengths[0])), lengths[-1]
        if lsa and lsa.lowered:
            found.append(
                f"{encoder}: one-to-one alignment lowers the mean by {shown(lsa.lowered, 3)}"
            )
        for name in (GREEDY, "lsa"):
            row = own.get((name, longest))
            if row and row.inflated and row.inflated_shuffled:
                found.append(
                    f"{encoder}: padding to {longest} raises {name} by {shown(row.inflated, 4)} "
                    f"on pairs and by {shown(row.inflated_shuffled, 4)} on negatives"
                )
        bare = [r for r in own.values() if r.length == lengths[0] and r.algorithm != BASELINE]
        best = max(bare, key=lambda r: r.effect.value)
        widest = max(bare, key=lambda r: r.aligned - r.shuffled)
        found.append(
            f"{encoder}, {padded(lengths[0])}: pairs and negatives lie furthest apart under "
            f"{best.algorithm} by effect size, {shown(best.effect, 2)}, and under "
            f"{widest.algorithm} by difference of means, {widest.aligned - widest.shuffled:.3f}"
        )
    return found


def document(runs: Runs, rows: list[Row]) -> dict[str, Any]:
    """Rows and claims as JSON has them."""
    return {
        "data": runs.sentences.name,
        "pairs": len(runs.sentences),
        "seed": runs.seed,
        "seconds": round(runs.seconds, 1),
        "rows": [asdict(row) for row in rows],
        "claims": claims(rows),
    }


def padding(length: int) -> str:
    """A length as people say it."""
    return str(length) if length else "none"


def padded(length: int) -> str:
    """What was done to texts, in words."""
    return f"padded to {length}" if length else "no padding"


def shown(interval: Interval | None, digits: int) -> str:
    """A number with its interval; a dash where there is none.

    >>> shown(Interval(1.234, 1.0, 1.5), 2), shown(None, 2)
    ('1.23 [1.00, 1.50]', '-')
    """
    if interval is None:
        return "-"
    value, low, high = (
        f"{v + 0.0:.{digits}f}" for v in (interval.value, interval.low, interval.high)
    )
    return f"{value} [{low}, {high}]"
