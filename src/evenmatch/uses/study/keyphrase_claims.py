"""What paper 004 says of its stages, and whether it is seen here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenmatch.uses.study.claims import Claim, judged
from evenmatch.uses.study.keyphrase_arms import FIRST, MLE
from evenmatch.uses.study.keyphrase_table import Scored
from evenmatch.uses.study.seeds import shared_seeds

# By the metric, the first arm scores above the second.
_SAID = (
    (FIRST, MLE, "F1@M", "rewarding F1 raises F1 beyond likelihood"),
    ("RL(FG)", FIRST, "FG", "rewarding FG raises FG beyond rewarding F1"),
    (FIRST, "RL(FG)", "F1@M", "rewarding F1 raises F1 beyond rewarding FG"),
    ("2RL(FG)", FIRST, "F1@M", "FG first, then F1, reaches a higher F1 than F1 alone"),
    ("2RL(FG)", FIRST, "FG", "FG first, then F1, keeps a higher FG than F1 alone"),
    ("RL(FB)", "RL(FG)", "FG", "as a reward the scorer FB raises FG beyond FG itself"),
    ("2RL(FB)", "2RL(FG)", "F1@M", "as a first stage FB reaches a higher F1 than FG"),
)


def checked(found: Sequence[Scored]) -> Iterator[Claim]:
    """Each claim whose two arms there are, test set by test set."""
    by_place = {(each.data, each.arm): each for each in found}
    for arm, other, metric, said in _SAID:
        both = {
            data: (by_place.get((data, arm)), by_place.get((data, other)))
            for data in dict.fromkeys(each.data for each in found)
        }
        seen = {
            data: judged(one, less, metric)
            for data, (one, less) in both.items()
            if one and less and shared_seeds(one, less)
        }
        if seen:
            yield Claim(f"{said} ({metric}: {arm} less {other})", seen)
