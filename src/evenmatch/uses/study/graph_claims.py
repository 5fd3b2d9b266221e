"""What paper 000 says of its table 1, and whether it is seen here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenmatch.uses.study.claims import Claim, judged
from evenmatch.uses.study.graph_arms import XENT
from evenmatch.uses.study.graph_scores import BLEU, Scored
from evenmatch.uses.study.graph_table import metrics_of, seen_from
from evenmatch.uses.study.seeds import shared_seeds

# The first arm scores above the second, on every metric.
_SAID = (
    ("F_DISC", XENT, "rewarding F_DISC beats cross-entropy alone"),
    ("BL-R", XENT, "rewarding BLEU beats cross-entropy alone"),
    ("F_DISC", "BL-R", "F_DISC is a better reward than BLEU"),
    ("F_DISC", "F_CONT", "F_DISC is a better reward than F_CONT"),
    ("F_CONT", "F_BERT", "F_CONT is a better reward than F_BERT"),
    ("F_DISC", "F_BERT", "F_DISC is a better reward than F_BERT"),
)


def checked(found: Sequence[Scored]) -> Iterator[Claim]:
    """Each claim whose two arms there are; repetition is not among what the paper claims of."""
    by_name = {each.arm: each for each in found}
    for arm, other, said in _SAID:
        one, less = by_name.get(arm), by_name.get(other)
        if one and less and shared_seeds(one, less):
            yield Claim(said, {m: judged(one, less, m) for m in metrics_of(found)[:-1]})


def power_line(found: Sequence[Scored]) -> Iterator[str]:
    """What difference the comparison can see at all."""
    least = seen_from(found)
    if least is not None:
        yield (
            f"with so many seeds a t-test finds, in four cases of five, differences in {BLEU} "
            f"from {100 * least:.2f} on; smaller ones may be there and not be seen"
        )
