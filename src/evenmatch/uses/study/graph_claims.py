"""What paper 000 says of its table 1, and whether it is seen here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evenmatch.stats.intervals import Interval
from evenmatch.uses.study.graph_arms import XENT
from evenmatch.uses.study.graph_scores import BLEU, Scored
from evenmatch.uses.study.graph_table import metrics_of, seen_from
from evenmatch.uses.study.seeds import cell, gap, seed_gaps

# The first arm scores above the second, on every metric.
_SAID = (
    ("F_DISC", XENT, "rewarding F_DISC beats cross-entropy alone"),
    ("BL-R", XENT, "rewarding BLEU beats cross-entropy alone"),
    ("F_DISC", "BL-R", "F_DISC is a better reward than BLEU"),
    ("F_DISC", "F_CONT", "F_DISC is a better reward than F_CONT"),
    ("F_CONT", "F_BERT", "F_CONT is a better reward than F_BERT"),
    ("F_DISC", "F_BERT", "F_DISC is a better reward than F_BERT"),
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What is said, and by metric the difference seen here with its verdict."""

    said: str
    seen: Mapping[str, tuple[Interval, str]]


def checked(found: Sequence[Scored]) -> Iterator[Claim]:
    """Each claim whose two arms there are; repetition is not among what the paper claims of."""
    by_name = {each.arm: each for each in found}
    for arm, other, said in _SAID:
        one, less = by_name.get(arm), by_name.get(other)
        if one and less:
            yield Claim(said, {m: _seen(one, less, m) for m in metrics_of(found)[:-1]})


def sentence(claim: Claim) -> str:
    """A claim as a line to read."""
    parts = [
        f"{metric} {cell(seen, signed=True, times=100, places=2)}, {verdict}"
        for metric, (seen, verdict) in claim.seen.items()
    ]
    return f"{claim.said}: {'; '.join(parts)}"


def power_line(found: Sequence[Scored]) -> Iterator[str]:
    """What difference the comparison can see at all."""
    least = seen_from(found)
    if least is not None:
        yield (
            f"with so many seeds a t-test finds, in four cases of five, differences in {BLEU} "
            f"from {100 * least:.2f} on; smaller ones may be there and not be seen"
        )


def _seen(one: Scored, less: Scored, metric: str) -> tuple[Interval, str]:
    """The difference, and whether it goes the way claimed: beyond chance and for every seed."""
    seen, gaps = gap(one, less, metric), seed_gaps(one, less, metric)
    if seen.low > 0 and min(gaps) > 0:
        return seen, "seen"
    if seen.high < 0 and max(gaps) < 0:
        return seen, "the reverse is seen"
    return seen, "not seen"
